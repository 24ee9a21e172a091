"""A fitted model, in the data's own units: here a Gaussian whose everything is known.

The potential is N(m, s²) in standard units, the sampler a wider normal, so that raw and corrected
draws differ and log Z is known. Statistical tests use fixed seeds and state their failure rates.
"""

from dataclasses import replace

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from flowjax.distributions import Normal
from scipy import stats

from fenchel import drawing
from fenchel.config import Config
from fenchel.data import Standardiser
from fenchel.drawing import CHUNK
from fenchel.dynamics import Box, CentredNormal, Chain, Leapfrog
from fenchel.errors import InputError
from fenchel.parameters import positive
from fenchel.potentials import DiagonalGaussian, GaussianBase, OnBase
from fenchel.result import Fit
from fenchel.samplers import Embedding
from fenchel.starts import Empirical, Flow, Replay

MEAN, SCALE = np.array([3.0, -1e6]), np.array([1e-6, 1e3])  # of the data
AS_IT_IS = Standardiser(np.zeros(2), np.ones(2))
M, S = np.array([0.5, -0.5]), np.array([0.8, 0.6])  # of the model, in standard units


def fit_with(sampler, points=None, state=None) -> Fit:
    f = DiagonalGaussian(jnp.asarray(M, jnp.float32), jnp.asarray(-2 * np.log(S), jnp.float32))
    points = jnp.zeros((1, 2)) if points is None else points
    return Fit(f, sampler, state, points, Standardiser(MEAN, SCALE), Config(), ("a", "b"), "g")


@pytest.fixture(scope="module")
def fit() -> Fit:
    start = Flow(Normal(jnp.zeros(2), jnp.full(2, 1.5)), CentredNormal(2))
    return fit_with(Embedding(start, Chain()))


@pytest.fixture(scope="module")
def rows() -> np.ndarray:
    """Where the model lives, in the data's units."""
    return MEAN + SCALE * (M + np.random.default_rng(0).normal(size=(20, 2)))


def truth(rows: np.ndarray) -> np.ndarray:
    return stats.norm.logpdf(rows, MEAN + SCALE * M, SCALE * S).sum(axis=1)


def test_no_draw_is_taken_twice_however_steep_f_is():
    """f falls by 10⁵ nats within the sampler: all but a few weights are 0 beside the largest."""
    start = Flow(Normal(jnp.zeros(2), jnp.ones(2)), CentredNormal(2))
    steep = DiagonalGaussian(jnp.zeros(2), jnp.full(2, 2 * np.log(500.0)))
    fit = replace(fit_with(Embedding(start, Chain())), f=steep, standardiser=AS_IT_IS)
    drawn = fit.sample(CHUNK, seed=1)
    assert len(np.unique(drawn, axis=0)) == CHUNK
    # The eighth of the pool that is nearest to the peak: within 0.52, as 1 - exp(-r²/2) = 1/8.
    assert np.abs(np.linalg.norm(drawn, axis=1).max() - 0.517) < 0.03


def test_weights_correct_only_what_learnt_f_itself():
    """With an entropy coefficient of c the sampler's target is exp f/c, and weights of exp f would
    leave a few of its draws."""
    start = Flow(Normal(jnp.zeros(2), jnp.full(2, 1.5)), CentredNormal(2))
    fit = fit_with(Embedding(start, Chain()))
    cold = replace(
        fit, config=Config().with_values(training__entropy=1e-5, training__bound="pairs")
    )
    assert (fit.is_corrected, fit.temperature) == (True, 1.0)
    assert (cold.is_corrected, cold.temperature) == (False, 1e-5)
    np.testing.assert_array_equal(cold.sample(64), fit.sample(64, corrected=False))
    assert not np.array_equal(fit.sample(64), cold.sample(64))


def test_log_partition_is_the_closed_form(fit):
    """Within 4.5 standard errors: fails 1 in 10⁵. The Jacobian alone is some 7 nats."""
    exact = np.log(2 * np.pi) + np.log(S).sum() + np.log(SCALE).sum()
    found = fit.log_partition()
    assert found.standard_error < 0.01
    assert abs(found.estimate - exact) < 4.5 * found.standard_error
    assert found.bound < exact - 20 * found.standard_error
    assert found.lower < exact < found.upper < found.lower + 0.1
    assert found.draws == 16 * CHUNK
    # Z² / E[w²] in closed form, for two Gaussians of these widths and means.
    ratio = 1.0
    for m, s in zip(M, S, strict=True):
        v = 1 / (2 / s**2 - 1 / 1.5**2)
        centre = v * 2 * m / s**2
        ratio *= (s**2 / (1.5 * v**0.5)) * np.exp(m**2 / s**2 - 0.5 * centre**2 / v)
    assert found.ess == pytest.approx(ratio, rel=0.05)
    assert fit.log_partition() is found  # computed once


@pytest.mark.parametrize("height", [-30.0, 3.0])
def test_mass_where_the_sampler_never_goes_is_seen(height):
    """A mode far from all draws, of 0.61 of the whole, or of next to nothing.

    Within the error that it claims, times 4.5, and within its bracket: fails 1 in 10⁵, and in 100.
    """

    def bump(x):
        return -2 * jnp.sum((x - jnp.array([4.0, 4.0])) ** 2) + height + 32 / 4.5

    start = Flow(Normal(jnp.zeros(2), jnp.full(2, 0.9)), CentredNormal(2))
    near = DiagonalGaussian(jnp.zeros(2), jnp.full(2, -2 * np.log(0.7)))
    base = GaussianBase()
    f = OnBase(lambda x: jnp.logaddexp(near(x) - base(x), bump(x)), base)
    fit = replace(fit_with(Embedding(start, Chain())), f=f, standardiser=AS_IT_IS)
    found, exact = fit.log_partition(), fit.log_partition("quadrature").estimate
    assert abs(found.estimate - exact) < 4.5 * found.standard_error + 1e-4
    assert found.lower < exact < found.upper
    assert ("hardly goes" in found.caution) == (height > 0)
    # The draws alone know of the near mode only.
    known = np.log(2 * np.pi * 0.49)
    assert (exact - known > 0.3) == (height > 0)


def test_density_in_the_datas_units(fit, rows):
    np.testing.assert_allclose(fit.log_density(rows), truth(rows), atol=0.02)
    difference = fit.potential(rows) - fit.log_partition().estimate
    np.testing.assert_array_equal(fit.log_density(rows), difference)
    quadratic = -0.5 * (((rows - MEAN) / SCALE - M) ** 2 / S**2).sum(axis=1)
    np.testing.assert_allclose(fit.potential(rows), quadratic, atol=1e-4)


def test_one_row_is_many_rows_one_by_one(fit, rows):
    one = np.concatenate([fit.potential(row[None]) for row in rows[:3]])
    np.testing.assert_allclose(one, fit.potential(rows[:3]), rtol=1e-6)


def test_corrected_draws_are_the_models_and_raw_ones_the_samplers(fit):
    """Kolmogorov-Smirnov over 2,000 draws of a coordinate, p > 1e-5; resampling makes the
    corrected ones a little dependent, and so, if anything, closer than independent ones.

    Negative control: each kind against the other's distribution has p < 1e-10.
    """
    model, sampler = stats.norm(M[0], S[0]), stats.norm(0, 1.5)
    corrected = ((fit.sample(2_000, seed=1) - MEAN) / SCALE)[:, 0]
    raw = ((fit.sample(2_000, seed=1, corrected=False) - MEAN) / SCALE)[:, 0]
    assert stats.kstest(corrected, model.cdf).pvalue > 1e-5
    assert stats.kstest(raw, sampler.cdf).pvalue > 1e-5
    assert stats.kstest(corrected, sampler.cdf).pvalue < 1e-10
    assert stats.kstest(raw, model.cdf).pvalue < 1e-10


def taken(weights, n):
    """How many different points n evenly spaced ticks meet."""
    cumulative = np.cumsum(weights)
    ticks = (np.arange(n) + 0.3) * cumulative[-1] / n
    return len(np.unique(np.searchsorted(cumulative, ticks)))


def test_no_point_of_the_pool_is_taken_twice(fit):
    draws = fit.sample(2_000, seed=1)
    assert len(np.unique(draws, axis=0)) == 2_000
    heavy = 4 * jax.random.normal(jax.random.key(0), (8 * 64,))
    capped = np.asarray(drawing._capped(heavy, 64))
    assert capped.sum() == pytest.approx(64, rel=1e-4)
    assert capped.max() <= 1
    assert taken(capped, 64) == 64
    # Negative control: cut at once and made to sum to one again, they repeat.
    assert taken(np.minimum(jax.nn.softmax(heavy), 1 / 64), 64) < 64


def test_a_particle_whose_weight_is_not_a_number_is_left_out():
    log_w = jnp.array([0.0, jnp.nan, -1.0])
    np.testing.assert_array_equal(drawing._or_none(log_w), [0.0, -np.inf, -1.0])


def test_draws_are_a_function_of_the_seed(fit, monkeypatch):
    monkeypatch.setattr(drawing, "CHUNK", 8)
    one, again, other = (fit.sample(19, seed=seed) for seed in (1, 1, 2))
    assert one.shape == (19, 2)  # which is no multiple of 8
    assert one.dtype == np.float64
    np.testing.assert_array_equal(one, again)
    assert (one != other).all()
    assert len(np.unique(one, axis=0)) == 19  # chunks do not repeat one another


def test_draws_of_more_than_one_chunk(fit):
    draws = fit.sample(CHUNK + 5, corrected=False)
    assert draws.shape == (CHUNK + 5, 2)
    assert len(np.unique(draws, axis=0)) == CHUNK + 5


@pytest.mark.parametrize("n", [0, -3])
def test_no_draws_at_all_are_refused(fit, n):
    with pytest.raises(InputError, match="ask for at least one"):
        fit.sample(n)


@pytest.mark.parametrize(
    ("bad", "expected"),
    [
        (np.zeros((3, 1)), "fitted to 2 columns"),
        (np.zeros((3, 5)), "fitted to 2 columns"),
        (np.array([[0.0, np.nan]]), "is missing"),
        (np.zeros((2, 2, 2)), "3 dimensions"),
    ],
)
def test_rows_that_do_not_fit(fit, bad, expected):
    with pytest.raises(InputError, match=expected):
        fit.log_density(bad)


def inexact(kind: str) -> Fit:
    points = jnp.asarray(np.random.default_rng(1).normal(size=(50, 2)), jnp.float32)
    if kind == "box":
        start = Flow(Normal(jnp.zeros(2), jnp.full(2, 1.5)), CentredNormal(2))
        return fit_with(Embedding(start, Box(-0.5, 0.5)))
    return fit_with(Embedding(Empirical(CentredNormal(2)), Leapfrog(positive(1e-3))), points)


@pytest.mark.parametrize("kind", ["box", "empirical"])
def test_samplers_without_a_density_sample_and_say_what_they_cannot(kind):
    fit = inexact(kind)
    draws = fit.sample(64)
    assert np.isfinite(draws).all()
    np.testing.assert_array_equal(draws, fit.sample(64, corrected=False))
    with pytest.raises(InputError, match=r"exact density.*fit with a flow or a deep-latent"):
        fit.sample(5, corrected=True)
    assert fit.log_partition().how == "quadrature"  # in two columns it does without the sampler
    standard = (draws - MEAN) / SCALE
    if kind == "box":
        assert np.abs(standard).max() <= 0.5 + 1e-6
    else:  # every draw is within a small step of a data point
        gaps = np.abs(standard[:, None] - np.asarray(fit.points)[None]).max(axis=-1).min(axis=1)
        assert gaps.max() < 0.02
        assert len(np.unique(np.round(standard, 1), axis=0)) > 10  # of many of them


def test_dim_and_names(fit):
    assert fit.dim == 2
    assert fit.columns == ("a", "b")
    assert jax.tree.leaves(fit.sampler_state) == []


def test_a_small_replay_buffer_can_be_sampled_from():
    """Its capacity need only be enough for the training's batches."""
    start = Replay(CentredNormal(2), capacity=300)
    sampler = Embedding(start, Chain())
    state = sampler.init(jnp.zeros((1, 2)), jax.random.key(0))
    assert fit_with(sampler, state=state).sample(5).shape == (5, 2)
