"""The bounds on log Z, the penalty and the anchor, against closed forms.

Statistical tests use fixed seeds; the failure rates they state are those of a correct
implementation over the choice of the seed.
"""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import paramax
import pytest
from flowjax.distributions import Normal
from scipy import special, stats

from fenchel.dynamics import CentredNormal, Chain, Particle
from fenchel.estimators import (
    FenchelBound,
    Pairs,
    WeightedBound,
    anchor,
    effective_sample_size,
    gradient_penalty,
    log_mean_exp,
)
from fenchel.potentials import DiagonalGaussian, Linear
from fenchel.samplers import Embedding
from fenchel.starts import Flow

pytestmark = pytest.mark.usefixtures("x64")


def gaussian():
    return DiagonalGaussian(jnp.array([0.5, -1.0]), jnp.array([0.3, -0.8]))


def gaussian_sampler(mean, scale) -> Embedding:
    """Independent normals, no dynamics: the momentum is the model's own."""
    start = Flow(Normal(jnp.asarray(mean), jnp.asarray(scale)), CentredNormal(2))
    return Embedding(start, Chain())


@eqx.filter_jit
def draw(sampler, f, n: int, seed: int) -> Particle:
    return sampler.draw(f, jnp.zeros((n, 2)), None, jax.random.key(seed))[0]


def particles_of(log_w) -> Particle:
    """Particles that hold nothing but their weights."""
    log_w = jnp.asarray(log_w)
    zero = jnp.zeros_like(log_w)
    points = jnp.zeros((log_w.size, 1))
    return Particle(points, points, log_w, points, zero, zero, zero, zero, zero)


@pytest.mark.parametrize("bound", [FenchelBound(), WeightedBound()])
@pytest.mark.parametrize("n", [1, 5])
def test_exact_when_the_sampler_is_the_model(bound, n):
    f = gaussian()
    particles = draw(gaussian_sampler(f.mean, jnp.exp(-f.log_precision / 2)), f, n, 0)
    assert jnp.ptp(particles.log_weight) < 1e-12  # no variance at all
    assert bound.log_partition(particles) == pytest.approx(float(f.log_partition()), abs=1e-12)


def test_both_are_lower_bounds_and_the_weighted_one_is_tighter():
    """Means over 2,000 batches of 8, each 4.5 standard errors on its side: fails 1 in 10⁵.

    The gaps are many standard errors wide, and leaving the entropy out is the negative control:
    that is no bound, and the same comparison says so.
    """
    f, scale = gaussian(), np.array([1.3, 1.6])
    sampler = gaussian_sampler(jnp.zeros(2), scale)
    particles = draw(sampler, f, 16_000, 1)
    batches = jax.tree.map(lambda leaf: leaf.reshape(2_000, 8, *leaf.shape[1:]), particles)

    def mean_and_error(bound):
        values = np.asarray(jax.jit(jax.vmap(bound.log_partition))(batches))
        return values.mean(), values.std() / len(values) ** 0.5

    log_z = float(f.log_partition())
    precision, mean = np.exp(f.log_precision), np.asarray(f.mean)
    # The divergence of two Gaussians, coordinate by coordinate.
    gap = 0.5 * np.sum(
        precision * scale**2 + precision * mean**2 - 1 - np.log(precision * scale**2)
    )
    plain, plain_error = mean_and_error(FenchelBound())
    weighted, weighted_error = mean_and_error(WeightedBound())
    assert abs(plain - (log_z - gap)) < 4.5 * plain_error
    assert plain + 4.5 * plain_error < weighted - 4.5 * weighted_error
    assert weighted + 4.5 * weighted_error < log_z
    wrong, wrong_error = mean_and_error(FenchelBound(entropy=0.0, momentum=0.0))
    assert abs(wrong - (log_z - gap)) > 20 * wrong_error


def test_coefficients_weigh_their_terms():
    f = gaussian()
    particles = draw(gaussian_sampler(jnp.zeros(2), jnp.ones(2)), f, 5, 0)
    expected = jnp.mean(particles.f - 0.25 * particles.kinetic - 3.0 * particles.log_q)
    assert FenchelBound(entropy=3.0, momentum=0.25).log_partition(particles) == expected


def test_only_the_weighted_bound_needs_a_density():
    assert WeightedBound().needs_density
    assert not FenchelBound().needs_density


@pytest.mark.parametrize("shift", [0.0, 1e4, -1e4])
def test_effective_sample_size_between_its_limits(shift):
    equal = jnp.full(50, shift)
    assert effective_sample_size(equal) == pytest.approx(1.0, rel=1e-9)
    alone = equal.at[3].add(800.0)
    assert effective_sample_size(alone) == pytest.approx(1 / 50, rel=1e-9)
    half = equal.at[:25].add(-800.0)
    assert effective_sample_size(half) == pytest.approx(0.5, rel=1e-9)


def test_log_mean_exp_does_not_overflow():
    log_w = jnp.array([-1.0, 0.5, 2.0])
    expected = np.log(np.mean(np.exp(np.asarray(log_w))))
    assert log_mean_exp(log_w + 5_000) == pytest.approx(expected + 5_000, rel=1e-12)


@pytest.mark.parametrize("wanted", [0.05, 0.1, 0.5])
def test_tempering_leaves_just_the_wanted_sample_size(wanted):
    log_w = 6.0 * jax.random.normal(jax.random.key(0), (200,))
    assert effective_sample_size(log_w) < wanted  # there is something to do
    tempered = WeightedBound(wanted).temper(log_w)
    power = float(tempered[0] / log_w[0])
    np.testing.assert_allclose(tempered, power * log_w, rtol=1e-12)
    assert 0 < power < 1
    assert effective_sample_size(tempered) >= wanted
    # The power is the largest such, to the 12 bits of the bisection.
    assert effective_sample_size((power + 2.0**-12) * log_w) < wanted
    assert effective_sample_size(tempered) == pytest.approx(wanted, rel=0.02)


def test_tempering_does_nothing_where_the_sample_size_is_enough():
    log_w = 0.3 * jax.random.normal(jax.random.key(0), (200,))
    assert effective_sample_size(log_w) > 0.1
    assert (WeightedBound(0.1).temper(log_w) == log_w).all()


def weights_of(parameter):
    """Log weights that depend on a vector of two, unequally and not linearly."""
    base = jnp.linspace(-1.0, 1.0, 40)
    return 1.5 * base + parameter[0] * base**2 - jnp.sin(parameter[1] * base)


def test_gradient_of_the_weighted_bound_is_that_of_the_log_mean_weight():
    @jax.jit
    def both(at):
        bound = lambda p: WeightedBound(0.0).log_partition(particles_of(weights_of(p)))  # noqa: E731
        exact = lambda p: log_mean_exp(weights_of(p))  # noqa: E731
        return jax.value_and_grad(bound)(at), jax.value_and_grad(exact)(at)

    (value, grad), (exact, exact_grad) = both(jnp.array([0.4, 0.7]))
    assert value == pytest.approx(float(exact), abs=1e-14)
    np.testing.assert_allclose(grad, exact_grad, rtol=1e-12)


def test_gradient_under_tempering_is_self_normalised_by_the_tempered_weights():
    bound = WeightedBound(0.8)

    @jax.jit
    def ours_and_parts(at):
        ours = jax.value_and_grad(lambda p: bound.log_partition(particles_of(weights_of(p))))(at)
        log_w = weights_of(at)
        return ours, log_w, bound.temper(log_w), jax.jacobian(weights_of)(at)

    (value, grad), log_w, tempered, jacobian = ours_and_parts(jnp.array([3.0, 0.7]))
    assert value == pytest.approx(float(log_mean_exp(log_w)), abs=1e-14)  # the value is untouched
    np.testing.assert_allclose(grad, special.softmax(tempered) @ jacobian, rtol=1e-12)
    untempered = special.softmax(log_w) @ jacobian
    assert np.max(np.abs(grad - untempered)) > 0.01  # and it is another one


def test_log_likelihood_of_a_gaussian():
    f = gaussian()
    data = jax.random.normal(jax.random.key(3), (11, 2))
    scale = jnp.exp(-f.log_precision / 2)
    particles = draw(gaussian_sampler(f.mean, scale), f, 5, 0)
    expected = stats.norm.logpdf(data, f.mean, scale).sum(axis=1).mean()
    for bound in (FenchelBound(), WeightedBound()):
        assert bound.value(jax.vmap(f)(data), particles) == pytest.approx(expected, abs=1e-12)


def test_pairs_push_half_as_hard_as_the_likelihood_at_first_and_not_at_all_in_the_end():
    def pushes(bound, gap):
        """The gradients with respect to f at the data and at the draws."""
        at_data, at_draws = jnp.array([0.3, -0.4]), jnp.array([0.3, -0.4]) - gap
        value = lambda a, b: bound.value(a, particles_of(b))  # noqa: E731
        return np.concatenate(jax.grad(value, argnums=(0, 1))(at_data, at_draws))

    likelihood = pushes(FenchelBound(), 0.0)
    np.testing.assert_allclose(likelihood, [0.5, 0.5, -0.5, -0.5])
    np.testing.assert_allclose(pushes(Pairs(), 0.0), likelihood / 2, rtol=1e-12)
    np.testing.assert_allclose(pushes(Pairs(), 40.0), 0, atol=1e-15)
    np.testing.assert_allclose(pushes(FenchelBound(), 40.0), likelihood)
    value = Pairs().value(jnp.array([1.0, 0.0]), particles_of([0.0, 2.0]))
    assert value == pytest.approx(-np.mean(np.log1p(np.exp([-1.0, 2.0]))), rel=1e-12)


def test_gradient_penalty_is_the_mean_squared_score():
    f, points = gaussian(), jax.random.normal(jax.random.key(4), (9, 2))
    score = jnp.exp(f.log_precision)[None] * (points - f.mean[None])
    expected = float(jnp.mean(jnp.sum(score**2, axis=1)))
    assert gradient_penalty(f, points) == pytest.approx(expected, rel=1e-12)
    linear = Linear(lambda x: x, 2, weights=jnp.array([3.0, -4.0]))
    assert gradient_penalty(linear, points) == pytest.approx(25.0, rel=1e-12)


def test_anchor_is_the_starts_log_likelihood():
    mean, scale = jnp.array([0.2, 1.0]), jnp.array([0.5, 2.0])
    points = jax.random.normal(jax.random.key(5), (9, 2))
    value = anchor(paramax.unwrap(gaussian_sampler(mean, scale).start), points)
    expected = stats.norm.logpdf(points, mean, scale).sum(axis=1).mean()
    assert value == pytest.approx(expected, rel=1e-12)
