"""Integrals of exp f over some of its coordinates: sums over states, or quadrature.

A measure hands out *nodes*: points with the block's coordinates replaced, and the logarithms of
their weights. A conditional p(x_A | x_-A) is then a softmax over nodes, and its normaliser a
logsumexp, whatever the coordinates are.
"""

from abc import abstractmethod
from collections.abc import Sequence
from typing import NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from numpy.typing import ArrayLike

from fenchel.estimators.domain import Domain
from fenchel.shapes import Array, Point, Points, Potential, Scalar
from fenchel.states import all_states, replaced

CHUNK = 2**16  # nodes at a time


class Nodes(NamedTuple):
    x: Points
    log_weight: Array

    def log_integral(self, f: Potential) -> Scalar:
        return jax.nn.logsumexp(self.values(f))

    def values(self, f: Potential) -> Array:
        """f at each node with its weight: what a softmax makes the conditional of."""
        values = (
            lax.map(f, self.x, batch_size=CHUNK) if len(self.x) > CHUNK else jax.vmap(f)(self.x)
        )
        return values + self.log_weight


class AbstractMeasure(eqx.Module):
    """What a sum or an integral over coordinates is."""

    @property
    @abstractmethod
    def name(self) -> str:
        """In a word."""

    @abstractmethod
    def nodes(self, f: Potential, x: Point, block: Array) -> Nodes:
        """Nodes for the integral of exp f over the coordinates in `block`, the others as in x."""


class Counting(AbstractMeasure):
    """Each coordinate takes these values: an exact sum."""

    values: tuple[float, ...] = eqx.field(static=True, default=(-1.0, 1.0))

    @property
    def name(self) -> str:
        return "enumeration"

    def nodes(self, f: Potential, x: Point, block: Array) -> Nodes:
        states = jnp.asarray(all_states(self.values, block.size), x.dtype)
        points = replaced(x, block, states)
        return Nodes(points, jnp.zeros(points.shape[0], x.dtype))


class Quadrature(AbstractMeasure):
    """Gauss and Legendre's rule, `count` nodes a coordinate, over a range that finds itself.

    The range begins as `reach` around 0 (the data are standardised) or as the domain, and in
    `rounds` looks along the block grows where exp f is still large at an open end, and shrinks
    where it is below exp(-`depth`) of its peak.
    """

    count: int = eqx.field(static=True, default=48)
    domain: Domain = Domain()
    reach: float = eqx.field(static=True, default=4.0)
    rounds: int = eqx.field(static=True, default=4)
    looks: int = eqx.field(static=True, default=25)
    depth: float = eqx.field(static=True, default=25.0)

    @property
    def name(self) -> str:
        return "quadrature"

    def nodes(self, f: Potential, x: Point, block: Array) -> Nodes:
        # Where the nodes are is not differentiated, and neither are the looks for it.
        arrays, static = eqx.partition(f, eqx.is_array)
        still = eqx.combine(lax.stop_gradient(arrays), static)
        low, high = lax.stop_gradient(self.reached(still, x, block))
        rule = np.polynomial.legendre.leggauss(self.count)
        unit, weight = (jnp.asarray(part, x.dtype) for part in rule)
        middle, half = (low + high) / 2, (high - low) / 2
        axes = middle[:, None] + half[:, None] * unit[None]
        logs = jnp.log(half)[:, None] + jnp.log(weight)[None]
        points = replaced(x, block, _tensor(axes))
        return Nodes(points, jnp.sum(_tensor(logs), axis=-1))

    def fall(self, f: Potential, dim: int) -> Scalar:
        """By how many nats f falls from its peak to the open ends of the range that was found."""
        origin, block = jnp.zeros(dim), jnp.arange(dim)
        low, high = self.reached(f, origin, block)
        x = self.nodes(f, origin, block).x
        values = jax.vmap(f)(x)
        first, last = (end(x, axis=0, keepdims=True) for end in (jnp.min, jnp.max))
        outermost = ((low > self.domain.low)[None] & (x == first)) | (
            (high < self.domain.high)[None] & (x == last)
        )
        at_ends = jnp.where(jnp.any(outermost, axis=1), values, -jnp.inf)
        return jnp.max(values) - jnp.max(at_ends)

    def reached(self, f: Potential, x: Point, block: Array) -> tuple[Array, Array]:
        """The low and the high end, along each coordinate of the block, of where exp f is."""
        ends = jnp.asarray(self.domain.low), jnp.asarray(self.domain.high)
        floor, ceiling = (jnp.broadcast_to(end, x.shape)[block].astype(x.dtype) for end in ends)
        start = (
            jnp.where(jnp.isfinite(floor), floor, jnp.minimum(x[block], 0) - self.reach),
            jnp.where(jnp.isfinite(ceiling), ceiling, jnp.maximum(x[block], 0) + self.reach),
        )

        def look(_, ends):
            low, high = ends
            unit = jnp.linspace(0, 1, self.looks, dtype=x.dtype)
            axes = low[:, None] + (high - low)[:, None] * unit[None]
            points = replaced(x, block, _tensor(axes))
            values = jax.vmap(f)(points).reshape((self.looks,) * block.size)
            alive = values > jnp.max(values) - self.depth
            return _refitted(alive, axes, floor, ceiling)

        return lax.fori_loop(0, self.rounds, look, start)


def panelled(edges: Sequence[ArrayLike], count: int) -> Nodes:
    """Nodes of Gauss and Legendre's rule between any two neighbouring edges, along each coordinate.

    For integrands that jump, at the edges.
    """
    unit, weight = np.polynomial.legendre.leggauss(count)
    axes, logs = [], []
    for along in map(np.asarray, edges):
        middle, half = (along[1:] + along[:-1]) / 2, np.diff(along) / 2
        axes.append((middle[:, None] + half[:, None] * unit).ravel())
        logs.append(np.log(half[:, None] * weight).ravel())
    return Nodes(_tensor(axes), jnp.sum(_tensor(logs), axis=-1))


def _refitted(alive: Array, axes: Array, floor: Array, ceiling: Array) -> tuple[Array, Array]:
    """A range one look wider than what is alive, and by half wider still at an end that is."""
    lows, highs = [], []
    for axis in range(axes.shape[0]):
        others = tuple(other for other in range(axes.shape[0]) if other != axis)
        along = jnp.any(alive, axis=others)
        first, last = jnp.argmax(along), along.size - 1 - jnp.argmax(along[::-1])
        values = axes[axis]
        gap, width = values[1] - values[0], values[-1] - values[0]
        lows.append(values[first] - jnp.where(along[0], width / 2, gap))
        highs.append(values[last] + jnp.where(along[-1], width / 2, gap))
    return jnp.maximum(jnp.stack(lows), floor), jnp.minimum(jnp.stack(highs), ceiling)


def _tensor(axes: Array | Sequence[ArrayLike]) -> Array:
    """Every combination of one entry from each axis, one combination a row."""
    grids = jnp.meshgrid(*axes, indexing="ij")
    return jnp.stack([grid.ravel() for grid in grids], axis=-1)
