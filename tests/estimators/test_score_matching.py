"""Score matching: against its definition, closed forms, and on bounded data."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from fenchel.dynamics import Rademacher
from fenchel.errors import InputError
from fenchel.estimators import DenoisingScoreMatching, Domain, ScoreMatching

pytestmark = pytest.mark.usefixtures("x64")

KEY = jax.random.key(2)


def wavy(x):
    return -0.5 * jnp.sum(x**2) + jnp.sin(x[0] * x[1]) + 0.3 * x[0] ** 3


def points(count=6):
    return jax.random.normal(KEY, (count, 3), jnp.float64)


@eqx.filter_jit
def loss_at(estimator, data):
    return estimator.loss(wavy, data, KEY)


def test_exact_is_its_definition():
    @jax.jit
    @jax.vmap
    def terms(x):
        return 0.5 * jnp.sum(jax.grad(wavy)(x) ** 2) + jnp.trace(jax.hessian(wavy)(x))

    expected = float(np.mean(terms(points())))
    assert loss_at(ScoreMatching(), points()) == pytest.approx(expected, rel=1e-12)


def test_sliced_has_no_bias():
    """Within 4 standard errors over 2,000 probes (by chance once in 16,000)."""
    exact, loss, data = loss_at(ScoreMatching(), points()), ScoreMatching(Rademacher(1)), points()

    @jax.jit
    @jax.vmap
    def sliced(key):
        return loss.loss(wavy, data, key)

    values = np.asarray(sliced(jax.random.split(KEY, 2_000)))
    error = np.std(values) / 2_000**0.5
    assert error > 1e-4
    assert abs(np.mean(values) - float(exact)) < 4 * error


def minimiser(loss, features, data):
    """For f = w · φ the loss is a quadratic in w, and this is where it is smallest."""

    @jax.jit
    def slope_and_curvature(data):
        def value(w):
            return loss.loss(lambda x: jnp.dot(w, features(x)), data, KEY)

        at = jnp.zeros(features(data[0]).size)
        return jax.grad(value)(at), jax.hessian(value)(at)

    slope, curvature = slope_and_curvature(data)
    return -np.linalg.solve(curvature, slope)


def test_on_a_gaussian_it_is_the_closed_form():
    """Exact score matching of a Gaussian is the sample mean and covariance, like the MLE."""
    rng = np.random.default_rng(1)
    data = jnp.asarray(rng.normal(size=(500, 1)) * 0.7 + 0.4)
    mean, slope = minimiser(ScoreMatching(), lambda x: jnp.array([x[0], -0.5 * x[0] ** 2]), data)
    assert slope == pytest.approx(1 / float(np.var(data)), rel=1e-9)
    assert mean / slope == pytest.approx(float(np.mean(data)), rel=1e-9)


BOUNDED = {
    # f = -2 x on the half-line; f = -2 x within [0, 1]
    "half-line": (Domain(0.0, jnp.inf), lambda u: -np.log(1 - u) / 2),
    "box": (Domain(0.0, 1.0), lambda u: -np.log(1 - u * (1 - np.exp(-2.0))) / 2),
}


@pytest.mark.parametrize("name", list(BOUNDED))
def test_bounded_data_need_the_weight(name):
    """The rate 2 of an exponential: within 5% of 40,000 draws (their own spread is about 1%).

    Negative control: without the weight, the boundary term is missing, and the rate is far off.
    """
    domain, inverse = BOUNDED[name]
    data = jnp.asarray(inverse(np.random.default_rng(3).uniform(size=(40_000, 1))))
    (rate,) = minimiser(ScoreMatching(domain=domain), lambda x: -x, data)
    assert rate == pytest.approx(2.0, rel=0.05)
    (wrong,) = minimiser(ScoreMatching(), lambda x: -x - 1e-9 * x**2, data)
    assert abs(float(wrong) - 2) > 1


def test_the_weight_and_its_slope():
    weight, slope = Domain(0.0, 4.0, cap=1.5).weight(jnp.array([0.5, 2.0, 3.8]))
    np.testing.assert_allclose(weight, [0.5, 1.5, 0.2])
    np.testing.assert_allclose(slope, [1.0, 0.0, -1.0])


def test_denoising_finds_the_smoothed_score():
    """N(0, 1) smoothed by σ has precision 1 / (1 + σ²); within 3% of 100,000 draws."""
    data = jax.random.normal(jax.random.key(9), (100_000, 1), jnp.float64)
    (precision,) = minimiser(DenoisingScoreMatching(0.7), lambda x: -0.5 * x**2, data)
    assert precision == pytest.approx(1 / 1.49, rel=0.03)


def test_bad_noise():
    with pytest.raises(InputError, match="σ > 0"):
        DenoisingScoreMatching(0.0)
