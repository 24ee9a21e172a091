"""Sums over states and quadrature, against closed forms; ranges that find themselves."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

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
ALL = jnp.arange


def gaussian(mean, scale):
    return lambda x: -0.5 * jnp.sum(((x - mean) / scale) ** 2)


def log_z(scale, dim=1):
    return dim * (np.log(scale) + 0.5 * np.log(2 * np.pi))


@pytest.mark.parametrize(
    ("mean", "scale"), [(0.0, 1.0), (0.3, 0.02), (2.5, 0.1), (-40.0, 1.0), (0, 30)]
)
def test_the_range_finds_narrow_wide_and_far_peaks(mean, scale):
    """Wherever they are; a peak between two looks, far from the point, cannot be seen."""
    x = jnp.array([float(mean) + scale])  # a datum is near the mass of its conditional
    measure = Quadrature(64, rounds=8)
    found = measure.nodes(gaussian(mean, scale), x, ALL(1)).log_integral(gaussian(mean, scale))
    assert found == pytest.approx(log_z(scale), abs=1e-6)


def test_without_looks_it_would_not():
    """Negative control: the first range is no good for any of those but the first."""
    fixed = Quadrature(64, rounds=0)
    f = gaussian(0.3, 0.02)
    found = fixed.nodes(f, jnp.array([0.3]), ALL(1)).log_integral(f)
    assert abs(float(found) - log_z(0.02)) > 1e-2


def test_two_dimensions():
    model = FullGaussian.from_precision(jnp.array([0.3, -1.0]), jnp.array([[2.0, 0.8], [0.8, 1.0]]))
    oracle = MaximumLikelihood(Quadrature(64))
    assert oracle.log_partition(model, 2) == pytest.approx(float(model.log_partition()), abs=1e-8)


def test_a_domain_ends_the_integral():
    """exp(-2x) on [0, 1] and on the half-line."""
    f = lambda x: -2 * jnp.sum(x)  # noqa: E731
    box = Quadrature(48, Domain(0.0, 1.0)).nodes(f, jnp.array([0.5]), ALL(1)).log_integral(f)
    assert box == pytest.approx(np.log((1 - np.exp(-2)) / 2), abs=1e-12)
    half = Quadrature(48, Domain(0.0, jnp.inf), rounds=6).nodes(f, jnp.array([0.5]), ALL(1))
    assert half.log_integral(f) == pytest.approx(np.log(0.5), abs=1e-8)


def test_pseudo_likelihood_of_a_gaussian_in_closed_form():
    """The conditionals of N(μ, Λ⁻¹) are normal with precisions Λ_ii."""
    precision = jnp.array([[2.0, 0.8, 0.0], [0.8, 1.0, -0.3], [0.0, -0.3, 1.5]])
    model = FullGaussian.from_precision(jnp.array([0.3, -1.0, 0.2]), precision)
    data = jax.random.normal(KEY, (5, 3), jnp.float64)

    def exact(x):
        pull = (precision - jnp.diag(jnp.diagonal(precision))) @ (x - model.mean)
        conditional = model.mean - pull / jnp.diagonal(precision)
        terms = 0.5 * jnp.log(jnp.diagonal(precision) / (2 * jnp.pi))
        return jnp.sum(terms - 0.5 * jnp.diagonal(precision) * (x - conditional) ** 2)

    loss = pseudo_likelihood(3, Quadrature(64)).loss(model, data, KEY)
    assert loss == pytest.approx(-float(jnp.mean(jax.vmap(exact)(data))), abs=1e-7)


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
