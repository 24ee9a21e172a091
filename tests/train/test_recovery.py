"""Training finds the maximum of the likelihood where it is known: Gaussians.

The maximum likelihood estimate of a Gaussian is the data's own mean and covariance, so what is
left between it and a fit is the optimiser's: it is held to a fraction of the standard error that
n points leave in the estimate itself. Both potentials start far from the estimate. Over six seeds
the largest deviation was half of what is allowed here.
"""

import jax.numpy as jnp
import numpy as np
import pytest
from flowjax.distributions import Normal

import fenchel as fx
from fenchel.config import Config, TrainingConfig
from fenchel.dynamics import CentredNormal, Leapfrog
from fenchel.parameters import positive
from fenchel.potentials import DiagonalGaussian, FullGaussian
from fenchel.starts import Flow

ROWS = 1_000
TRAINING = TrainingConfig(
    steps=1_500,
    batch=256,
    sampler_steps=1,
    potential_rate=2e-2,
    start_rate=1e-2,
    final_rate=0.01,
    averaging=0.05,
    noise=0.0,
    block=1_500,
)


def fitted(x, potential, seed: int = 0) -> fx.Fit:
    dim = x.shape[1]
    start = Flow(Normal(jnp.zeros(dim), jnp.full(dim, 1.2)), CentredNormal(dim))
    return fx.fit(
        x,
        seed=seed,
        potential=potential,
        start=start,
        dynamics=Leapfrog(positive(0.3)),
        config=Config(training=TRAINING),
        progress=False,
    )


def check_log_partition(fit: fx.Fit) -> None:
    """Importance sampling against the closed form: within 4.5 standard errors, 1 in 10⁵ fails."""
    exact = float(fit.f.log_partition()) + fit.standardiser.log_scale
    found = fit.log_partition()
    assert found.standard_error < 0.01
    assert abs(found.estimate - exact) < 4.5 * found.standard_error
    assert found.bound < exact + 4.5 * found.standard_error
    assert found.draws == 16 * 2048
    assert 0.2 < found.ess <= 1


@pytest.fixture(scope="module")
def diagonal():
    x = np.random.default_rng(0).normal(size=(ROWS, 2)) * [3.0, 0.01] + [10.0, -1.0]
    far = DiagonalGaussian(jnp.array([0.8, -0.8]), jnp.array([1.0, -1.0]))
    return x, far, fitted(x, far)


def test_diagonal_gaussian(diagonal):
    _, far, fit = diagonal
    # In standard units the estimate is mean 0 and precision 1 in each coordinate.
    mean_error, log_precision_error = ROWS**-0.5, (2 / ROWS) ** 0.5
    assert np.abs(fit.f.mean).max() < mean_error
    assert np.abs(fit.f.log_precision).max() < log_precision_error
    kinds = {part.kind for part in (fit.config.potential, fit.config.start, fit.config.dynamics)}
    assert kinds == {"custom"}  # all of them objects of one's own
    assert np.abs(far.mean).max() > 20 * mean_error  # where it came from
    assert np.abs(far.log_precision).max() > 20 * log_precision_error
    check_log_partition(fit)


def test_the_fit_is_the_data_in_its_own_units(diagonal):
    x, _, fit = diagonal
    scale = x.std(axis=0)
    at = x[:50]
    expected = -0.5 * (((at - x.mean(axis=0)) / scale) ** 2 + np.log(2 * np.pi * scale**2))
    np.testing.assert_allclose(fit.log_density(at), expected.sum(axis=1), atol=0.3)
    # Draws: the mean of 4,000, within 5 standard errors and what the fit itself may be off by.
    draws = fit.sample(4_000, seed=1)
    error = scale * (5 / 4_000**0.5 + ROWS**-0.5)
    assert (np.abs(draws.mean(axis=0) - x.mean(axis=0)) < error).all()
    np.testing.assert_allclose(draws.std(axis=0), scale, rtol=0.1)


def test_full_gaussian():
    rng = np.random.default_rng(1)
    x = rng.normal(size=(ROWS, 3)) @ np.array([[1.0, 0.6, 0.0], [0.0, 1.0, -0.5], [0.0, 0.0, 1.0]])
    fit = fitted(x, FullGaussian(jnp.full(3, 0.5), jnp.zeros((3, 3))))
    precision = np.linalg.inv(np.corrcoef(x.T))
    # The variance of an entry of the precision's estimate: (P_ij² + P_ii P_jj) / n.
    diagonal = np.diag(precision)
    error = np.sqrt((precision**2 + np.outer(diagonal, diagonal)) / ROWS)
    assert (np.abs(np.asarray(fit.f.precision) - precision) < error).all()
    assert np.abs(fit.f.mean).max() < ROWS**-0.5
    # The identity, where it started, is far off: correlations were learnt.
    assert (np.abs(np.eye(3) - precision) > 5 * error).any()
    check_log_partition(fit)
    # Negative control: the mean of the log weights is only a bound, and here not a tight one.
    found, exact = fit.log_partition(), float(fit.f.log_partition()) + fit.standardiser.log_scale
    assert found.bound < exact - 10 * found.standard_error
