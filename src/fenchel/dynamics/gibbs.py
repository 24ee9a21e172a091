"""Gibbs samplers for discrete variables: kernels that leave exp f invariant, without momenta."""

from collections.abc import Sequence
from itertools import product
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from fenchel.dynamics.particle import AbstractDynamics, Particle
from fenchel.shapes import Array, Key, Point, Potential


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
        for index, blocks in enumerate(self._by_size(x.size)):
            keys = jax.random.split(jax.random.fold_in(key, index), len(blocks))
            states = jnp.asarray(list(product(self.values, repeat=blocks.shape[1])), x.dtype)
            x = _sweep(f, x, jnp.asarray(blocks), states, keys)
        return particle.moved(f, x, jnp.zeros_like(particle.f))

    def _by_size(self, dim: int) -> list[np.ndarray]:
        """Blocks of one size are one scan."""
        blocks: Sequence[Sequence[int]] = self.blocks or [(index,) for index in range(dim)]
        sizes = sorted({len(block) for block in blocks})
        return [np.array([block for block in blocks if len(block) == size]) for size in sizes]


def _sweep(f: Potential, x: Point, blocks: Array, states: Array, keys: Array) -> Point:
    def draw(x: Point, inputs: tuple[Array, Key]) -> tuple[Point, None]:
        block, key = inputs
        candidates = jax.vmap(lambda state: x.at[block].set(state))(states)
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
