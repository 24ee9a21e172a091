"""The Stein test against autodiff and its estimator, its level, and wrong potentials.

Seeds are fixed, so that the statistical tests pass or fail for good; the rates they state are those
at which a correct implementation would fail over the choice of those seeds.
"""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.stats import binom

from fenchel.errors import InputError
from fenchel.estimators import InverseMultiquadric, KernelStein
from fenchel.evaluate import stein_test
from fenchel.evaluate.stein_test import _signs


def standard_normal(x):
    return -0.5 * jnp.sum(x**2)


def skewed(x):
    return -jnp.sum(jnp.cosh(x)) + 0.5 * x[0] * x[1]


class Normal(eqx.Module):
    mean: jax.Array

    def __call__(self, x):
        return -0.5 * jnp.sum((x - self.mean) ** 2)


def gaussian(n, seed, d=2):
    return np.random.default_rng(seed).normal(size=(n, d))


def chain(n, seed, memory):
    """A stationary autoregression whose marginal is the standard normal distribution."""
    noise = gaussian(n, seed, d=1)
    x = noise.copy()
    for t in range(1, n):
        x[t] = memory * x[t - 1] + np.sqrt(1 - memory**2) * noise[t]
    return x


def by_autodiff(f, points, scale):
    """Stein's kernel from the derivatives of k alone, averaged over the pairs i ≠ j."""

    def k(x, y):
        return (1 + jnp.sum((x - y) ** 2) / scale**2) ** -0.5

    def h(x, y):
        s_x, s_y = jax.grad(f)(x), jax.grad(f)(y)
        k_x, k_y = jax.grad(k, 0)(x, y), jax.grad(k, 1)(x, y)
        mixed = jax.jacfwd(jax.grad(k, 0), 1)(x, y)
        return s_x @ s_y * k(x, y) + s_x @ k_y + s_y @ k_x + jnp.trace(mixed)

    pairs = jax.jit(jax.vmap(jax.vmap(h, (None, 0)), (0, None)))(points, points)
    return np.asarray(pairs)[~np.eye(len(points), dtype=bool)].mean()


@pytest.mark.parametrize("rows_per_block", [4, 512])
def test_value_is_steins_kernel_by_autodiff(rows_per_block, x64, monkeypatch):
    monkeypatch.setattr("fenchel.evaluate.signed_sums.ROWS_PER_BLOCK", rows_per_block)
    points = gaussian(9, 0) + 0.4
    value = stein_test(skewed, points, scale=1.3, draws=2, seed=0).value
    assert value == pytest.approx(by_autodiff(skewed, jnp.asarray(points), 1.3), rel=1e-10)


def test_value_is_the_estimators_loss():
    points = gaussian(30, 0) + 0.4
    loss = eqx.filter_jit(KernelStein(InverseMultiquadric(0.7)).loss)(
        skewed, jnp.asarray(points, dtype=float), jax.random.key(0)
    )
    value = stein_test(skewed, points, scale=0.7, draws=2, seed=0).value
    assert value == pytest.approx(float(loss), rel=1e-4)


def test_signs_switch_with_their_probability():
    """Within 4 standard errors: a false alarm in 1 of 16,000 for each."""
    signs = _signs(50, 400, 0.1, seed=0)
    assert set(np.unique(signs)) == {-1.0, 1.0}
    switches = np.mean(signs[1:] != signs[:-1])
    assert abs(switches - 0.1) < 4 * np.sqrt(0.09 / (49 * 400))
    assert abs(signs[0].mean()) < 4 / np.sqrt(400)
    # Signs t apart have the correlation (1 - 2 switching)^t.
    assert abs(np.mean(signs[0] * signs[3]) - 0.8**3) < 4 / np.sqrt(400)


def test_level_for_independent_data():
    """Rejections at 10% of 200 nulls are binomial: a false alarm in 1 of 1,000 on either side."""
    results = [
        stein_test(standard_normal, gaussian(100, run), draws=200, seed=run) for run in range(200)
    ]
    rejections = np.sum([result.p_value <= 0.1 for result in results])
    assert binom.ppf(0.001, 200, 0.1) <= rejections <= binom.ppf(0.999, 200, 0.1)


def test_level_for_a_chain_needs_signs_that_stay():
    """Independent signs reject half of the right chains, and slow ones but few.

    The bounds are 4 standard errors away: a false alarm in 1 of 16,000 for each.
    """

    def rejections(switching):
        runs = [
            stein_test(
                standard_normal, chain(300, run, 0.8), draws=200, switching=switching, seed=run
            )
            for run in range(40)
        ]
        return np.mean([run.p_value <= 0.1 for run in runs])

    assert rejections(0.5) > 0.3
    assert rejections(0.02) < 0.3


@pytest.mark.parametrize(
    "data",
    [gaussian(200, 0) + 0.5, 0.7 * gaussian(200, 0), 1.5 * gaussian(200, 0)],
    ids=["shifted", "narrower", "wider"],
)
def test_wrong_potential_is_rejected(data):
    assert stein_test(standard_normal, data, seed=0).p_value == 1 / 500


def test_module_is_judged_by_its_parameters():
    data = gaussian(150, 2) + np.array([3.0, -1.0])
    assert stein_test(Normal(jnp.array([3.0, -1.0])), data, seed=0).p_value > 0.05
    assert stein_test(Normal(jnp.array([3.0, -0.4])), data, seed=0).p_value < 0.01


def test_units_and_origin_do_not_matter():
    data, unit = gaussian(60, 0) + 0.2, 8.0
    here = stein_test(standard_normal, data, seed=0)
    there = stein_test(lambda x: standard_normal((x - 100.0) / unit), unit * data + 100.0, seed=0)
    assert there.scale == pytest.approx(unit * here.scale)
    assert there.value == pytest.approx(here.value / unit**2, rel=1e-2)
    assert there.p_value == pytest.approx(here.p_value, abs=0.01)  # ranks may change by rounding


def test_constant_of_the_log_density_does_not_matter():
    data = gaussian(60, 0)
    shifted = stein_test(lambda x: standard_normal(x) + 7.0, data, seed=0)
    assert shifted == stein_test(standard_normal, data, seed=0)


@pytest.mark.parametrize(
    ("f", "options", "message"),
    [
        (lambda x: x, {}, "scalar"),
        (lambda x: -jnp.sum(jnp.sqrt(x - x)), {}, "gradient"),
        (standard_normal, {"scale": 0.0}, "scale"),
        (standard_normal, {"scale": np.nan}, "scale"),
        (standard_normal, {"draws": 1}, "draws is 1"),
        (standard_normal, {"switching": 0.0}, "switching"),
        (standard_normal, {"switching": 0.6}, "switching"),
    ],
)
def test_refuses_what_cannot_be_tested(f, options, message):
    with pytest.raises(InputError, match=message):
        stein_test(f, gaussian(10, 0), seed=0, **options)


@pytest.mark.parametrize("data", [np.zeros(4), np.full((4, 2), np.nan), np.ones((4, 2))])
def test_refuses_unusable_data(data):
    with pytest.raises(InputError, match="data"):
        stein_test(standard_normal, data, seed=0)


def test_what_overflows_has_no_p_value():
    x = 1e12 * np.random.default_rng(0).normal(size=(40, 2))
    with pytest.raises(InputError, match="so large that the test's values are not finite"):
        stein_test(lambda x: -0.5 * jnp.sum(x**2), x, draws=10, seed=0)
