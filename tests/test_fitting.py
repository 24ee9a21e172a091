"""`fit`: from data to a model in one call, with whatever the user brings."""

from functools import partial

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

import fenchel as fx
from fenchel import fitting
from fenchel.config import Config, DynamicsConfig, PotentialConfig, StartConfig, TrainingConfig
from fenchel.data import load_samples
from fenchel.errors import InputError

TINY = Config(
    potential=PotentialConfig(width=8, depth=1),
    start=StartConfig(kind="planar", layers=1, width=8, depth=1, capacity=2_048),
    dynamics=DynamicsConfig(steps=1),
    training=TrainingConfig(steps=12, batch=8, sampler_steps=1, block=2, checkpoint_every=4),
)
X = np.random.default_rng(0).normal(size=(60, 2)) * [1.0, 3.0] + [5.0, 0.0]


pytestmark = pytest.mark.usefixtures("compiled_once")


class Notes:
    """A watcher that writes down what it is told."""

    def __init__(self):
        self.rows, self.begun, self.inside = [], None, False

    def __enter__(self):
        self.inside = True
        return self

    def __exit__(self, *_):
        self.inside = False

    def begin(self, steps, done):
        assert self.inside
        self.begun = (steps, done)

    def block(self, row):
        assert self.inside
        self.rows.append(row)


def fit(x=X, config=TINY, progress=False, **values) -> fx.Fit:
    return fx.fit(x, config=config, progress=progress, **values)


@pytest.fixture(scope="module")
def fitted() -> tuple[fx.Fit, Notes]:
    notes = Notes()
    return fit(progress=notes), notes


def finite(model: fx.Fit) -> bool:
    arrays = eqx.filter((model.f, model.sampler, model.sampler_state), eqx.is_inexact_array)
    return all(np.isfinite(leaf).all() for leaf in jax.tree.leaves(arrays))


def test_an_array(fitted):
    model, _ = fitted
    draws = model.sample(7)
    assert draws.shape == (7, 2)
    assert np.isfinite(draws).all()
    assert finite(model)
    assert (model.name, model.columns, model.dim) == ("array", ("x1", "x2"), 2)
    assert model.config == TINY
    np.testing.assert_allclose(model.standardiser.mean, X.mean(axis=0), rtol=1e-12)
    np.testing.assert_array_equal(
        model.potential(X) - model.log_partition().estimate, model.log_density(X)
    )
    assert (model.sample(7) != model.sample(7, corrected=False)).any()


def test_the_watcher_is_told(fitted):
    _, notes = fitted
    assert notes.begun == (12, 0)
    assert not notes.inside
    assert [row["iteration"] for row in notes.rows] == [2, 4, 6, 8, 10, 12]
    row = notes.rows[-1]
    assert row["events"] == []
    assert row["skipped"] == 0
    assert (row["potential_rate"], row["sampler_rate"]) == (1.0, 1.0)
    assert 0 < row["ess"] <= 1
    assert row["log_partition_lower"] <= row["log_partition"]
    assert row["acceptance"] is None


def test_the_seed_is_all_the_randomness(fitted):
    model, _ = fitted
    again, other = fit(), fit(seed=1)
    np.testing.assert_array_equal(model.potential(X), again.potential(X))
    np.testing.assert_array_equal(model.sample(7), again.sample(7))
    assert other.config.seed == 1
    assert (model.potential(X) != other.potential(X)).all()


def test_training_moved_the_parameters(fitted):
    model, _ = fitted
    still = fitting.build(TINY, 2)
    assert (
        model.f.potential.net.layers[0].weight != still.potential.potential.net.layers[0].weight
    ).any()


def test_units_by_a_power_of_two_change_no_bit_of_the_training(fitted):
    (model, _), scale = fitted, 2.0**-20
    scaled = fit(X * scale)
    np.testing.assert_array_equal(model.potential(X), scaled.potential(X * scale))
    np.testing.assert_array_equal(model.sample(7) * scale, scaled.sample(7))
    np.testing.assert_allclose(
        model.log_density(X) - scaled.log_density(X * scale), 2 * np.log(scale), rtol=1e-9
    )


@pytest.mark.parametrize(("scale", "shift"), [(1e-6, 1.0), (1e6, -1e9)])
def test_units_and_origin_change_the_density_by_the_jacobian(fitted, scale, shift):
    model, _ = fitted
    moved = fit(X * scale + shift)
    np.testing.assert_allclose(
        model.log_density(X) - moved.log_density(X * scale + shift), 2 * np.log(scale), atol=1e-2
    )
    ours, theirs = (m.standardiser.forward(m.sample(7)) for m in (model, moved))
    np.testing.assert_allclose(ours, theirs, atol=1e-2)


def test_a_toy_by_name(monkeypatch):
    monkeypatch.setattr(fitting, "load_samples", partial(load_samples, size=60))
    model = fit("moons")
    assert model.name == "moons"
    assert finite(model)


def test_a_file(fitted, tmp_path):
    model, _ = fitted
    np.savetxt(tmp_path / "table.csv", X, "%.17g", ",", header="left,right", comments="")
    named = fit(str(tmp_path / "table.csv"))
    assert (named.name, named.columns) == ("table", ("left", "right"))
    np.testing.assert_array_equal(named.potential(X), model.potential(X))


def test_many_dimensions():
    x = np.random.default_rng(0).normal(size=(60, 100))
    model = fit(x, steps=2, potential="gaussian")
    assert finite(model)
    draws = model.sample(7, corrected=False)
    assert draws.shape == (7, 100)
    assert np.isfinite(draws).all()
    assert np.isfinite(model.potential(x)).all()


def test_one_dimension_as_a_plain_list_of_numbers():
    with pytest.raises(InputError, match="single row"):
        fit([3.0])
    with pytest.raises(InputError, match="constant"):
        fit([3.0, 3.0, 3.0])


@pytest.mark.parametrize(
    ("start", "values"),
    [
        ("empirical", {"dynamics__metropolis": True}),
        ("replay", {"dynamics__box": (-3.0, 3.0)}),
    ],
)
def test_samplers_without_a_density_train_and_sample(start, values):
    notes = Notes()
    config = TINY.with_values(potential__kind="gaussian", **values)
    model = fit(config=config, start=start, progress=notes)
    assert not model.sampler.exact
    assert finite(model)
    draws = model.sample(7)
    assert np.isfinite(draws).all()
    assert np.isfinite(model.potential(X)).all()
    assert model.log_partition().how == "quadrature"
    with pytest.raises(InputError, match=r"Corrected samples needs .* fit with a flow"):
        model.sample(7, corrected=True)
    row = notes.rows[-1]
    assert row["ess"] is None  # better no figure than a wrong one
    if "dynamics__metropolis" in values:
        assert 0 < row["acceptance"] <= 1
    if "dynamics__box" in values:
        assert np.abs(model.standardiser.forward(draws)).max() <= 3 + 1e-6


def test_one_dimension_and_a_plain_function_as_the_potential():
    """The function has nothing to learn: its sampler alone is."""
    x = X[:, 1]
    model = fit(x, start="coupling", potential=lambda x: -0.5 * jnp.sum(x**2))
    z = model.standardiser.forward(x[:, None])
    np.testing.assert_allclose(model.potential(x), -0.5 * z[:, 0] ** 2, rtol=1e-5, atol=1e-6)
    assert model.config.potential.kind == "custom"
    assert finite(model)
    assert model.sample(7).shape == (7, 1)
    # log Z is known; 5 standard errors fail 1 in 10⁶.
    found = model.log_partition()
    exact = 0.5 * np.log(2 * np.pi) + model.standardiser.log_scale
    assert abs(found.estimate - exact) < 5 * found.standard_error


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ({"method": "aed"}, "no method called 'aed' \\(did you mean ade"),
        ({"potential": "mpl"}, "did you mean mlp"),
        ({"start": "planer"}, "did you mean planar"),
        ({"dynamics": "lagevin"}, "did you mean langevin"),
        ({"x": "moon"}, "did you mean 'moons'"),
        ({"resume": True}, "give its folder as `out`"),
    ],
)
def test_what_is_not_known_is_refused_with_the_nearest(given, expected):
    with pytest.raises(InputError, match=expected):
        fit(**given)


def test_what_is_given_beside_the_configuration_takes_precedence():
    with pytest.raises(InputError, match=r"training.steps is -1"):
        fit(steps=-1)
