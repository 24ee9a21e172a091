"""Table 2 in miniature: two sets, one seed, a handful of blocks."""

import json
from itertools import pairwise

import pytest

from fenchel.bench import epochs, rival, scores, together, toy_table, toys, truth
from fenchel.bench.folder import BenchFolder
from fenchel.bench.presets import PRESETS
from fenchel.bench.progress import Progressing
from fenchel.config import Config
from fenchel.errors import InputError

SMALL = {
    "potential": {"kind": "gaussian"},
    "start": {"kind": "planar", "layers": 1, "width": 4, "depth": 1},
    "dynamics": {"steps": 1},
    "training": {"steps": 8, "batch": 16, "sampler_steps": 1},
}
NO_SAMPLER = {key: SMALL[key] for key in ("potential", "training")} | {"method": "score-matching"}
SETTINGS = toys.Settings(("moons", "line"), (1,), steps=8, replicates=3, rows=200)


@pytest.fixture(autouse=True)
def small(monkeypatch, few_draws, compiled_once):
    presets = {
        "sm": PRESETS["sm"]._replace(config=Config.from_dict(NO_SAMPLER)),
        "ade": PRESETS["ade"]._replace(config=Config.from_dict(SMALL)),
    }
    monkeypatch.setattr(toys, "PRESETS", presets)
    for module in (scores, toy_table, truth):
        monkeypatch.setattr(module, "SIZES", (60, 90))
    for module, name, value in (
        (epochs, "PAPER_SIZE", 30),
        (epochs, "TUNING_POINTS", 20),
        (rival, "DEPTH", 1),
        (rival, "KNOTS", 3),
        (rival, "LAYERS", 1),
        (rival, "WIDTH", 4),
        (scores, "FRESH", 100),
        (scores, "PAPER_SIZE", 30),
        (truth, "PAPER_SIZE", 30),
        (truth, "LOOKS", 5),
        (truth, "PROTOCOLS", 2),
        (together, "EPOCHS", 4),
        (together, "CHECKPOINT_EVERY", 1),
        (truth, "POINTS_FOR_WIDTH", 100),
    ):
        monkeypatch.setattr(module, name, value)


class Killed(Exception):  # noqa: N818, it is no error
    """As if the process were gone."""


class Killing(Progressing):
    """Ends everything at the first of these words, when so much is done."""

    def __init__(self, word: str, at: int):
        super().__init__()
        self.word, self.at, self.here = word, at, False

    def begin(self, what: str, total: int, done: int = 0) -> None:
        self.here = self.word in what
        super().begin(what, total, done)

    def reach(self, done: int) -> None:
        if self.here and done >= self.at:
            raise Killed
        super().reach(done)


def run(path, methods, progress=None, settings=SETTINGS):
    return toys.run(methods, settings, BenchFolder(path), progress or Progressing())


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    """Filled by the first test that asks."""
    return tmp_path_factory.mktemp("whole")


def test_the_table_is_complete(whole):
    results = run(whole, ["sm", "ade"])
    assert list(results["methods"]) == ["sm", "ade"]
    for name, method in results["methods"].items():
        assert [(row["set"], row["seed"]) for row in method["runs"]] == [("moons", 1), ("line", 1)]
        assert method["parameters"] > 0
        assert method["seconds"] > 0
        kinds = ("raw", "corrected") if name == "ade" else ("raw",)
        for row in method["runs"]:
            wanted = [f"{what}_{kind}" for kind in kinds for what in ("mmd", "z_60", "z_90")]
            best = ["best_epoch_mmd", "best_epoch_mmd_corrected"][: len(kinds)]
            for key in (*wanted, *best, "log_likelihood"):
                assert isinstance(row[key], float), (name, key)
            assert [row[key] for key in best] == [
                min(_epochs(whole / name, row["set"], key.removeprefix("best_epoch_")))
                for key in best
            ]
            assert row["diverged"] is False
    assert results["methods"]["ade"]["runs"][0]["true_log_likelihood"] < 0
    assert results["methods"]["ade"]["runs"][1]["true_log_likelihood"] is None
    assert json.loads((whole / "toys.json").read_text()) == results
    for picture in ("toys-ade.png", "toys-ade-stages.png"):
        assert (whole / picture).stat().st_size > 1_000


def _epochs(folder, name, kind):
    index = SETTINGS.sets.index(name)
    return [block[kind][index] for block in json.loads((folder / "blocks.json").read_text())]


def test_the_markdown_is_well_formed(whole):
    run(whole, ["sm", "ade"])
    lines = (whole / "toys.md").read_text().splitlines()
    tables = [line for line in lines if line.startswith("|")]
    assert "| `sm` |" in (whole / "toys.md").read_text()
    for before, line in pairwise(lines):
        if before.startswith("|") and line.startswith("|"):
            assert before.count("|") == line.count("|")
    assert len(tables) == (2 + 2) + 3 * (2 + 2) + 2 * (2 + 2)  # header, rule and two rows each


def test_the_worst_run_is_named_beside_the_medians():
    def rows(*pairs):
        return [{"true_log_likelihood": true, "log_likelihood": own} for true, own in pairs]

    assert toy_table._worst(rows((-1.0, -1.1), (-2.0, -3.5), (None, 9.0))) == 1.5
    assert toy_table._worst(rows((-1.0, -1.1), (-2.0, None))) is None  # nobody knows how bad
    assert toy_table._worst(rows((None, 9.0))) is None


@pytest.mark.parametrize(("word", "at"), [("iteration", 5), ("judged", 1)])
def test_a_run_cut_short_ends_as_it_would_have(whole, tmp_path, word, at):
    """Bit for bit: in the middle of training, and between two models."""
    expected = run(whole, ["sm", "ade"])["methods"]["sm"]["runs"]
    with pytest.raises(Killed):
        run(tmp_path, ["sm"], Killing(word, at))
    assert run(tmp_path, ["sm"])["methods"]["sm"]["runs"] == expected


def test_other_settings_are_refused(whole):
    run(whole, ["sm", "ade"])
    other = toys.Settings(("moons", "line"), (1, 2), steps=8, replicates=3, rows=200)
    with pytest.raises(InputError, match=r"was begun with seeds = \[1\], not \[1, 2\]"):
        run(whole, ["ade"], settings=other)
    with pytest.raises(InputError, match="no method of this benchmark called 'add'"):
        run(whole, ["add"])


def test_another_net_in_the_same_folder_is_refused(whole, monkeypatch):
    run(whole, ["sm", "ade"])
    wider = SMALL | {"start": {**SMALL["start"], "width": 5}}
    preset = PRESETS["ade"]._replace(config=Config.from_dict(wider))
    monkeypatch.setattr(toys, "PRESETS", {"ade": preset})
    with pytest.raises(InputError, match=r"start.width = 4, not 5"):
        run(whole, ["ade"])


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"sets": ("moon",)}, "did you mean 'moons'"),
        ({"seeds": (1, 1)}, "different whole numbers"),
        ({"replicates": 1}, "at least 2 replicates"),
        ({"steps": 0}, "at least one"),
    ],
)
def test_settings_that_mean_nothing_are_refused(changes, message):
    with pytest.raises(InputError, match=message):
        toys.Settings(**changes)


def test_flowjax_beside_it(tmp_path):
    settings = toys.Settings(("moons",), (1, 2), steps=1, replicates=3, rows=1_300)
    results = run(tmp_path, ["flowjax"], settings=settings)
    (row,) = results["methods"]["flowjax"]["runs"]  # of the first seed
    assert row["epochs"] == 1
    assert row["log_likelihood"] < 0
    assert "1 epochs" in (tmp_path / "toys.md").read_text()


def test_the_paper_presets_say_what_the_paper_says():
    config = PRESETS["ade-paper"].config
    assert (config.potential.width, config.potential.depth) == (128, 3)
    assert config.training.steps * config.training.averaging == pytest.approx(1 / (1 - 0.99))
