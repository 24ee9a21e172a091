"""Every method by its name: fitted in one call, saved, loaded, drawn from, and refused."""

import json
from dataclasses import replace
from functools import cache

import numpy as np
import pytest

import fenchel as fx
from fenchel.cli import main
from fenchel.config import Config
from fenchel.methods import METHODS

pytestmark = pytest.mark.usefixtures("compiled_once", "few_draws")

TINY = Config().with_values(
    potential__width=8,
    potential__depth=1,
    start__kind="coupling",
    start__width=8,
    start__depth=1,
    start__layers=1,
    estimator__k=2,
    estimator__nodes=12,
    estimator__chains=32,
    training__steps=4,
    training__batch=16,
    training__block=4,
)
RNG = np.random.default_rng(0)
PLANE = RNG.normal(size=(300, 2)) * [2.0, 0.5] + [5.0, -1.0]
SPINS = np.where(RNG.uniform(size=(300, 4)) < [0.3, 0.5, 0.6, 0.8], 1, 0)


@cache
def fit_of_plane(name):
    """Fitted once, for all tests that only look at it."""
    return fx.fit(PLANE, name, config=TINY, progress=False)


@cache
def fit_of_spins(name):
    return fx.fit(SPINS, name, potential="ising", config=TINY, progress=False)


def check(fit, data, folder):
    """A fitted model scores and draws, and comes back from disk as it was."""
    drawn = fit.sample(20)
    assert drawn.shape == (20, data.shape[1])
    assert np.isfinite(drawn).all()
    fit.save(folder)
    loaded = fx.load(folder)
    np.testing.assert_array_equal(loaded.potential(data), fit.potential(data))
    np.testing.assert_array_equal(loaded.sample(20), drawn)
    if fit.has_log_partition:
        np.testing.assert_array_equal(loaded.log_density(data), fit.log_density(data))


CONTINUOUS = [name for name in METHODS if name not in ("ade", "composite-likelihood")]


@pytest.mark.parametrize("name", CONTINUOUS)
def test_continuous(name, tmp_path):
    fit = fit_of_plane(name)
    assert fit.has_log_partition  # in the plane by quadrature, if by nothing else
    check(fit, PLANE, tmp_path / "model")


def test_blocks_of_four_columns(tmp_path):
    data = RNG.normal(size=(100, 4))
    fit = fx.fit(data, "composite-likelihood", config=TINY, progress=False)
    check(fit, data, tmp_path / "model")
    assert not fit.has_log_partition
    with pytest.raises(fx.InputError, match="4 columns are too many"):
        fit.log_density(data)


DISCRETE = [name for name, method in METHODS.items() if method.discrete]


@pytest.mark.parametrize("name", DISCRETE)
def test_discrete(name, tmp_path):
    fit = fit_of_spins(name)
    assert set(np.unique(fit.sample(50))) == {0, 1}  # in the data's own values
    states = np.array(np.meshgrid(*[[0, 1]] * 4)).reshape(4, -1).T
    assert np.exp(fit.log_density(states)).sum() == pytest.approx(1.0, rel=1e-5)
    check(fit, SPINS, tmp_path / "model")


@pytest.mark.parametrize("kind", ["potts", "rbm"])
def test_other_discrete_models(kind, tmp_path):
    data = RNG.integers(1, 4, size=(200, 3)) if kind == "potts" else SPINS
    fit = fx.fit(data, "pcd", potential=kind, config=TINY, progress=False)
    assert set(np.unique(fit.sample(50))) <= set(np.unique(data))
    check(fit, data, tmp_path / "model")


def test_discrete_data_choose_their_model():
    two = fx.fit(SPINS, "pseudo-likelihood", potential="discrete", config=TINY, progress=False)
    assert two.config.potential.kind == "ising"
    data = RNG.integers(0, 3, size=(200, 3))
    three = fx.fit(data, "pseudo-likelihood", potential="discrete", config=TINY, progress=False)
    assert (three.config.potential.kind, three.config.potential.states) == ("potts", 3)


def test_what_does_not_fall_off_has_no_integral():
    flat = fx.potentials.Linear(lambda x: 1e-3 * x[0], 2)
    fit = replace(fit_of_plane("score-matching"), f=flat)
    with pytest.raises(fx.InputError, match="does not fall off"):
        fit.log_density(PLANE)


def test_an_estimator_of_ones_own():
    own = fx.estimators.ScoreMatching()
    fit = fx.fit(PLANE, own, config=TINY, progress=False)
    named = fit_of_plane("score-matching")
    np.testing.assert_array_equal(fit.potential(PLANE), named.potential(PLANE))
    assert fit.config.method == "custom"


def test_a_domain(tmp_path):
    """Bounds in the data's units; the density is within them, and integrates to one there."""
    data = RNG.uniform(size=(300, 1)) ** 2 * 3
    fit = fx.fit(data, "score-matching", domain=(0.0, 3.0), config=TINY, progress=False)
    inside = np.linspace(0.0005, 2.9995, 3_000)[:, None]
    assert np.exp(fit.log_density(inside)).mean() * 3 == pytest.approx(1.0, abs=1e-3)
    assert np.all(fit.log_density([[-0.1], [3.1]]) == -np.inf)
    drawn = fit.sample(50)
    assert drawn.min() >= 0
    assert drawn.max() <= 3
    fit.save(tmp_path / "model")
    np.testing.assert_array_equal(fx.load(tmp_path / "model").potential(data), fit.potential(data))


def test_a_half_line(tmp_path):
    """One end is infinite, which is no reason not to write the model."""
    data = RNG.exponential(size=(300, 1))
    run = tmp_path / "run"
    fit = fx.fit(data, "score-matching", domain=(0.0, np.inf), config=TINY, out=run, progress=False)
    np.testing.assert_array_equal(fx.load(run).log_density(data), fit.log_density(data))
    assert fit.sample(50).min() >= 0


def test_noise_contrast_as_an_object_learns_its_constant(tmp_path):
    own = fx.estimators.NoiseContrastive(ratio=2)
    fit = fx.fit(PLANE, own, config=TINY, progress=False)
    assert fit.f.log_normaliser != 0
    fit.save(tmp_path / "model")
    np.testing.assert_array_equal(fx.load(tmp_path / "model").sample(5), fit.sample(5))


def test_values_that_are_no_states():
    fit = fit_of_spins("pseudo-likelihood")
    with pytest.raises(fx.InputError, match="none of this model's states"):
        fit.log_density(SPINS + 0.5)


def test_a_flow_as_noise():
    config = TINY.with_values(estimator__noise="flow")
    fit = fx.fit(PLANE, "nce", config=config, progress=False)
    assert np.isfinite(fit.log_density(PLANE)).all()


REFUSED = {
    "unknown": ((PLANE, "contrastive"), {}, "no method called"),
    "gradients of spins": ((SPINS, "score-matching"), {"potential": "ising"}, "discrete: choose"),
    "noise on spins": ((SPINS, "nce"), {"potential": "ising"}, "discrete: choose"),
    "sampler of spins": ((SPINS, "ade"), {"potential": "rbm"}, "discrete: choose"),
    "too many columns": ((RNG.normal(size=(50, 3)), "mle"), {}, "1 or 2 continuous columns"),
    "whole block": ((PLANE, "composite-likelihood"), {}, "use the method mle"),
    "dynamics": ((PLANE, "cd"), {"dynamics": "hmc"}, "learns no sampler"),
    "nf with dynamics": ((PLANE, "nf"), {"dynamics": "langevin"}, "without dynamics"),
    "three values": (
        (RNG.integers(0, 3, size=(50, 3)), "cd"),
        {"potential": "ising"},
        "use a potts model",
    ),
    "halves": ((SPINS * 0.5 + [0, 1, 0, 0], "cd"), {"potential": "potts"}, "whole numbers"),
    "outside": ((PLANE, "score-matching"), {"domain": (0.0, 1.0)}, "outside of the domain"),
    "backwards": ((PLANE, "score-matching"), {"domain": (9.0, -9.0)}, "low and its high"),
    "domain of stein": ((PLANE, "kernel-stein"), {"domain": (-99.0, 99.0)}, "keep to a domain"),
    "domain, no pair": ((PLANE, "score-matching"), {"domain": 5}, "low and its high"),
    "object in a domain": (
        (PLANE, fx.estimators.ScoreMatching()),
        {"domain": (-99.0, 99.0)},
        "methods given by name",
    ),
    "no method": ((PLANE, 3), {}, "a name or an estimator"),
    "hmc for nf": ((PLANE, "nf"), {"dynamics": "hmc"}, "without dynamics"),
    "blocks beyond": (
        (PLANE, fx.estimators.CompositeLikelihood([(0, 5)])),
        {},
        "names coordinate 5",
    ),
    "own Potts, far values": (
        (SPINS * 5, "cd"),
        {"potential": fx.potentials.Potts(4, 3)},
        "use a potts model",
    ),
    "domain of ade": ((PLANE, "ade"), {"domain": (-99.0, 99.0)}, "take logarithms"),
}


@pytest.mark.parametrize("name", list(REFUSED))
def test_refused_in_one_sentence(name):
    arguments, settings, words = REFUSED[name]
    with pytest.raises(fx.InputError, match=words):
        fx.fit(*arguments, **settings, config=TINY, progress=False)


@pytest.mark.parametrize(
    ("setting", "value"), [("k", 0), ("sigma", -1.0), ("ratio", 0), ("step_size", 0.0)]
)
def test_bad_settings(setting, value):
    with pytest.raises(fx.InputError, match=f"estimator.{setting}"):
        Config().with_values(**{f"estimator__{setting}": value})


def test_settings_that_do_not_go_with_the_method():
    for method, values, words in (
        ("score-matching", {"potential__activation": "relu"}, "a ReLU net has none"),
        ("cd", {"estimator__metropolis": False, "potential__domain": (-99.0, 99.0)}, "Metropolis"),
        ("kernel-stein", {"training__batch": 1}, "batches of two"),
    ):
        with pytest.raises(fx.InputError, match=words):
            fx.fit(PLANE, method, config=TINY.with_values(**values), progress=False)
    config = TINY.with_values(estimator__block=3)
    with pytest.raises(fx.InputError, match="1 or 2"):
        fx.fit(RNG.normal(size=(50, 4)), "composite-likelihood", config=config, progress=False)
    with pytest.raises(fx.InputError, match="hidden unit"):
        fx.fit(SPINS, "cd", config=TINY.with_values(potential__units=0, potential__kind="rbm"))


def test_bad_names():
    for setting, words in (("kernel", "kernel"), ("stein_kernel", "Stein"), ("noise", "noise")):
        method = {"kernel": "cd", "stein_kernel": "kernel-stein", "noise": "nce"}[setting]
        config = TINY.with_values(**{f"estimator__{setting}": "cubic"})
        with pytest.raises(fx.InputError, match=f"no {words}"):
            fx.fit(PLANE, method, config=config, progress=False)
    config = TINY.with_values(potential__graph="3x3")
    with pytest.raises(fx.InputError, match="4 places"):
        fx.fit(SPINS, "cd", potential="ising", config=config, progress=False)


def call(monkeypatch, *arguments):
    monkeypatch.setattr("sys.argv", ["fenchel", *map(str, arguments)])
    try:
        main()
    except SystemExit as stop:
        return stop.code
    return 0


def test_the_table_of_methods(monkeypatch, capsys):
    assert call(monkeypatch, "methods", "--json") == 0
    rows = json.loads(capsys.readouterr().out)
    assert [row["name"] for row in rows] == list(METHODS)
    assert all(row["needs"] and row["gives"] and row["cost"] for row in rows)
    assert call(monkeypatch, "methods") == 0
    text = capsys.readouterr().out
    assert all(name.split("-")[0] in text for name in METHODS)


def test_a_classical_run_from_the_command_line(monkeypatch, tmp_path, capsys):
    """Written, resumed, and without what it has not."""
    np.savetxt(tmp_path / "spins.csv", SPINS, delimiter=",", header="a,b,c,d", comments="")
    run = tmp_path / "run"
    settings = tmp_path / "settings.toml"
    settings.write_text(
        "[training]\nbatch = 16\nsteps = 4\nblock = 4\n[estimator]\nk = 2\nchains = 32\n"
    )
    fit = ["fit", tmp_path / "spins.csv", "--out", run, "--json"]
    options = ["--config", settings, "--method", "pcd", "--potential", "ising"]
    assert call(monkeypatch, *fit, *options) == 0
    assert "log_partition" in json.loads(capsys.readouterr().out)
    figures = {path.name for path in (run / "figures").iterdir()}
    assert figures == {"samples.png", "density.png", "training.png"}  # by enumeration
    assert call(monkeypatch, *fit, "--resume") == 0
    bad = ["fit", "moons", "--out", tmp_path / "no", "--domain", "0;1"]
    assert call(monkeypatch, *bad) == 2
    assert "write it as 0,1" in capsys.readouterr().err
    assert not (tmp_path / "no").exists()
