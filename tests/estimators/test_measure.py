"""Sums over states and quadrature, against closed forms; ranges that find themselves."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import stats

from fenchel.errors import InputError
from fenchel.estimators import (
    CompositeLikelihood,
    Counting,
    Domain,
    MaximumLikelihood,
    Quadrature,
    pseudo_likelihood,
)
from fenchel.potentials import FullGaussian
from fenchel.states import all_states

pytestmark = pytest.mark.usefixtures("x64")

KEY = jax.random.key(2)


class Gaussian(eqx.Module):
    """Its numbers are arrays, so that all of them share one program."""

    mean: jax.Array
    scale: jax.Array

    def __call__(self, x):
        return -0.5 * jnp.sum(((x - self.mean) / self.scale) ** 2)


def gaussian(mean, scale):
    return Gaussian(jnp.asarray(mean, float), jnp.asarray(scale, float))


@eqx.filter_jit
def log_integral(measure, f, x):
    return measure.nodes(f, x, jnp.arange(x.size)).log_integral(f)


def log_z(scale, dim=1):
    return dim * (np.log(scale) + 0.5 * np.log(2 * np.pi))


@pytest.mark.parametrize(
    ("mean", "scale"), [(0.0, 1.0), (0.3, 0.02), (2.5, 0.1), (-40.0, 1.0), (0, 30)]
)
def test_the_range_finds_narrow_wide_and_far_peaks(mean, scale):
    """Wherever they are; a peak between two looks, far from the point, cannot be seen."""
    x = jnp.array([float(mean) + scale])  # a datum is near the mass of its conditional
    measure = Quadrature(64, rounds=8)
    found = log_integral(measure, gaussian(mean, scale), x)
    assert found == pytest.approx(log_z(scale), abs=1e-6)


def test_without_looks_it_would_not():
    """Negative control: the first range is no good for any of those but the first."""
    fixed = Quadrature(64, rounds=0)
    found = log_integral(fixed, gaussian(0.3, 0.02), jnp.array([0.3]))
    assert abs(float(found) - log_z(0.02)) > 1e-2


def test_two_dimensions():
    model = FullGaussian.from_precision(jnp.array([0.3, -1.0]), jnp.array([[2.0, 0.8], [0.8, 1.0]]))
    oracle = MaximumLikelihood(Quadrature(64))
    found = eqx.filter_jit(oracle.log_partition)(model, 2)
    assert found == pytest.approx(float(model.log_partition()), abs=1e-8)


def test_a_domain_ends_the_integral():
    """exp(-2x) on [0, 1] and on the half-line."""
    f = lambda x: -2 * jnp.sum(x)  # noqa: E731
    box = log_integral(Quadrature(48, Domain(0.0, 1.0)), f, jnp.array([0.5]))
    assert box == pytest.approx(np.log((1 - np.exp(-2)) / 2), abs=1e-12)
    half = log_integral(Quadrature(48, Domain(0.0, jnp.inf), rounds=6), f, jnp.array([0.5]))
    assert half == pytest.approx(np.log(0.5), abs=1e-8)


def test_pseudo_likelihood_of_a_gaussian_in_closed_form():
    """The conditionals of N(μ, Λ⁻¹) are normal with precisions Λ_ii."""
    mean = np.array([0.3, -1.0, 0.2])
    precision = np.array([[2.0, 0.8, 0.0], [0.8, 1.0, -0.3], [0.0, -0.3, 1.5]])
    model = FullGaussian.from_precision(jnp.asarray(mean), jnp.asarray(precision))
    data = np.random.default_rng(2).normal(size=(5, 3))

    own = np.diagonal(precision)
    conditional = mean - (data - mean) @ (precision - np.diag(own)) / own
    exact = stats.norm.logpdf(data, conditional, own**-0.5).sum(axis=1)

    loss = eqx.filter_jit(pseudo_likelihood(3, Quadrature(64)).loss)(model, data, KEY)
    assert loss == pytest.approx(-np.mean(exact), abs=1e-7)


def test_counting_is_a_sum():
    f = lambda x: jnp.sum(x) + x[0] * x[1]  # noqa: E731
    states = all_states((-1.0, 0.0, 2.0), 2)
    brute = np.log(sum(np.exp(s[0] + s[1] + 0.7 + s[0] * s[1]) for s in states))
    nodes = Counting((-1.0, 0.0, 2.0)).nodes(f, jnp.array([9.0, 9.0, 0.7]), jnp.array([0, 1]))
    assert nodes.log_integral(f) == pytest.approx(brute, abs=1e-12)
    np.testing.assert_array_equal(nodes.x[:, 2], 0.7)


def test_bad_blocks():
    with pytest.raises(InputError, match="disjoint"):
        CompositeLikelihood([(0, 1), (1,)])
    with pytest.raises(InputError, match="disjoint"):
        CompositeLikelihood([])
    with pytest.raises(InputError, match="smaller blocks"):
        all_states((-1.0, 1.0), 30)
