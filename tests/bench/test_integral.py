"""The grid's integral against closed forms."""

import jax.numpy as jnp
import numpy as np
import pytest

from fenchel.bench import integral
from fenchel.bench.integral import Window, log_partition
from fenchel.config import Config
from fenchel.data import Standardiser
from fenchel.dynamics import CentredNormal, Chain
from fenchel.potentials import DiagonalGaussian, FullGaussian
from fenchel.result import Fit
from fenchel.samplers import Embedding
from fenchel.starts import Empirical


def fit_of(f, scale=(2.0, 0.5)) -> Fit:
    sampler = Embedding(Empirical(CentredNormal(0)), Chain())
    standardiser = Standardiser(np.array([1.0, -3.0]), np.array(scale))
    return Fit(f, sampler, None, jnp.zeros((1, 2)), standardiser, Config(), ("x", "y"), "test")


def window(half: float) -> Window:
    return Window(np.full(2, -half), np.full(2, half))


def test_a_gaussian_has_its_closed_form():
    f = DiagonalGaussian(jnp.array([0.3, -0.2]), jnp.log(jnp.array([1.0, 9.0])))
    fit = fit_of(f)
    expected = float(f.log_partition()) + fit.standardiser.log_scale
    assert log_partition(fit, window(7.0)) == pytest.approx(expected, abs=1e-5)
    x = np.random.default_rng(0).normal(size=(50, 2))
    z = fit.standardiser.forward(x)
    quadratic = -0.5 * ((z - [0.3, -0.2]) ** 2 * [1.0, 9.0]).sum(axis=1)
    found = integral.log_density(fit, x, window(7.0))
    np.testing.assert_allclose(found, quadratic - expected, atol=1e-4)


def test_a_ridge_as_thin_as_the_noise_floor_is_seen():
    """A diagonal ridge with 1% of a standard deviation across, in the widest window in use."""
    across, along = np.array([1.0, -1.0]) / 2**0.5, np.array([1.0, 1.0]) / 2**0.5
    precision = np.outer(across, across) / 0.01**2 + np.outer(along, along)
    f = FullGaussian.from_precision(jnp.zeros(2), jnp.asarray(precision, jnp.float32))
    fit = fit_of(f)
    expected = float(f.log_partition()) + fit.standardiser.log_scale
    assert log_partition(fit, window(5.0)) == pytest.approx(expected, abs=2e-3)


def test_too_coarse_a_grid_would_be_seen(monkeypatch):
    """Negative control."""
    monkeypatch.setattr("fenchel.evidence.integral.NODES", {2: 61})
    f = DiagonalGaussian(jnp.zeros(2), jnp.full(2, -2 * jnp.log(0.01)))
    expected = float(f.log_partition()) + fit_of(f).standardiser.log_scale
    assert abs(log_partition(fit_of(f), window(5.0)) - expected) > 0.1


def test_the_window_covers_the_data_with_a_margin():
    points = np.random.default_rng(1).normal(size=(1_000, 2)) * [1.0, 3.0]
    low, high = Window.around(points)
    np.testing.assert_allclose(points.min(axis=0) - low, 2 * points.std(axis=0))
    np.testing.assert_allclose(high - points.max(axis=0), 2 * points.std(axis=0))
