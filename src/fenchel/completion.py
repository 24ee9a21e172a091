"""Completing points of which a part is given, by the learnt dynamics alone."""

from collections.abc import Iterator

import equinox as eqx
import jax
import jax.numpy as jnp
import paramax

from fenchel.dynamics import particle_at, unroll
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
    few: int,
    key: Key,
) -> Iterator[Array]:
    """For a few points at a time (rounds + 1, few, d): first with uniform noise within `bounds`
    where `free`, then after each round of the sampler's dynamics, every one with a new momentum."""
    sampler = _moving(sampler, key)
    noise_key, round_key = jax.random.split(key)
    noise = jax.random.uniform(noise_key, given.shape, given.dtype, *bounds)
    first = jnp.where(free, noise, given)
    # A point's noise and keys are its own, so that they do not depend on how many move at a time.
    keys = [jax.random.split(own, len(given)) for own in jax.random.split(round_key, rounds)]
    for begin in range(0, len(given), few):
        part = slice(begin, begin + few)
        frames = [first[part]]
        for own in keys:
            frames.append(_round(f, sampler, frames[-1], given[part], free, own[part]))
        yield jnp.stack(frames)


def _moving(sampler: AbstractSampler, key: Key) -> Embedding:
    """The sampler, if it has dynamics that can complete anything."""
    if not isinstance(sampler, Embedding) or not hasattr(sampler.start, "momentum"):
        raise InputError("Completion needs learnt dynamics with a momentum, as those of ade.")
    if not unroll(paramax.unwrap(sampler.dynamics), key):
        raise InputError(
            "This model has no dynamics, without which what is hidden would stay noise: complete "
            "by one that was fitted with some, as by --preset mnist-completion."
        )
    return sampler


@eqx.filter_jit
def _round(
    f: Potential, sampler: Embedding, x: Points, given: Points, free: Array, keys: Key
) -> Points:
    sampler, f = paramax.unwrap((sampler, f))

    def one(x: Point, given: Point, key: Key) -> Point:
        momentum_key, move_key = jax.random.split(key)
        conditional = Clamped(f, free, given)
        v, log_v = sampler.start.momentum.draw(momentum_key)  # type: ignore[attr-defined]
        moved = sampler.dynamics(conditional, particle_at(conditional, x, v, log_v), move_key)
        return conditional.completed(moved.x)

    return jax.vmap(one)(x, given, keys)
