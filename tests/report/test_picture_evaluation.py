"""The evaluation of a tiny run of pictures, and of each of its parts where the answer is known."""

import base64
import io
import json
import re
import shutil
from dataclasses import replace
from functools import partial

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from PIL import Image

from fenchel.build import build_model
from fenchel.config import Config
from fenchel.data import Pictures, Standardiser, default_columns
from fenchel.dynamics import Chain
from fenchel.errors import InputError
from fenchel.presets import preset
from fenchel.report.findings import Findings, silent
from fenchel.report.pictures.album import PARTS, picture_report
from fenchel.report.pictures.box_likelihood import box_likelihood, box_noise
from fenchel.report.pictures.energies import Drawn, energies_of
from fenchel.report.pictures.evaluation import evaluate_pictures
from fenchel.report.pictures.features import Features, add_coverage, add_distances
from fenchel.report.pictures.movement import movement
from fenchel.report.pictures.neighbours import Space, View, add_memorisation
from fenchel.report.pictures.networks import load_networks
from fenchel.report.pictures.opened import open_picture_run
from fenchel.result import Fit
from fenchel.runs import RunFolder
from fenchel.samplers import Embedding

SHAPE = (8, 8, 1)
STEPS = 40
FIGURES = {"samples.png", "neighbours.png", "energies.png"}


def pictures(n, seed, shape=SHAPE):
    """Noise with a dark upper half."""
    x = np.random.default_rng(seed).integers(0, 256, (n, *shape), dtype=np.uint8)
    x[:, : shape[0] // 2] //= 4
    return x


pytestmark = pytest.mark.usefixtures("compiled_once")


@pytest.fixture(scope="module", autouse=True)
def few():
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("fenchel.drawing.CHUNK", 64)
        patch.setattr("fenchel.report.pictures.energies.PART", 64)
        patch.setattr("fenchel.report.pictures.evaluation.MOVED", 64)
        patch.setattr("fenchel.report.pictures.box_likelihood.DRAWS", 128)
        yield


@pytest.fixture(scope="module")
def data(tmp_path_factory):
    path = tmp_path_factory.mktemp("data") / "noise.npz"
    np.savez(path, x_train=pictures(64, 0), x_test=pictures(32, 1))
    return path


@pytest.fixture(scope="module")
def folder(tmp_path_factory, data, compiled_once):
    """A run as it is before its first iteration: enough to be judged, and quickly made."""
    tiny = {"potential__precision": "float32", "start__precision": "float32"}
    config = preset("mnist").with_values(
        potential__width=4, start__width=4, start__latent=8, dynamics__steps=3,
        training__steps=STEPS, pictures__shape=SHAPE, **tiny,
    )  # fmt: skip
    dim = int(np.prod(SHAPE))
    model = build_model(config, dim)
    points = jnp.zeros((1, dim))
    scaling = Standardiser.of_levels(dim, 1.0)
    sampler = model.sampler.settled(jax.random.key(0))
    columns = default_columns(dim)
    fit = Fit(model.potential, sampler, None, points, scaling, config, columns, "noise")
    path = tmp_path_factory.mktemp("runs") / "run"
    fit.save(path)
    train = Pictures(pictures(64, 0), "under another name")
    record = {"format": "fenchel-run", "config": config.to_dict(), "data": train.fingerprint()}
    run = RunFolder(path)
    run.config_file.write_text(json.dumps(record))
    energies = {"potential_data": 0.3, "potential_draws": 0.1, "lag": 0.2, "loss": 0.0}
    for iteration in (20, STEPS):
        run.write_metrics({"iteration": iteration, "skipped": 1, "events": [], **energies})
    return path


@pytest.fixture(scope="module")
def run(folder, data):
    return open_picture_run(folder, str(data))


@pytest.fixture(scope="module")
def networks(tmp_path_factory, tiny_inception):
    """A folder with both networks."""
    path = tmp_path_factory.mktemp("networks")
    shutil.copy(tiny_inception, path / "fid_tiny.npz")
    pool = {"op": "AVERAGE_POOL_2D", "k": [299, 299], "stride": [1, 1], "pad": "VALID"}
    mix = {"op": "CONV_2D", "key": "mix", "k": [1, 1], "stride": [1, 1], "pad": "SAME"}
    mix |= {"act": 0, "out_scale": 0.02, "out_zp": 128}
    graph = [
        {**pool, "in": ["input"], "out": "mean"},
        {**mix, "in": ["mean"], "out": "classes"},
        {"op": "RESHAPE", "in": ["classes", "shape"], "out": "output"},
    ]
    arrays = {
        "mix.wq": np.random.default_rng(0).integers(0, 256, (5, 3, 1, 1), dtype=np.uint8),
        "mix.wzp": np.int32(128),
        "mix.wscale": np.float32(0.1),
        "mix.bias": np.zeros(5, np.float32),
    }
    text = np.frombuffer(json.dumps(graph).encode(), np.uint8)
    np.savez(path / "slim_tiny.npz", graph_json=text, **arrays)
    return path


@pytest.fixture(scope="module")
def whole(run, networks):
    """With everything that there is."""
    return evaluate_pictures(run, load_networks(networks), [32, 16])


def named(found):
    return {line.name: line for line in found.lines}


def test_everything_is_said_and_drawn(whole, folder):
    lines, values = named(whole), whole.values
    assert lines["training"].value == "all 40 steps done"
    assert "2 step(s) dropped" in lines["training"].meaning
    assert lines["pictures"].verdict == ""  # they are the fit's own, whatever they are called
    assert "32 held-out pictures are a perfect sampler's" in lines["FID at 32 samples"].meaning
    assert "Published ones are of 10,000 or 50,000" in lines["FID at 16 samples"].meaning
    assert values["fid_16_floor_pictures"] == 16
    assert "0.672" in lines["IS-slim"].meaning
    ratio = values["is_slim"] / values["is_slim_training"]
    assert values["is_slim_ratio"] == pytest.approx(ratio)
    assert {"nearest features", "energy overlap", "what the dynamics move"} <= lines.keys()
    assert {f"nearest training pictures, by {s}" for s in ("pixels", "features")} <= lines.keys()
    assert {path.name for path in (folder / "figures").iterdir()} == FIGURES
    assert json.loads(json.dumps(values, allow_nan=False)) == values


def test_every_line_says_what_it_means(whole):
    for line in whole.lines:
        assert line.verdict in ("good", "caution", "bad", "")
        assert line.meaning.endswith((".", "?"))
        assert "nan" not in line.value.lower()


def test_without_networks_all_else_is_done_and_it_is_said_how_to_get_them(run):
    found = evaluate_pictures(run)
    assert "--networks FOLDER" in named(found)["FID"].meaning
    assert found.values["samples"] == 32  # as many as are held out
    assert "usual are 10,000" in named(found)["pictures"].meaning
    assert "energy overlap" in named(found)


@pytest.mark.usefixtures("at_hand")
def test_without_held_out_pictures_the_floor_is_missing_and_that_is_said(folder, tmp_path):
    np.savez(tmp_path / "all.npz", x_train=pictures(64, 0))
    alone = open_picture_run(folder, str(tmp_path / "all.npz"))
    found = named(evaluate_pictures(alone, counts=[16]))
    assert found["pictures"].verdict == "caution"
    assert "No picture is held out" in found["pictures"].meaning
    assert found["nearest training pictures, by pixels"].verdict == ""
    assert "at 64 training pictures" in found["energy overlap"].meaning


@pytest.mark.usefixtures("at_hand")
def test_other_training_pictures_than_the_fits_are_noticed(folder, tmp_path):
    np.savez(tmp_path / "others.npz", x_train=pictures(20, 3), x_test=pictures(20, 4))
    others = open_picture_run(folder, str(tmp_path / "others.npz"))
    assert not others.own
    assert (
        "not those of the fit" in named(evaluate_pictures(others, counts=[16]))["pictures"].meaning
    )


def test_a_run_that_was_stopped_midway_says_so(run):
    found = evaluate_pictures(run._replace(rows=run.rows[:1]), counts=[16])
    assert found.verdict.value == "stopped at step 20 of 40"
    assert named(found)["training"].verdict == "caution"


def rows(n, seed, shift=0.0):
    return np.random.default_rng(seed).normal(shift, 1.0, (n, 8)).astype(np.float32)


@pytest.mark.parametrize(("shift", "verdict"), [(0.0, "good"), (2.0, "caution"), (9.0, "bad")])
def test_the_distance_of_samples_is_judged_by_that_of_held_out_pictures(shift, verdict):
    found = Findings(silent)
    add_distances(found, Features(rows(900, 0), rows(400, 1, shift), rows(300, 2)), [200, 400])
    assert [line.verdict for line in found.lines] == [verdict, verdict]
    # Means that are so far apart in each of 8 columns; all else is noise of a few tenths.
    assert found.values["fid_400"] == pytest.approx(8 * shift**2, rel=0.05, abs=0.5)
    assert found.values["fid_400_floor_pictures"] == 300
    assert 0 < found.values["fid_400_baseline"] < found.values["fid_200_baseline"]


def test_samples_are_held_against_as_many_held_out_pictures():
    """Of 40 the distance is larger by chance alone: 4,000 samples half as wide do not make up."""
    found, drawn = Findings(silent), np.concatenate([rows(40, 1, 4.0), rows(3_960, 3)])
    add_distances(found, Features(rows(900, 0), drawn, rows(40, 2)), [4_000])
    assert found.values["fid_4000"] < 10 < found.values["fid_4000_as_many"]
    assert "as many samples" in found.lines[0].value
    assert found.lines[0].verdict == "bad"


def test_a_distance_of_few_samples_is_not_to_be_published():
    found = Findings(silent)
    add_distances(found, Features(rows(900, 0), rows(8, 1), None), [8])
    assert "no more samples than features (8)" in found.lines[0].meaning
    assert found.lines[0].verdict == ""  # nothing to judge it by


def test_coverage_is_judged_by_that_of_held_out_pictures():
    found = Findings(silent)
    add_coverage(found, Features(rows(300, 0), rows(300, 1), rows(300, 2)))
    add_coverage(found, Features(rows(300, 0), rows(300, 1, 9.0), rows(300, 2)))
    add_coverage(found, Features(rows(300, 0), rows(300, 1), None))
    assert [line.verdict for line in found.lines] == ["good", "bad", ""]


def test_pictures_known_by_heart_are_noticed():
    train, held_out = pictures(200, 0), pictures(200, 1)
    samples = {"fresh": pictures(100, 2), "copied": train[:100]}
    shares = {}
    for name, drawn in samples.items():
        found = Findings(silent)
        add_memorisation(found, Space("pixels", train, [View(np.asarray, drawn, held_out)]))
        shares[name] = found.lines[0].verdict, found.values["near_pixels"]
    assert shares == {"fresh": ("good", pytest.approx(0.01, abs=0.03)), "copied": ("bad", 1.0)}


@pytest.fixture
def mirrored(run):
    """The same run, as if it had been shown every second picture in a mirror."""
    config = run.fit.config.with_values(pictures__flips=True)
    return run._replace(fit=replace(run.fit, config=config))


def test_pictures_known_by_heart_in_a_mirror_are_noticed(
    run, mirrored, networks, monkeypatch, folder
):
    copies = Drawn(run.train.x[:, :, ::-1], np.zeros(64))
    monkeypatch.setattr("fenchel.report.pictures.evaluation.drawn_pictures", lambda *_: copies)
    shares, firsts = {}, {}
    for name, which in (("never shown", run), ("shown", mirrored)):
        eyes = load_networks(networks)._replace(slim=None)
        values = evaluate_pictures(which, eyes, [16]).values
        shares[name] = [values[f"near_{space}"] for space in ("pixels", "features")]
        # Cells of 8 and a gap of 2, zoomed twice: the sample, paper, its neighbours by pixels.
        figure = np.asarray(Image.open(values["figures"]["neighbours"]))
        firsts[name] = np.array_equal(figure[:16, :16], figure[:16, 40:56])
    assert max(shares["never shown"]) < 0.5
    assert shares["shown"] == [1.0, 1.0]
    assert firsts == {"never shown": False, "shown": True}


def test_distances_are_of_the_nearer_of_a_picture_and_its_mirror_image(mirrored, monkeypatch):
    drawn = pictures(20, 5)
    train = mirrored.train.x.reshape(64, -1).astype(float)
    turned = mirrored.train.x[:, :, ::-1].reshape(64, -1).astype(float)
    shown = np.concatenate([train, turned])
    medians = [
        np.median([np.linalg.norm(shown - x.ravel(), axis=1).min() for x in asked])
        for asked in (drawn, mirrored.held_out.x)
    ]
    copies = Drawn(drawn, np.zeros(20))
    monkeypatch.setattr("fenchel.report.pictures.evaluation.drawn_pictures", lambda *_: copies)
    values = evaluate_pictures(mirrored, counts=[20]).values
    found = [values["nearest_pixels"], values["nearest_pixels_held_out"]]
    np.testing.assert_allclose(found, medians, rtol=1e-5)


def test_the_movement_is_that_of_the_trace(run):
    fit = run.fit
    # One chunk of draws, with the keys that `Drawing` makes of the seed.
    own = jax.random.split(jax.random.key(5), 1)[0]
    draw_key = jax.random.split(own)[1]
    frames = fit.sampler.trace(fit.f, jnp.zeros((64, fit.dim)), fit.sampler_state, draw_key)
    moved = movement(fit, 64, 5)
    change = np.abs(np.asarray(frames[-1] - frames[0])).mean()
    assert moved.levels == pytest.approx(128 * change, rel=1e-4)
    assert moved.levels > 0


def test_dynamics_that_do_nothing_are_noticed(run):
    idle = replace(run.fit, sampler=Embedding(run.fit.sampler.start, Chain()))
    assert movement(idle, 16, 0).levels == 0
    found = named(evaluate_pictures(run._replace(fit=idle), counts=[16]))
    assert found["what the dynamics move"].verdict == "caution"
    assert "start alone" in found["what the dynamics move"].meaning


class Constant(eqx.Module):
    """f that is the same everywhere."""

    value: float = eqx.field(static=True)

    def __call__(self, x):
        return jnp.full((), self.value, x.dtype)


def test_a_constant_f_has_the_likelihood_of_uniform_noise(run):
    flat = run._replace(fit=replace(run.fit, f=Constant(0.25)))
    drawn = Drawn(pictures(16, 2), np.full(16, 0.25))
    f = energies_of(flat, drawn, seed=0)
    score = box_likelihood(f.real, f.noise, flat.fit.standardiser, 1.0)
    assert score.nats == pytest.approx(-64 * np.log(2), rel=1e-12)
    assert score.bits == pytest.approx(8.0, rel=1e-12)
    assert score.standard_error < 1e-12
    assert score.worth_nothing == ""


def test_a_likelihood_in_the_box_by_its_integral():
    scaling = Standardiser.of_levels(2, 1.0)
    z = scaling.forward(box_noise(scaling, 0))
    data = np.random.default_rng(1).uniform(-0.5, 0.5, (500, 2))
    grid = np.linspace(-1, 1, 20_001)
    log_partition = 2 * np.log(np.exp(-2 * grid**2).mean() * 2)
    score = box_likelihood(-2 * (data**2).sum(1), -2 * (z**2).sum(1), scaling, 1.0)
    exact = (-2 * data**2).sum(1).mean() - log_partition
    # Of log Z's error alone: the data are the same.
    assert score.nats == pytest.approx(exact, abs=5 * score.log_partition.standard_error)
    # A density p in these units has p/128² in grey levels.
    assert score.bits == pytest.approx((7 * 2 * np.log(2) - score.nats) / (2 * np.log(2)))


def test_a_likelihood_that_is_worth_nothing_says_so():
    scaling = Standardiser.of_levels(64, 1.0)
    noise = np.random.default_rng(0).normal(size=128)
    far = box_likelihood(np.full(50, 0.1), 1e3 * noise, scaling, 1.0)
    assert "draws count" in far.worth_nothing
    above = box_likelihood(np.full(50, 1e4), noise, scaling, 1.0)
    assert "impossible" in above.worth_nothing
    assert box_likelihood(np.full(50, 0.1), noise, scaling, 0.0).bits is None


def test_what_is_fitted_depends_on_the_entropys_coefficient(run, whole):
    assert run.fit.temperature == 1e-5
    assert whole.values["log_likelihood_uniform_fitted_coefficient"] == 1e-5
    one = replace(run.fit, config=run.fit.config.with_values(training__entropy=1.0))
    assert one.temperature == 1.0


@pytest.fixture
def call(call):
    """`fenchel evaluate`."""
    return partial(call, "evaluate")


@pytest.fixture
def at_hand(monkeypatch, run):
    """The model need not be read again, which takes seconds."""
    monkeypatch.setattr("fenchel.report.pictures.opened.load", lambda path: run.fit)


@pytest.mark.usefixtures("at_hand")
def test_the_command_prints_a_table_or_json(call, folder, data):
    code, printed, _ = call(folder, data, "--images", "--n", "16")
    assert code == 0
    assert "energy overlap" in printed
    assert "neighbours.png" in printed
    code, printed, _ = call(folder, data, "--n", "16", "--json")
    found = json.loads(printed)
    assert (code, found["values"]["samples"]) == (0, 16)
    assert found["verdict"]["value"] == "all 40 steps done"


@pytest.fixture(scope="module")
def untouched(tmp_path_factory, folder):
    """The same run, before it was ever evaluated."""
    path = tmp_path_factory.mktemp("runs") / "untouched"
    shutil.copytree(folder, path, ignore=shutil.ignore_patterns("figures"))
    return path


@pytest.mark.usefixtures("at_hand")
@pytest.mark.parametrize(
    ("options", "answer"),
    [
        (["{data}", "--n", "0"], "FID of 0 samples was asked for: ask for at least 16."),
        (["{data}", "--n", "16,3"], "FID of 3 samples"),
        (["{data}", "--n", "many"], "write 10000,50000"),
        (["{data}", "--networks", "{tmp}"], "has no file fid*.npz"),
        (["{data}", "--networks", "{tmp}/nowhere"], "has no file fid*.npz"),
        (["{large}"], "holds pictures of shape (12, 12, 1) and the model knows those of (8, 8, 1)"),
        (["{few}"], "has a part of 3 pictures"),
        ([], "give them, as in fenchel evaluate"),
    ],
)
def test_mistakes_are_answered_and_nothing_is_written(
    call, untouched, data, tmp_path, options, answer
):
    large, too_few = tmp_path / "large.npz", tmp_path / "few.npz"
    np.savez(large, x_train=pictures(20, 0, (12, 12, 1)))
    np.savez(too_few, x_train=pictures(20, 0), x_test=pictures(3, 1))
    places = {"data": data, "tmp": tmp_path, "large": large, "few": too_few}
    code, printed, said = call(untouched, *(option.format(**places) for option in options))
    assert (code, printed) == (2, "")
    assert answer in said
    assert not (untouched / "figures").exists()


@pytest.mark.parametrize("option", [["--images"], ["--n", "16"], ["--networks", "here"]])
def test_a_run_of_a_table_is_refused(call, tmp_path, option):
    record = {"format": "fenchel-run", "config": Config().to_dict(), "data": {"name": "moons"}}
    (tmp_path / "config.json").write_text(json.dumps(record))
    code, _, said = call(tmp_path, *option)
    assert code == 2
    assert "was fitted to a table, not to pictures" in said


def test_two_files_for_one_network_are_refused(networks, tmp_path):
    for name in ("fid_a.npz", "fid_b.npz"):
        shutil.copy(networks / "fid_tiny.npz", tmp_path / name)
    with pytest.raises(InputError, match="2 files fid"):
        load_networks(tmp_path)


def test_the_score_is_optional(networks, tmp_path):
    shutil.copy(networks / "fid_tiny.npz", tmp_path / "fid.npz")
    assert load_networks(tmp_path).slim is None


# The page.


def shown(text):
    """The pictures in a page, by what they are said to be."""
    found = re.findall(r'<img src="data:image/png;base64,([^"]*)" alt="([^"]*)">', text)
    return {
        what: np.asarray(Image.open(io.BytesIO(base64.b64decode(png, validate=True))))
        for png, what in found
    }


def report(run, evaluation):
    return picture_report(run, evaluation, "noise <b>.npz")


def test_a_page_shows_what_was_evaluated(run, whole):
    text = report(run, whole)
    for part in PARTS:
        assert f'<section id="{part}"' in text
        assert f'href="#{part}"' in text
    assert whole.verdict.meaning in text
    assert f"{whole.values['fid_32']:.2f}</dd>" in text  # of the most samples
    assert "64 pictures, 8 × 8, grey" in text
    assert "the same data" in text
    pages = shown(text)
    assert len(pages) == 5
    for name, what in (("samples", "A grid of samples"), ("neighbours", "Samples with the")):
        (picture,) = (pixels for title, pixels in pages.items() if title.startswith(what))
        np.testing.assert_array_equal(picture, Image.open(whole.values["figures"][name]))


def test_a_page_shows_how_the_dynamics_change_pictures(run, whole):
    text = report(run, whole)
    steps = shown(text)["Pictures as the dynamics change them."]
    # Six pictures at the start and after each of their steps, and the change; zoomed twice, with a
    # gap between any two.
    count = run.fit.config.dynamics.steps + 2
    assert steps.shape == (2 * (6 * 10 - 2), 2 * (count * 10 - 2))
    idle = replace(run.fit, sampler=Embedding(run.fit.sampler.start, Chain()))
    still = report(run._replace(fit=idle), whole)
    assert "This sampler has none" in still
    assert len(shown(still)) == 4


def test_a_page_keeps_names_as_text(run, whole):
    text = report(run, whole)
    assert "noise <b>" not in text
    assert "noise &lt;b&gt;.npz" in text
    assert not re.search(r"https?://", text)


def test_the_command_writes_the_page(folder, data, tmp_path, call):
    path = tmp_path / "page.html"
    code, out, _ = call.func("report", folder, data, "--n", 16, "--out", path, "--json")
    assert code == 0
    assert json.loads(out) == {"report": str(path), "bytes": path.stat().st_size}
    assert "--networks FOLDER" in path.read_text(encoding="utf-8")
    code, _, said = call.func("report", folder, "--out", path)
    assert code == 2
    assert f"as in fenchel report {folder} DATA" in said.replace("\n", "")
