"""The physics of the two steps, in 64-bit: reversible, volume-preserving, second order."""

from functools import partial

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import paramax
import pytest

from fenchel.dynamics import (
    ClipNorm,
    ClipValue,
    Drift,
    Kick,
    Langevin,
    Leapfrog,
    Options,
    Repeat,
    generalized_hmc,
    generalized_langevin,
    hmc,
    kinetic_energy,
    langevin,
    particle_at,
)
from fenchel.dynamics.clip import no_clip
from fenchel.shapes import Array

DIM = 2
CLIPS = {"unclipped": no_clip, "norm": ClipNorm(0.6), "value": ClipValue(0.4)}

pytestmark = pytest.mark.usefixtures("x64")


def anharmonic(x):
    return -0.25 * jnp.sum(x**4) - 0.3 * jnp.sum(x**2) + 0.5 * jnp.sin(2 * x[0]) * x[-1]


def phase():
    return jnp.array([0.9, -0.7]), jnp.array([0.4, 1.1])


def integrate(step, x, v, count=5):
    """(x, v) after `count` steps, with what `log_q` has become from zero."""
    particle = particle_at(anharmonic, x, v, 0.0)
    particle = Repeat(step, count)(anharmonic, particle, jax.random.key(0))
    return particle.x, particle.v, particle.log_q


def leapfrog(clip=no_clip, step_size=0.2):
    return Leapfrog(jnp.full(DIM, step_size), Kick(clip=clip))


def flat(step, z):
    """The map of phase space as one of vectors."""
    return jnp.concatenate(integrate(step, z[:DIM], z[DIM:])[:2])


@pytest.mark.parametrize("clip", CLIPS.values(), ids=CLIPS)
def test_a_leapfrog_is_reversible_and_keeps_volume(clip):
    @jax.jit
    def there_and_back(x, v):
        there = integrate(leapfrog(clip), x, v)
        back = integrate(leapfrog(clip), there[0], -there[1])
        unclipped = integrate(leapfrog(), x, v)[0]
        jacobian = jax.jacfwd(partial(flat, leapfrog(clip)))(jnp.concatenate([x, v]))
        return there, back, unclipped, jacobian

    x, v = phase()
    there, back, unclipped, jacobian = there_and_back(x, v)
    np.testing.assert_allclose(back[0], x, atol=1e-10)
    np.testing.assert_allclose(-back[1], v, atol=1e-10)
    assert abs(abs(np.linalg.det(jacobian)) - 1) < 1e-10
    assert there[2] == 0  # and log_q says so
    # It went somewhere, and where there is a clip, it was felt.
    assert np.max(np.abs(there[0] - x)) > 0.1
    assert (clip is no_clip) == np.allclose(there[0], unclipped)


@pytest.mark.parametrize("dim_scale", [0.0, 0.5, 3.0])
def test_clips(dim_scale):
    score = dim_scale * jnp.array([0.6, -0.8])
    by_norm, by_value = ClipNorm(1.0)(score), ClipValue(1.0)(score)
    np.testing.assert_allclose(by_norm, score / max(1.0, dim_scale), atol=1e-15)
    np.testing.assert_allclose(by_value, np.clip(score, -1, 1))
    # Also at a zero score the gradient must be finite.
    assert jnp.all(jnp.isfinite(jax.jacfwd(ClipNorm(1.0))(score)))


def test_a_map_that_is_no_shear_does_not_keep_volume():
    """The negative control of the volume test: a scale that `log_q` must account for."""
    step = Leapfrog(jnp.full(DIM, 0.2), Kick(lambda score, x: 0.1 * jnp.tanh(x)))
    jacobian = jax.jit(jax.jacfwd(partial(flat, step)))(jnp.concatenate(phase()))
    sign, log_det = np.linalg.slogdet(jacobian)
    assert sign == 1
    assert abs(log_det) > 1e-2
    np.testing.assert_allclose(integrate(step, *phase())[2], -log_det, atol=1e-10)


def test_energy_error_is_of_second_order():
    starts = np.random.default_rng(0).normal(size=(2, 16, DIM))

    def error(step_size, count):
        def change(x, v):
            end_x, end_v, _ = integrate(leapfrog(step_size=step_size), x, v, count)
            after = anharmonic(end_x) - kinetic_energy(end_v, 1.0)
            return after - (anharmonic(x) - kinetic_energy(v, 1.0))

        return np.sqrt(np.mean(jax.jit(jax.vmap(change))(*starts) ** 2))

    coarse, fine = error(0.05, 20), error(0.025, 40)
    assert coarse < 0.05
    assert 3.5 < coarse / fine < 4.5


def test_langevin_step():
    step_size = jnp.array([0.1, 0.3])
    x, v = phase()
    particle = Langevin(step_size)(
        anharmonic, particle_at(anharmonic, x, v, 0.0), jax.random.key(0)
    )
    score = jax.grad(anharmonic)(x)
    expected = x + step_size**2 / 2 * score + step_size * v
    np.testing.assert_allclose(particle.x, expected, atol=1e-14)
    np.testing.assert_allclose(particle.v, v + step_size / 2 * score, atol=1e-14)
    assert particle.log_q == 0


def test_the_cache_is_that_of_the_present_point():
    for step in (leapfrog(), Langevin(jnp.full(DIM, 0.2))):
        particle = step(anharmonic, particle_at(anharmonic, *phase(), 0.0), jax.random.key(0))
        np.testing.assert_allclose(particle.f, anharmonic(particle.x), atol=1e-14)
        np.testing.assert_allclose(particle.score, jax.grad(anharmonic)(particle.x), atol=1e-14)


PAIRS = {"hmc": (hmc, generalized_hmc), "langevin": (langevin, generalized_langevin)}


@eqx.filter_jit
def moved(dynamics, x, v):
    particle = particle_at(anharmonic, x, v, 0.0)
    return paramax.unwrap(dynamics)(anharmonic, particle, jax.random.key(5))


@pytest.mark.parametrize("name", PAIRS)
def test_the_generalized_recipes_start_as_the_plain_ones(name):
    options = Options(steps=2, leapfrogs=2, clip_norm=1.0, step_size=0.2)
    plain, general = (
        moved(make(DIM, options, jax.random.key(0)), *phase()) for make in PAIRS[name]
    )
    for a, b in zip(jax.tree.leaves(plain), jax.tree.leaves(general), strict=True):
        np.testing.assert_allclose(a, b, atol=1e-12)


class Matrix(eqx.Module):
    """A linear g_x, or g_v, which sees the point too."""

    matrix: Array

    def __call__(self, first, *rest):
        return self.matrix @ first


@pytest.mark.parametrize("step", [Leapfrog, Langevin])
def test_explicit_maps_that_are_the_plain_ones(step):
    size, identity = jnp.full(DIM, 0.2), Matrix(jnp.eye(DIM))
    zero = lambda *inputs: jnp.zeros(DIM)  # noqa: E731
    explicit = Drift(zero, identity), Drift(zero, Matrix(2 * jnp.eye(DIM)))

    @jax.jit
    def ends(x, v):
        steps = [step(size), *(step(size, Kick(zero, identity), drift) for drift in explicit)]
        return [integrate(each, x, v) for each in steps]

    plain, general, twice = ends(*phase())
    for a, b in zip(plain, general, strict=True):
        np.testing.assert_allclose(a, b, atol=1e-12)
    # The negative control: twice the identity is another map.
    assert not np.allclose(twice[0], plain[0])


@pytest.mark.parametrize("latent", [1, 3])
def test_projections_begin_as_each_others_transpose(latent):
    dynamics = generalized_hmc(DIM, Options(steps=2, latent=latent), jax.random.key(0))
    to_momenta, to_points = dynamics.layers.kick.force.matrix, dynamics.layers.drift.velocity.matrix
    assert to_momenta.shape == (2, latent, DIM)
    for up, down in zip(to_momenta, to_points, strict=True):
        np.testing.assert_allclose(up, down.T)
        small = up @ up.T if latent < DIM else up.T @ up
        np.testing.assert_allclose(small, np.eye(min(latent, DIM)), atol=1e-12)
