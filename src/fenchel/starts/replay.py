"""The replay buffer: go on from where earlier particles ended."""

from typing import NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax.typing import DTypeLike

from fenchel.dynamics import CentredNormal
from fenchel.shapes import Array, Key, Momentum, Point, Points, Scalar
from fenchel.starts.start import AbstractStart


class Buffer(NamedTuple):
    points: Points
    cursor: Array  # where the next batch is written; the oldest points go first


class Replay(AbstractStart):
    """A point of the buffer, or with probability `restart` fresh noise.

    The buffer starts as noise: normal with deviation `noise`, or, where the points are kept in a
    finite `box`, uniform in it, since much of the other would begin on its walls. What it holds has
    no tractable density, so, as for the empirical start, `log_q` counts the momentum only.
    """

    momentum: CentredNormal
    capacity: int = eqx.field(static=True, default=10_000)
    restart: float = eqx.field(static=True, default=0.05)
    noise: float = eqx.field(static=True, default=2.0)
    box: tuple[float, float] | None = eqx.field(static=True, default=None)

    @property
    def exact(self) -> bool:
        return False

    def init(self, data: Points, key: Key) -> Buffer:
        shape = (self.capacity, *data.shape[1:])
        return Buffer(self._fresh(key, shape, data.dtype), jnp.zeros((), jnp.int32))

    def draw(self, point: Point, state: Buffer, key: Key) -> tuple[Point, Momentum, Scalar]:
        pick_key, restart_key, noise_key, v_key = jax.random.split(key, 4)
        old = state.points[jax.random.randint(pick_key, (), 0, self.capacity)]
        new = self._fresh(noise_key, old.shape, old.dtype)
        x = jnp.where(jax.random.bernoulli(restart_key, self.restart), new, old)
        v, log_v = self.momentum.draw(v_key)
        return x, v, log_v

    def _fresh(self, key: Key, shape: tuple[int, ...], dtype: DTypeLike) -> Array:
        if self.box is None or not np.isfinite(self.box).all():
            return self.noise * jax.random.normal(key, shape, dtype)
        return jax.random.uniform(key, shape, dtype, *self.box)

    def remember(self, state: Buffer, x: Points) -> Buffer:
        x = x[-self.capacity :]  # of more than it can hold, the last
        slots = (state.cursor + jnp.arange(x.shape[0])) % self.capacity
        # A particle that ran off must not be met again.
        whole = jnp.all(jnp.isfinite(x), axis=tuple(range(1, x.ndim)), keepdims=True)
        kept = jnp.where(whole, x, state.points[slots])
        cursor = (state.cursor + x.shape[0]) % self.capacity
        return Buffer(state.points.at[slots].set(kept), cursor.astype(state.cursor.dtype))
