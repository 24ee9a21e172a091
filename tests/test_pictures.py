"""Models of pictures from end to end: fitted in pieces, saved, drawn from, completed, scored."""

import json
from dataclasses import replace

import numpy as np
import pytest
from PIL import Image

import fenchel as fx
from fenchel import completion
from fenchel.build import build
from fenchel.config import Config
from fenchel.data import HALVES, half_mask
from fenchel.dynamics import Chain
from fenchel.errors import InputError
from fenchel.presets import PRESETS, preset
from fenchel.report.pictures.movement import movement, start_alone
from fenchel.report.pictures.outsiders import auroc
from fenchel.samplers import Embedding
from fenchel.starts import Noise

pytestmark = pytest.mark.usefixtures("compiled_once", "few_draws")

SHAPE = (8, 8, 1)
TINY = preset("mnist").with_values(
    potential__width=2,
    potential__precision="float32",
    start__width=2,
    start__precision="float32",
    start__latent=4,
    dynamics__steps=2,
    training__steps=6,
    training__batch=8,
    training__block=2,
    training__checkpoint_every=4,
)


def pictures(n, seed=0):
    """Noise that is darker above."""
    x = np.random.default_rng(seed).integers(0, 256, (n, *SHAPE), dtype=np.uint8)
    x[:, :4] //= 4
    return x


def fit(folder, **values):
    return fx.fit(pictures(40), config=TINY, out=folder, progress=False, **values)


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    """The folder of a run that nobody disturbed, and its model."""
    folder = tmp_path_factory.mktemp("runs") / "whole"
    return folder, fit(folder)


@pytest.fixture
def data(tmp_path):
    path = tmp_path / "noise.npz"
    np.savez(path, x_train=pictures(12), x_test=pictures(6, 1), y_test=np.arange(6))
    return path


def test_the_presets_are_configurations():
    for name in PRESETS:
        assert Config.from_dict(preset(name).to_dict()) == preset(name)
    with pytest.raises(InputError, match="mnist"):
        preset("mnits")


def test_the_papers_settings_are_the_papers():
    """Appendix D.2; what it leaves open is as its released code has it."""
    pictures = {
        "potential": {"kind": "conv", "width": 64, "norm": "spectral", "scale": 1.0},
        "start": {"kind": "deep-picture", "latent": 512, "spread": 1e-3, "momentum": 1e-4},
        "dynamics": {
            "kind": "damped",
            "steps": 30,
            "step_size": 10.0,
            "per_dimension": True,
            "per_step": False,
            "damping": 0.5,
            "learns_damping": False,
            "clip_value": 0.01,
            "box": (-1.0, 1.0),
        },
        "training": {
            "steps": 200_000,
            "batch": 64,
            "bound": "fenchel",
            "gradient": "detached",
            "gradient_penalty": 0.0,
            "entropy": 1e-5,
            "momentum": 1e-5,
            "potential_rate": 1e-4,
            "start_rate": 1e-4,
            "dynamics_rate": 1e-4,
            "first_moment": 0.0,
            "dynamics_epsilon": 1e-5,
            "final_rate": 1.0,
            "anchor": 0.0,
        },
        "pictures": {"dequantise": 1.0, "flips": False},
    }
    completion = {
        "start": {
            "kind": "replay",
            "capacity": 10_000,
            "restart": 0.05,
            "fresh": "noise",
            "momentum": 1e-4,
        },
        "dynamics": {
            "steps": 60,
            "step_size": 10.0,  # √10 squared
            "damping": 0.9,
            "learns_damping": True,
            "clip_value": 0.1,
        },
        "training": {"steps": 60_000, "entropy": 0.0},
    }
    for name in ("mnist-paper", "cifar10-paper"):
        assert_has(preset(name), pictures)
    shared = {name: {**pictures[name], **completion.get(name, {})} for name in pictures}
    shared["start"], shared["dynamics"] = (
        completion["start"],
        {key: value for key, value in shared["dynamics"].items() if key != "damping"},
    )
    assert_has(preset("mnist-completion-paper"), shared)


def assert_has(config, sections):
    for section, values in sections.items():
        part = getattr(config, section)
        assert {name: getattr(part, name) for name in values} == values, section


def test_a_run_has_samples_along_the_way(run):
    folder, _ = run
    assert {path.name for path in (folder / "figures").iterdir()} == {
        "samples-0000004.png",
        "samples-0000006.png",
    }
    row = json.loads((folder / "metrics.jsonl").read_text().splitlines()[-1])
    assert row["iteration"] == 6
    assert {"potential_data", "potential_draws", "step_size"} <= {k for k, v in row.items() if v}


def test_how_pictures_are_shown_is_an_option_beside_a_preset(monkeypatch, tmp_path, data, call):
    """A preset's own choice stays where none is given."""
    monkeypatch.setattr("fenchel.fitting._train", lambda samples, config, *_: stopped(config))
    seen = []

    def stopped(config):
        seen.append((config.pictures.flips, config.pictures.dequantise))
        raise InputError("Far enough.")

    for options in ((), ("--no-flips",), ("--dequantise", 0.5), ("--flips", "--dequantise", 0)):
        for preset_ in ("mnist", "cifar10"):
            call("fit", data, "--out", tmp_path / "r", "--preset", preset_, *options)
    left, off = [(False, 1.0), (True, 1.0)], [(False, 1.0)] * 2
    half, both = [(False, 0.5), (True, 0.5)], [(True, 0.0)] * 2
    assert seen == [*left, *off, *half, *both]
    for values in ({"flips": False}, {"dequantise": 0.5}):
        with pytest.raises(InputError, match="is for pictures, and 'mlp' is a potential of tables"):
            fx.fit("moons", **values)


def test_a_run_in_pieces_is_the_run_in_one(run, tmp_path):
    whole, pieces = run[0], tmp_path / "pieces"
    fit(pieces, minutes=1e-9)
    rows = (pieces / "metrics.jsonl").read_text().splitlines()
    assert len(rows) == 1, "stopped after the first block"
    fit(pieces, resume=True)
    for name in ("model.safetensors", "model.json", "config.json"):
        assert (pieces / name).read_bytes() == (whole / name).read_bytes(), name


def test_what_is_loaded_is_what_was_fitted(run):
    folder, fitted = run
    loaded = fx.load(folder)
    assert loaded.shape == SHAPE
    np.testing.assert_array_equal(loaded.pictures(5, seed=2), fitted.pictures(5, seed=2))
    np.testing.assert_array_equal(loaded.potential(pictures(3)), fitted.potential(pictures(3)))


def test_chains_that_begin_with_half_a_picture(tmp_path):
    """While the model is learnt; what is handed out and saved begins as noise."""
    config = TINY.with_values(start=preset("mnist-completion").start, start__capacity=16)
    assert config.start.fresh == "occluded"
    fitted = fx.fit(
        pictures(40), config=config.with_values(training__steps=2), out=tmp_path, progress=False
    )
    assert fitted.sampler.start.fresh == Noise(box=(-1.0, 1.0))
    assert fitted.sampler.start.aside is None
    assert_no_halves(fitted.pictures(16, seed=1), pictures(40))
    loaded = fx.load(tmp_path)
    np.testing.assert_array_equal(loaded.pictures(5, seed=2), fitted.pictures(5, seed=2))
    masks = build(config.with_values(pictures__shape=SHAPE), 64).sampler.start.aside.masks
    np.testing.assert_array_equal(masks, [half_mask(half, SHAPE).ravel() for half in HALVES])
    for kind, message in (
        ("occluded", r"start.fresh is 'occluded', which hides halves of pictures"),
        ("ocluded", r"beginning of a chain called 'ocluded' .did you mean occluded"),
    ):
        table = Config().with_values(start__kind="replay", start__fresh=kind)
        with pytest.raises(InputError, match=message):
            build(table, 2)


def assert_no_halves(drawn, train):
    """Two steps change little: a chain that began with half of a picture would still show it."""
    for rows in (slice(4), slice(4, 8)):
        apart = drawn[:, None, rows].astype(float) - train[None, :, rows]
        assert np.abs(apart).mean(axis=(2, 3, 4)).min() > 20


def test_chains_have_no_start_to_be_measured_from(tmp_path):
    config = TINY.with_values(start=preset("mnist-completion").start, start__capacity=16)
    fitted = fx.fit(pictures(20), config=config.with_values(training__steps=2), progress=False)
    assert start_alone(fitted) is None
    assert movement(fitted, 4, 0) is None


def test_chains_are_ripe_when_they_are_handed_out(monkeypatch):
    """However soon before they began."""
    moved = {}
    config = TINY.with_values(start=preset("mnist-completion-paper").start, start__capacity=16)
    config = config.with_values(start__restart=1.0, training__steps=4, dynamics__clip_value=0.01)
    config = config.with_values(training__batch=200)  # of whose draws a tenth are five rounds
    for rounds in (0, 10):
        monkeypatch.setattr("fenchel.drawing.RIPENING", rounds)
        fitted = fx.fit(pictures(20), config=config, progress=False)
        moved[rounds] = np.asarray(fitted.sampler_state.points)
        assert fitted.sampler_state.cursor == moved.setdefault("turn", fitted.sampler_state.cursor)
    apart = np.abs(moved[10] - moved[0]).mean(axis=1)
    assert apart.min() > 0  # of every chain


def test_no_two_samples_are_of_one_chain():
    """And another seed begins with others."""
    config = TINY.with_values(start=preset("mnist-completion-paper").start, start__capacity=64)
    fitted = fx.fit(pictures(20), config=config.with_values(training__steps=2), progress=False)
    drawn = fitted.pictures(64, seed=1).reshape(64, -1).astype(float)
    apart = np.abs(drawn[:, None] - drawn[None]).mean(axis=-1) + 1e3 * np.eye(64)
    assert apart.min() > 20
    other = fitted.pictures(8, seed=2).reshape(8, -1)
    assert np.abs(drawn[:8] - other).mean() > 20


def test_a_picture_is_scored_in_the_middle_of_its_cells(run):
    _, fitted = run
    x = pictures(3)
    rows = x.reshape(3, -1) + 0.5
    np.testing.assert_array_equal(fitted.potential(x), fitted.potential(rows))


@pytest.mark.parametrize(("mask", "rows"), [("lower", slice(4, 8)), ("upper", slice(0, 4))])
def test_a_completion_leaves_what_was_given_to_the_byte(run, mask, rows):
    _, fitted = run
    x = pictures(4)
    frames = fitted.complete(x, mask, rounds=2, seed=1)
    hidden = np.zeros(SHAPE, bool)
    hidden[rows] = True
    assert frames.shape == (3, 4, *SHAPE)
    np.testing.assert_array_equal(frames[:, :, ~hidden], np.broadcast_to(x[:, ~hidden], (3, 4, 32)))
    assert (frames[0][:, hidden] != x[:, hidden]).mean() > 0.9
    by_array = fitted.complete(x, hidden[..., 0], rounds=2, seed=1)
    np.testing.assert_array_equal(by_array, frames)


def test_completions_are_made_a_few_at_a_time(run, monkeypatch):
    """The same ones, up to how products of other sizes are rounded."""
    _, fitted = run
    whole = fitted.complete(pictures(8), rounds=2)
    sizes, once = [], completion._round

    def noted(f, sampler, x, *others):
        sizes.append(len(x))
        return once(f, sampler, x, *others)

    monkeypatch.setattr("fenchel.completion._round", noted)
    monkeypatch.setattr("fenchel.result.FEW", 3)
    parts = fitted.complete(pictures(8), rounds=2)
    assert sizes == [3, 3, 3, 3, 2, 2]
    assert np.abs(parts.astype(int) - whole).max() <= 1


def test_a_model_without_dynamics_completes_nothing(run):
    _, fitted = run
    still = replace(fitted, sampler=Embedding(fitted.sampler.start, Chain()))
    with pytest.raises(InputError, match="no dynamics, without which what is hidden"):
        still.complete(pictures(2))


def test_completion_goes_uphill_where_the_score_is_clear():
    """Of f = -|x - 0.5|² per pixel, by damped steps: what is hidden ends near 0.5."""
    import jax
    import jax.numpy as jnp

    from fenchel.completion import completions
    from fenchel.dynamics import CentredNormal, Damped
    from fenchel.dynamics.stack import Repeat
    from fenchel.parameters import fixed
    from fenchel.starts import Empirical

    dynamics = Repeat(Damped(fixed(0.1), fixed(0.5)), 20)
    sampler = Embedding(Empirical(CentredNormal(6, 1e8)), dynamics)
    free = jnp.array([True, True, True, False, False, False])
    given = jnp.full((5, 6), -0.9)
    f, key = lambda x: -jnp.sum((x - 0.5) ** 2), jax.random.key(0)
    (frames,) = completions(f, sampler, given, free, 2, (-1.0, 1.0), 5, key)
    np.testing.assert_allclose(frames[-1][:, :3], 0.5, atol=0.01)
    np.testing.assert_array_equal(frames[:, :, 3:], jnp.full((3, 5, 3), -0.9))
    assert np.abs(frames[0][:, :3] - 0.5).max() > 0.3


def test_auroc_against_counting_pairs():
    rng = np.random.default_rng(0)
    own, other = rng.integers(0, 6, 30).astype(float), rng.integers(-2, 5, 20).astype(float)
    wins = (own[:, None] > other) + 0.5 * (own[:, None] == other)
    assert auroc(own, other) == pytest.approx(wins.mean())
    assert auroc(own, own) == 0.5
    assert auroc(own + 100, other) == 1.0


def test_the_command_complete(run, data, tmp_path, call):
    folder, _ = run
    out = tmp_path / "done"
    code, printed, _ = call(
        "complete", folder, data, "--part", "test", "-n", 3, "--rounds", 2, "--out", out
    )
    assert (code, "steps.png" in printed) == (0, True)
    assert {path.name for path in out.iterdir()} == {
        "steps.png",
        "steps.gif",
        "completed.npz",
        "completed.png",
    }
    with np.load(out / "completed.npz") as found:
        np.testing.assert_array_equal(found["given"], pictures(6, 1)[:3])
        np.testing.assert_array_equal(found["x"][:, :4], found["given"][:, :4])


def test_figures_of_completions_show_the_first_ones(run, data, tmp_path, monkeypatch, call):
    folder, _ = run
    shapes = []
    for shown in (6, 2):
        monkeypatch.setattr("fenchel.report.pictures.completing.SHOWN", shown)
        out = tmp_path / str(shown)
        code, _, said = call("complete", folder, data, "-n", 6, "--rounds", 1, "--out", out)
        assert code == 0, said
        with np.load(out / "completed.npz") as found:
            assert len(found["x"]) == len(found["given"]) == 6
        figures = (np.asarray(Image.open(out / f"{name}.png")) for name in ("steps", "completed"))
        shapes.append([figure.shape for figure in figures])
    # A row a picture with its two steps and what was hidden, and a grid; each pixel is two wide.
    assert shapes == [[(116, 56), (36, 56)], [(36, 56), (16, 36)]]


def test_the_command_score(run, data, tmp_path, call):
    folder, fitted = run
    other = tmp_path / "other.npz"
    np.savez(other, x_train=255 - pictures(5, 3))
    code, printed, _ = call("score", folder, data, "--against", other, "--json", "--part", "train")
    found = json.loads(printed)
    assert code == 0
    assert found["mean"] == pytest.approx(fitted.potential(pictures(12)).mean())
    expected = auroc(fitted.potential(pictures(12)), fitted.potential(255 - pictures(5, 3)))
    assert found["against"][str(other)]["auroc"] == pytest.approx(expected)
    code, printed, _ = call("score", folder, data)
    assert (code, len(printed.splitlines())) == (0, 7)  # the test part


def test_every_picture_has_its_score_in_the_file(run, tmp_path, call):
    """Of more pictures than are scored at a time; a comparison is printed beside it."""
    folder, fitted = run
    many, other, out = tmp_path / "many.npy", tmp_path / "other.npy", tmp_path / "scores.csv"
    np.save(many, np.resize(pictures(7), (10_100, *SHAPE)))
    np.save(other, 255 - pictures(5, 3))
    expected = np.resize(fitted.potential(pictures(7)), 10_100)
    code, printed, _ = call("score", folder, many, "--against", other, "--out", out)
    assert (code, "10,100" in printed) == (0, True)
    np.testing.assert_allclose(np.loadtxt(out, skiprows=1), expected, rtol=1e-5)
    code, printed, _ = call("score", folder, other, "--against", many, "--out", out, "--json")
    found = json.loads(printed)
    assert (code, found["out"], found["pictures"]) == (0, str(out), 5)
    assert found["against"][str(many)]["pictures"] == 10_100
    assert "potential" not in found
    f = fitted.potential(255 - pictures(5, 3))
    np.testing.assert_allclose(np.loadtxt(out, skiprows=1), f, rtol=1e-5)
    found = json.loads(call("score", folder, other, "--json")[1])
    np.testing.assert_allclose(found["potential"], f, rtol=1e-5)
    assert found["standard_error"] == pytest.approx(f.std(ddof=1) / 5**0.5)


def test_scores_against_pictures_that_are_not_divided(run, data, tmp_path, call):
    """A part is chosen of those that have parts; of a folder, or one array, all are taken."""
    folder, fitted = run
    test, others = fitted.potential(pictures(6, 1)), 255 - pictures(5, 3)
    whole, faces, divided = tmp_path / "whole.npz", tmp_path / "faces", tmp_path / "divided.npz"
    np.savez(whole, images=others)
    np.savez(divided, x_train=others[:2], x_test=others[2:])
    faces.mkdir()
    for number, picture in enumerate(others):
        Image.fromarray(picture[..., 0]).save(faces / f"{number}.png")
    against = [word for path in (whole, faces, divided) for word in ("--against", path)]
    code, printed, said = call("score", folder, data, "--part", "test", *against, "--json")
    assert code == 0, said
    found = json.loads(printed)["against"]
    for path, shown in ((whole, others), (faces, others), (divided, others[2:])):
        assert found[str(path)]["pictures"] == len(shown)
        assert found[str(path)]["auroc"] == pytest.approx(auroc(test, fitted.potential(shown)))
    one_part = tmp_path / "one.npz"
    np.savez(one_part, x_train=others)
    code, _, said = call("score", folder, data, "--part", "test", "--against", one_part)
    assert (code, "name the pictures of its test part 'x_test'" in said) == (2, True)


def test_what_cannot_be_is_refused_in_one_sentence(run, data, tmp_path, call):
    folder, fitted = run
    wide = tmp_path / "wide.npz"
    np.savez(
        wide, x_train=np.zeros((4, 8, 12), np.uint8) + np.arange(4, dtype=np.uint8)[:, None, None]
    )
    out = tmp_path / "nothing"
    coarse = tmp_path / "coarse.json"
    coarse.write_text(json.dumps({"potential": {"kind": "conv"}, "pictures": {"dequantise": 2.0}}))
    wrong = {
        ("complete", folder, wide, "--out", out): "give pictures of that shape",
        ("complete", folder, data, "--out", out, "--mask", "middle"): "is no file",
        ("complete", folder, data, "--out", out, "-n", 0): "at least one",
        ("complete", folder, data, "--out", out, "--part", "tset"): "test",
        ("score", folder, data, "--against", wide): "give pictures of that shape",
        ("report", folder, data): "at least 16 to judge by",
        ("fit", data, "--out", out, "--preset", "mnits"): "did you mean mnist",
        ("fit", data, "--out", out, "--preset", "mnist", "--minutes", -1): "positive",
        ("fit", data, "--out", out, "--config", coarse): "a grey level is 1 wide",
    }
    for arguments, words in wrong.items():
        code, printed, said = call(*arguments)
        assert (code, printed) == (2, ""), arguments
        assert words in said, (arguments, said)
    assert not out.exists()
    for pointless in ({"rounds": 0}, {"mask": np.zeros(SHAPE[:2], bool)}):
        with pytest.raises(InputError):
            fitted.complete(pictures(1), **pointless)
