"""Completing points of which a part is given, by the learnt dynamics alone."""

import equinox as eqx
import jax
import jax.numpy as jnp
import paramax

from fenchel.dynamics import particle_at
from fenchel.errors import InputError
from fenchel.potentials import Clamped
from fenchel.samplers import AbstractSampler, Embedding
from fenchel.shapes import Array, Key, Point, Points, Potential


def completions(
    f: Potential,
    sampler: AbstractSampler,
    given: Points,
    free: Array,
    rounds: int,
    bounds: tuple[float, float],
    key: Key,
) -> Array:
    """(rounds + 1, n, d): first with uniform noise within `bounds` where `free`, then after each
    round of the sampler's dynamics, every one with a new momentum."""
    if not isinstance(sampler, Embedding) or not hasattr(sampler.start, "momentum"):
        raise InputError("Completion needs learnt dynamics with a momentum, as those of ade.")
    noise_key, round_key = jax.random.split(key)
    noise = jax.random.uniform(noise_key, given.shape, given.dtype, *bounds)
    frames = [jnp.where(free, noise, given)]
    for own in jax.random.split(round_key, rounds):
        frames.append(_round(f, sampler, frames[-1], given, free, own))
    return jnp.stack(frames)


@eqx.filter_jit
def _round(
    f: Potential, sampler: Embedding, x: Points, given: Points, free: Array, key: Key
) -> Points:
    sampler, f = paramax.unwrap((sampler, f))

    def one(x: Point, given: Point, key: Key) -> Point:
        momentum_key, move_key = jax.random.split(key)
        conditional = Clamped(f, free, given)
        v, log_v = sampler.start.momentum.draw(momentum_key)  # type: ignore[attr-defined]
        moved = sampler.dynamics(conditional, particle_at(conditional, x, v, log_v), move_key)
        return conditional.completed(moved.x)

    return jax.vmap(one)(x, given, jax.random.split(key, len(x)))
