"""Summaries of fits: whose standard errors, in which units, and what is refused.

Most fits here are put together by hand, at an optimum that is known: a Gaussian with the data's own
mean and variance.
"""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from flowjax.distributions import Normal

import fenchel as fx
from fenchel import parameters
from fenchel.build import build_model
from fenchel.config import Config
from fenchel.data import Standardiser
from fenchel.dynamics import CentredNormal, Chain
from fenchel.errors import InputError
from fenchel.estimators import ContrastiveDivergence, MaximumLikelihood, ScoreMatching
from fenchel.inference import Seen, is_likelihood
from fenchel.potentials import MLP, DiagonalGaussian, FullGaussian, Ising, Linear, SelfNormalised
from fenchel.result import Fit
from fenchel.samplers import Embedding, Persistent
from fenchel.starts import Empirical, Flow

ROWS = 400


@pytest.fixture(scope="module")
def data() -> np.ndarray:
    return np.random.default_rng(0).normal(size=(ROWS, 2)) * [2.0, 0.5] + [3.0, -1.0]


def gaussian_fit(data, f=None, estimator=None, memory=None, **values) -> Fit:
    """At the maximum of the likelihood, with a sampler that is somewhat too wide."""
    start = Flow(Normal(jnp.zeros(2), jnp.full(2, 1.2)), CentredNormal(2))
    sampler = Embedding(start, Chain())
    f = DiagonalGaussian(jnp.zeros(2), jnp.zeros(2)) if f is None else f
    scaling = Standardiser.of(data)
    seen = Seen(jnp.asarray(scaling.forward(data), jnp.float32), estimator, memory)
    config = Config().with_values(**{"training__noise": 0.0, **values})
    points = jnp.zeros((1, 2))
    return Fit(f, sampler, None, points, scaling, config, ("a", "b"), "hand-made", seen)


@pytest.fixture(scope="module")
def summary(data):
    return gaussian_fit(data).summary()


def test_errors_by_weighted_draws_are_the_closed_form(summary):
    """1 / sqrt(n) for a mean, sqrt(2 / n) for a log precision, within 5%."""
    assert summary.names == ("mean[0]", "mean[1]", "log_precision[0]", "log_precision[1]")
    exact = np.repeat([ROWS**-0.5, (2 / ROWS) ** 0.5], 2)
    np.testing.assert_allclose(summary.standard_errors, exact, rtol=0.05)
    assert summary.distance < 0.25


def test_it_says_how(summary):
    text = str(summary)
    assert "inverse information by 32,768 weighted draws" in text
    assert "hand-made" in text
    assert "standardised data" in text
    assert "Log likelihood" in text
    assert "noise floor" not in text
    assert "standard errors from" not in text


def test_a_fit_off_its_optimum_says_so_and_one_step_mends_it(data):
    off = DiagonalGaussian(jnp.array([0.05, 0.0]), jnp.zeros(2))
    fit = gaussian_fit(data, off)
    table = fit.summary()
    assert table.distance == pytest.approx(0.05 * ROWS**0.5, abs=0.3)
    assert "train longer" in str(table)
    assert "train longer" not in str(fit.one_step().summary())


def test_a_step_out_of_the_space_of_models_is_refused(data):
    """From a variance of a quarter Newton's step leads beyond infinity."""
    steep = Linear(lambda x: jnp.sum(x**2, keepdims=True), 2, weights=[-2.0])
    with pytest.raises(InputError, match=r"an f whose integral is in doubt \(.*train longer"):
        gaussian_fit(data, steep).one_step()


def test_the_sandwich_can_be_asked_for_and_the_unknown_not(data):
    fit = gaussian_fit(data)
    robust = fit.summary(covariance="sandwich")
    assert "sandwich by" in str(robust)
    kurtosis = np.mean(((data - data.mean(0)) / data.std(0)) ** 4, axis=0)
    np.testing.assert_allclose(robust.standard_errors[2:] ** 2 * ROWS, kurtosis - 1, rtol=0.1)
    with pytest.raises(InputError, match=r"covariance.*'other'"):
        fit.summary(covariance="other")
    with pytest.raises(InputError, match="between 0 and 1"):
        fit.summary(level=95)


def test_numbers_without_effect_are_left_out(data):
    """What lies above the diagonal of a Cholesky factor."""
    z = Standardiser.of(data).forward(data)
    f = FullGaussian.from_precision(jnp.zeros(2), jnp.asarray(np.linalg.inv(np.cov(z.T, ddof=0))))
    table = gaussian_fit(data, f).summary()
    assert table.names == ("mean[0]", "mean[1]", "factor[0,0]", "factor[1,0]", "factor[1,1]")
    assert "1 numbers that f does not depend on" in str(table)


def test_other_methods_have_the_sandwich_only(data):
    fit = gaussian_fit(data, estimator=ScoreMatching(), method="score-matching")
    table = fit.summary()
    # For a Gaussian score matching is maximum likelihood.
    np.testing.assert_allclose(table.standard_errors[:2], ROWS**-0.5, rtol=0.05)
    assert "noise floor" not in str(table)
    with pytest.raises(InputError, match="is maximum likelihood's"):
        fit.summary(covariance="information")


def test_the_noise_floor_is_named(data):
    table = gaussian_fit(data, training__noise=0.05).summary()
    assert "0.05 standard deviations" in str(table)


def test_whose_optimum_is_the_likelihoods():
    kernel = Chain()
    from_data = Embedding(Empirical(CentredNormal(0)), kernel)
    assert is_likelihood(None)
    assert is_likelihood(MaximumLikelihood())
    assert is_likelihood(ContrastiveDivergence(Persistent(kernel, 0, 10)))
    assert not is_likelihood(ContrastiveDivergence(from_data))
    assert not is_likelihood(ScoreMatching())


def test_what_is_not_finite_is_no_standard_error(data):
    with pytest.raises(InputError, match="standard errors are not finite: look for outliers"):
        gaussian_fit(data).summary(1e25 * data)


def test_what_has_no_answer(data):
    with pytest.raises(InputError, match="4 rows are too few for the sandwich of 4 parameters"):
        gaussian_fit(data).summary(data[:4], covariance="sandwich")
    net = MLP(2, 32, 2, key=jax.random.key(0))
    with pytest.raises(InputError, match=r"f has 1,185 parameters.*A net's weights"):
        gaussian_fit(data, net).summary()
    with pytest.raises(InputError, match="no parameters"):
        gaussian_fit(data, lambda x: -jnp.sum(x**2)).summary()
    with pytest.raises(InputError, match=r"penalty of 0\.1"):
        gaussian_fit(data, training__gradient_penalty=0.1).summary()
    replay = ContrastiveDivergence(Persistent(Chain(), 0, 10), energy_penalty=0.1)
    with pytest.raises(InputError, match=r"penalty of 0\.1"):
        gaussian_fit(data, estimator=replay).summary()
    from_data = ContrastiveDivergence(Embedding(Empirical(CentredNormal(0)), Chain()))
    with pytest.raises(InputError, match="without a Metropolis step"):
        gaussian_fit(data, estimator=from_data, estimator__metropolis=False).summary()


def test_names():
    assert parameters.names(Ising(3))[:2] == ("J[0,1]", "J[0,2]")
    linear = Linear(lambda x: jnp.stack([x[0], x[0] ** 2]), 1, names=("x", "x^2"))
    assert parameters.names(SelfNormalised(linear)) == ("x", "x^2", "log_normaliser")
    assert parameters.names(DiagonalGaussian(jnp.zeros(1), parameters.fixed(jnp.zeros(1)))) == (
        "mean[0]",
    )


@pytest.mark.usefixtures("few_draws")
def test_in_the_datas_own_units_and_from_disk(data, tmp_path):
    """w of a Gaussian in its own units, by maximum likelihood; and again after reading."""
    x = data[:, :1]
    start = jnp.array([x.mean() / x.var(), -0.5 / x.var()]) * 1.02
    linear = Linear(lambda x: jnp.stack([x[0], x[0] ** 2]), 1, ("x", "x^2"), start)
    config = Config().with_values(training__noise=0.0, training__potential_rate=1e-3)
    fit = fx.fit(
        x, "mle", potential=linear, coordinates="data", steps=2, config=config, progress=False
    )
    table = fit.one_step().one_step().summary()
    np.testing.assert_allclose(table.estimates, start / 1.02, rtol=0.01)
    assert "data's own units" in str(table)
    fit.save(tmp_path)
    loaded = fx.load(tmp_path, potential=linear)
    with pytest.raises(InputError, match=r"fit\.summary\(x\)"):
        loaded.summary()
    one, other = fit.summary(), loaded.summary(x)
    np.testing.assert_allclose(one.estimates, other.estimates)
    np.testing.assert_allclose(one.standard_errors, other.standard_errors, rtol=1e-3)


def test_named_gaussians_begin_at_the_data_and_others_are_refused():
    scaling = Standardiser(np.array([3.0]), np.array([2.0]))
    config = Config().with_values(potential__coordinates="data", potential__kind="gaussian")
    f = build_model(config, 1, scaling=scaling).potential
    assert float(f.potential.mean[0]) == 3.0
    assert float(jnp.exp(f.potential.log_precision[0])) == pytest.approx(0.25)
    for kind in ("mlp", "ising"):
        with pytest.raises(InputError, match="parameters have units"):
            build_model(config.with_values(potential__kind=kind), 3, scaling=scaling)
    with pytest.raises(InputError, match="coordinates"):
        build_model(config.with_values(potential__coordinates="mine"), 1)
