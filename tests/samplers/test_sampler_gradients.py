"""The two gradient estimators, and samplers that start from points."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from fenchel.dynamics import CentredNormal, Options, hmc
from fenchel.potentials import DiagonalGaussian
from fenchel.samplers import BackPropagation, Embedding, Truncated
from fenchel.starts import Empirical, Replay

pytestmark = pytest.mark.usefixtures("x64")


@pytest.fixture
def one_by_one():
    """Operation by operation: most programs here run once, and take far longer to compile."""
    with jax.disable_jit():
        yield


eager = pytest.mark.usefixtures("one_by_one")


POINTS = np.array([[-1.0, 0.5], [0.2, 1.0]])
KEY = 4


def gaussian():
    return DiagonalGaussian(jnp.array([0.3, -0.2]), jnp.array([0.1, 0.5]))


def sampler():
    dynamics = hmc(2, Options(steps=2, step_size=0.4), jax.random.key(0))
    return Embedding(Empirical(CentredNormal(2)), dynamics)


def particles_of(gradient, f):
    return gradient.draw(sampler(), f, jnp.asarray(POINTS), None, jax.random.key(KEY))[0]


def gradient_of(loss, gradient, f):
    """Of the mean of a function of the particles, with respect to f; and the particles."""

    def mean(f):
        particles = particles_of(gradient, f)
        return jnp.mean(jax.vmap(loss)(particles)), particles

    return eqx.filter_grad(mean, has_aux=True)(f)


def leaves_allclose(a, b, atol):
    pairs = zip(jax.tree.leaves(a), jax.tree.leaves(b), strict=True)
    return all(np.allclose(x, y, rtol=0, atol=atol) for x, y in pairs)


@eager
def test_both_draw_the_same_particles():
    through, stopped = (
        particles_of(gradient, gaussian()) for gradient in (BackPropagation(), Truncated())
    )
    for a, b in zip(jax.tree.leaves(through), jax.tree.leaves(stopped), strict=True):
        np.testing.assert_array_equal(a, b)


@eager
def test_truncated_is_the_gradient_at_fixed_points():
    f = gaussian()
    gradient, particles = gradient_of(lambda p: p.f, Truncated(), f)
    at_points = eqx.filter_grad(lambda f: jnp.mean(jax.vmap(f)(particles.x)))(f)
    assert leaves_allclose(gradient, at_points, 1e-12)
    # Through the dynamics it is another one.
    through, _ = gradient_of(lambda p: p.f, BackPropagation(), f)
    assert not leaves_allclose(through, at_points, 1e-3)


@eager
def test_truncated_passes_nothing_but_f():
    def all_but_f(particle):
        return jnp.sum(particle.x) + particle.kinetic + particle.log_q + jnp.sum(particle.score)

    zero = jax.tree.map(jnp.zeros_like, gaussian())
    assert leaves_allclose(gradient_of(all_but_f, Truncated(), gaussian())[0], zero, 0.0)
    assert not leaves_allclose(gradient_of(all_but_f, BackPropagation(), gaussian())[0], zero, 1e-3)


@eager
def test_back_propagation_is_the_derivative_of_the_objective():
    """Against central differences, in the mean."""
    f, shift = gaussian(), 1e-5

    def objective(mean):
        particles = particles_of(BackPropagation(), eqx.tree_at(lambda f: f.mean, f, mean))
        return jnp.mean(particles.log_weight)

    gradient, _ = gradient_of(lambda p: p.log_weight, BackPropagation(), f)
    differences = [
        (objective(f.mean + shift * unit) - objective(f.mean - shift * unit)) / (2 * shift)
        for unit in jnp.eye(2)
    ]
    np.testing.assert_allclose(gradient.mean, np.array(differences), atol=1e-7)


def test_a_replay_buffer_remembers_where_the_particles_ended():
    replay = Replay(CentredNormal(2), capacity=4)
    embedding = Embedding(replay, hmc(2, Options(steps=2), jax.random.key(0)))
    assert not embedding.exact
    state = embedding.init(jnp.asarray(POINTS), jax.random.key(1))
    draw = eqx.filter_jit(embedding.draw)
    particles, after = draw(gaussian(), jnp.asarray(POINTS), state, jax.random.key(2))
    np.testing.assert_array_equal(after.points[:2], particles.x)
    np.testing.assert_array_equal(after.points[2:], state.points[2:])
    assert after.cursor == 2
