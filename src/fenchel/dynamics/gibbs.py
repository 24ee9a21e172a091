"""Gibbs samplers for discrete variables: kernels that leave exp f invariant, without momenta."""

from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
from jax import lax

from fenchel.dynamics.particle import AbstractDynamics, Particle
from fenchel.shapes import Array, Key, Point, Potential
from fenchel.states import all_states, by_size, replaced


class Gibbs(AbstractDynamics):
    """One sweep: each block of variables in turn is drawn from its conditional.

    **Arguments:**

    - `values`: what a variable can be.
    - `blocks`: disjoint sets of variables, drawn jointly by enumeration; by default each alone.
    """

    values: tuple[float, ...] = eqx.field(static=True, default=(-1.0, 1.0))
    blocks: tuple[tuple[int, ...], ...] | None = eqx.field(static=True, default=None)

    @property
    def exact(self) -> bool:
        return False

    def __call__(self, f: Potential, particle: Particle, key: Key) -> Particle:
        x = particle.x
        each_alone = tuple((index,) for index in range(x.size))
        for index, blocks in enumerate(by_size(self.blocks or each_alone)):
            keys = jax.random.split(jax.random.fold_in(key, index), len(blocks))
            states = jnp.asarray(all_states(self.values, blocks.shape[1]), x.dtype)
            x = _sweep(f, x, blocks, states, keys)
        return particle.moved(f, x, jnp.zeros_like(particle.f))


def _sweep(f: Potential, x: Point, blocks: Array, states: Array, keys: Array) -> Point:
    def draw(x: Point, inputs: tuple[Array, Key]) -> tuple[Point, None]:
        block, key = inputs
        candidates = replaced(x, block, states)
        chosen = jax.random.categorical(key, jax.vmap(f)(candidates))
        return candidates[chosen], None

    return lax.scan(draw, x, (blocks, keys))[0]


class HiddenGibbs(AbstractDynamics):
    """Block Gibbs for a restricted Boltzmann machine: all hidden units, then all visible ones.

    f must have `hidden_logits` and `visible_logits`.
    """

    @property
    def exact(self) -> bool:
        return False

    def __call__(self, f: Potential, particle: Particle, key: Key) -> Particle:
        hidden_key, visible_key = jax.random.split(key)
        machine: Any = f
        hidden = _bernoulli(hidden_key, machine.hidden_logits(particle.x))
        x = _bernoulli(visible_key, machine.visible_logits(hidden))
        return particle.moved(f, x, jnp.zeros_like(particle.f))


def _bernoulli(key: Key, logits: Array) -> Array:
    return jax.random.bernoulli(key, jax.nn.sigmoid(logits)).astype(logits.dtype)
