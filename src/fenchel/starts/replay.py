"""The replay buffer: go on from where earlier particles ended."""

from typing import NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
from jax import lax

from fenchel.dynamics import CentredNormal
from fenchel.shapes import Array, Key, Momentum, Point, Points, Scalar
from fenchel.starts.batch_norm import BATCH
from fenchel.starts.fresh import AbstractFresh, Noise
from fenchel.starts.start import AbstractStart


class Buffer(NamedTuple):
    points: Points
    cursor: Array  # whose turn it is


def put_back(points: Points, slots: Array, x: Points) -> Points:
    """The points with x in these slots; one that ran off must not be met again, and is not."""
    whole = jnp.all(jnp.isfinite(x), axis=tuple(range(1, x.ndim)), keepdims=True)
    return points.at[slots].set(jnp.where(whole, x, points[slots]))


class Replay(AbstractStart):
    """As many chains as it has room for, taken up in turn and put back where they were.

    Picked at random and put in the place of others, a few would soon have bred all the rest. With
    probability `restart` a chain begins anew, as `fresh` says, as all do at first; where `aside` is
    given, every other one as that says, and those are for learning only: a model that is handed out
    has none of them, and begins no chain anew.

    What it holds has no tractable density, so, as for the empirical start, `log_q` counts the
    momentum only. For use under `vmap` with the axis named `BATCH`.
    """

    momentum: CentredNormal
    capacity: int = eqx.field(static=True, default=10_000)
    restart: float = eqx.field(static=True, default=0.05)
    fresh: AbstractFresh = Noise()
    aside: AbstractFresh | None = None
    stride: int = eqx.field(static=True, default=1)  # from one of its chains to the next

    @property
    def exact(self) -> bool:
        return False

    def init(self, data: Points, key: Key) -> Buffer:
        row_key, fresh_key = jax.random.split(key)
        rows = jax.random.randint(row_key, (self.capacity,), 0, data.shape[0])
        keys = jax.random.split(fresh_key, self.capacity)
        points = jax.vmap(self._begun)(jnp.arange(self.capacity), data[rows], keys)
        return Buffer(points, jnp.zeros((), jnp.int32))

    def draw(self, point: Point, state: Buffer, key: Key) -> tuple[Point, Momentum, Scalar]:
        restart_key, fresh_key, v_key = jax.random.split(key, 3)
        slot = self._slot(state.cursor + lax.axis_index(BATCH))
        old = state.points[slot]
        new = self._begun(slot, point.astype(old.dtype), fresh_key)
        x = jnp.where(jax.random.bernoulli(restart_key, self.restart), new, old)
        v, log_v = self.momentum.draw(v_key)
        return x, v, log_v

    def remember(self, state: Buffer, x: Points) -> Buffer:
        n = x.shape[0]
        # Of more than it can hold, the last.
        slots = self._slot(state.cursor + jnp.arange(n))[-self.chains :]
        x = x[-self.chains :]
        turn = (state.cursor + n) % self.chains
        return Buffer(put_back(state.points, slots, x), turn.astype(state.cursor.dtype))

    def reordered(self, state: Buffer, key: Key) -> Buffer:
        slots = self._slot(jnp.arange(self.chains))
        points = state.points[jax.random.permutation(key, slots)]
        return Buffer(state.points.at[slots].set(points), jnp.zeros_like(state.cursor))

    def settled(self, key: Key) -> "Replay":
        stride = self.stride if self.aside is None else 2 * self.stride
        return Replay(self.momentum, self.capacity, 0.0, self.fresh, None, stride)

    @property
    def chains(self) -> int:
        """How many are its own."""
        return -(-self.capacity // self.stride)

    def _slot(self, turn: Array) -> Array:
        return self.stride * (turn % self.chains)

    def _begun(self, slot: Array, point: Point, key: Key) -> Point:
        fresh = self.fresh(point, key)
        return fresh if self.aside is None else jnp.where(slot % 2, self.aside(point, key), fresh)
