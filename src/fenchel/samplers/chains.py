"""Markov chains as samplers: that go on, that tune themselves, several kinds side by side."""

from collections.abc import Sequence
from typing import NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import paramax
from jax import lax

from fenchel.dynamics import (
    AbstractDynamics,
    CentredNormal,
    Particle,
    acceptance,
    particle_at,
    scaled,
)
from fenchel.errors import InputError
from fenchel.samplers.embedding import AbstractSampler
from fenchel.shapes import Array, Key, Point, Points, Potential, PyTree, Scalar
from fenchel.starts import put_back

ROUNDS = 30


class ChainState(NamedTuple):
    points: Points
    cursor: Array  # the chains take turns when a batch is smaller than their number


class Persistent(AbstractSampler):
    """`count` chains that begin at data points and never restart.

    A batch moves as many of them as it has rows, in turn, and leaves them where they arrived.
    """

    kernel: AbstractDynamics
    momentum: CentredNormal
    count: int = eqx.field(static=True)

    def __init__(self, kernel: AbstractDynamics, momentum: int, count: int = 256):
        """`momentum` is the dimension of the kernel's: 0 for a Gibbs sampler."""
        if count < 1:
            raise InputError(f"{count} chains were asked for: give at least one.")
        self.kernel = kernel
        self.momentum = CentredNormal(momentum)
        self.count = count

    @property
    def exact(self) -> bool:
        return False

    def init(self, data: Points, key: Key) -> ChainState:
        rows = jax.random.randint(key, (self.count,), 0, data.shape[0])
        return ChainState(data[rows], jnp.zeros((), jnp.int32))

    def draw(
        self, f: Potential, points: Points, state: ChainState, key: Key
    ) -> tuple[Particle, ChainState]:
        sampler, f = paramax.unwrap((self, f))

        def one(x: Point, key: Key) -> Particle:
            v_key, move_key = jax.random.split(key)
            v, log_v = sampler.momentum.draw(v_key)
            return sampler.kernel(f, particle_at(f, x, v, log_v), move_key)

        n = points.shape[0]
        turn = (state.cursor + jnp.arange(n)) % self.count
        particles = jax.vmap(one)(state.points[turn], jax.random.split(key, n))
        moved = put_back(state.points, turn, particles.x)
        return particles, ChainState(moved, ((state.cursor + n) % self.count).astype(jnp.int32))

    def reordered(self, state: ChainState, key: Key) -> ChainState:
        return state._replace(points=jax.random.permutation(key, state.points))


class TunedState(NamedTuple):
    inner: PyTree
    log_factor: Scalar  # on the step sizes


class Tuned(AbstractSampler):
    """A sampler whose step sizes follow its Metropolis steps' acceptance to `target`.

    After each draw their logarithm moves by `speed` times what acceptance is above the target.
    Without a Metropolis step there is nothing to follow, and they stay.
    """

    sampler: AbstractSampler
    target: float = eqx.field(static=True, default=0.8)
    speed: float = eqx.field(static=True, default=0.2)

    @property
    def exact(self) -> bool:
        return self.sampler.exact

    def init(self, data: Points, key: Key) -> TunedState:
        return TunedState(self.sampler.init(data, key), jnp.zeros((), jnp.result_type(float)))

    def reordered(self, state: TunedState, key: Key) -> TunedState:
        return state._replace(inner=self.sampler.reordered(state.inner, key))

    def draw(
        self, f: Potential, points: Points, state: TunedState, key: Key
    ) -> tuple[Particle, TunedState]:
        return self._draw(f, points, state, key, self.speed)

    @eqx.filter_jit
    def settled(self, f: Potential, points: Points, state: TunedState, key: Key) -> TunedState:
        """The state once the step sizes fit f: after `ROUNDS` draws that are thrown away.

        They move fast at first, so that a start that is wrong a hundredfold does no harm.
        """

        def once(state: TunedState, inputs: tuple[Key, Scalar]) -> tuple[TunedState, None]:
            return self._draw(f, points, state, *inputs)[1], None

        speeds = jnp.maximum(4 / (1 + jnp.arange(ROUNDS) / 3), self.speed)
        return lax.scan(once, state, (jax.random.split(key, ROUNDS), speeds))[0]

    def _draw(
        self, f: Potential, points: Points, state: TunedState, key: Key, speed: Scalar | float
    ) -> tuple[Particle, TunedState]:
        sampler = scaled(self.sampler, jnp.exp(state.log_factor))
        particles, inner = sampler.draw(f, points, state.inner, key)
        accepted = acceptance(particles)
        move = jnp.where(jnp.isnan(accepted), 0.0, speed * (accepted - self.target))
        # Up to a thousandfold either way: farther off something else is wrong.
        log_factor = jnp.clip(state.log_factor + move, -7.0, 7.0)
        return particles, TunedState(inner, log_factor.astype(state.log_factor.dtype))


class Ensemble(AbstractSampler):
    """Several samplers, each for an equal part of the batch (the first take what is left over)."""

    samplers: tuple[AbstractSampler, ...]

    def __init__(self, samplers: Sequence[AbstractSampler]):
        if not samplers:
            raise InputError("An ensemble needs at least one sampler.")
        self.samplers = tuple(samplers)

    @property
    def exact(self) -> bool:
        return all(sampler.exact for sampler in self.samplers)

    def init(self, data: Points, key: Key) -> tuple[PyTree, ...]:
        keys = jax.random.split(key, len(self.samplers))
        return tuple(sampler.init(data, k) for sampler, k in zip(self.samplers, keys, strict=True))

    def reordered(self, state: tuple[PyTree, ...], key: Key) -> tuple[PyTree, ...]:
        keys = jax.random.split(key, len(self.samplers))
        return tuple(
            s.reordered(own, k) for s, own, k in zip(self.samplers, state, keys, strict=True)
        )

    def draw(
        self, f: Potential, points: Points, state: tuple[PyTree, ...], key: Key
    ) -> tuple[Particle, tuple[PyTree, ...]]:
        parts = jnp.array_split(points, len(self.samplers))
        keys = jax.random.split(key, len(self.samplers))
        drawn = [
            sampler.draw(f, part, own, k)
            for sampler, part, own, k in zip(self.samplers, parts, state, keys, strict=True)
        ]
        particles = jax.tree.map(lambda *leaves: jnp.concatenate(leaves), *[p for p, _ in drawn])
        return particles, tuple(new for _, new in drawn)
