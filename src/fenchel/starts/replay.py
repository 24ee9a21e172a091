"""The replay buffer: go on from where earlier particles ended."""

from typing import NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp

from fenchel.dynamics import CentredNormal
from fenchel.shapes import Array, Key, Momentum, Point, Points, Scalar
from fenchel.starts.fresh import AbstractFresh, Noise
from fenchel.starts.start import AbstractStart


class Buffer(NamedTuple):
    points: Points
    cursor: Array  # where the next batch is written; the oldest points go first


class Replay(AbstractStart):
    """A point of the buffer, or with probability `restart` a fresh one, as all of it is at first.

    What it holds has no tractable density, so, as for the empirical start, `log_q` counts the
    momentum only.
    """

    momentum: CentredNormal
    capacity: int = eqx.field(static=True, default=10_000)
    restart: float = eqx.field(static=True, default=0.05)
    fresh: AbstractFresh = Noise()

    @property
    def exact(self) -> bool:
        return False

    def init(self, data: Points, key: Key) -> Buffer:
        row_key, fresh_key = jax.random.split(key)
        rows = jax.random.randint(row_key, (self.capacity,), 0, data.shape[0])
        points = jax.vmap(self.fresh)(data[rows], jax.random.split(fresh_key, self.capacity))
        return Buffer(points, jnp.zeros((), jnp.int32))

    def draw(self, point: Point, state: Buffer, key: Key) -> tuple[Point, Momentum, Scalar]:
        pick_key, restart_key, fresh_key, v_key = jax.random.split(key, 4)
        old = state.points[jax.random.randint(pick_key, (), 0, self.capacity)]
        new = self.fresh(point.astype(old.dtype), fresh_key)
        x = jnp.where(jax.random.bernoulli(restart_key, self.restart), new, old)
        v, log_v = self.momentum.draw(v_key)
        return x, v, log_v

    def settled(self, key: Key) -> "Replay":
        return eqx.tree_at(lambda r: r.fresh, self, self.fresh.settled())

    def remember(self, state: Buffer, x: Points) -> Buffer:
        x = x[-self.capacity :]  # of more than it can hold, the last
        slots = (state.cursor + jnp.arange(x.shape[0])) % self.capacity
        # A particle that ran off must not be met again.
        whole = jnp.all(jnp.isfinite(x), axis=tuple(range(1, x.ndim)), keepdims=True)
        kept = jnp.where(whole, x, state.points[slots])
        cursor = (state.cursor + x.shape[0]) % self.capacity
        return Buffer(state.points.at[slots].set(kept), cursor.astype(state.cursor.dtype))
