"""log Z in one to three dimensions by a sum over a grid, with an error that it measures itself.

For smooth densities that vanish at the ends of the grid the trapezoidal rule converges faster
than any power of its spacing, and every second node of a grid is a grid: the difference between
the two sums is far more than the error of the finer one. What lies beyond the grid is judged by the
mass in a box twice as wide: with tails as heavy as those of Cauchy's distribution, as much again
lies beyond that.
"""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import paramax
from jax import lax
from jax.typing import ArrayLike

from fenchel.evidence.bracket import LogPartition, known
from fenchel.shapes import Array, Point, Potential

NODES = {1: 8_001, 2: 1_501, 3: 161}  # along each axis, by the number of axes
ROWS = 1_024  # nodes at a time
COARSE = 0.05  # nats between the two sums, from which on the grid is too coarse
BEYOND = 2.5  # times that mass, as the most that is taken to lie beyond the grid
HEAVY = 1e-3  # nats beyond the grid, from which on they are spoken of


def integrated(
    f: Potential, low: Point, high: Point, ends: tuple[ArrayLike, ArrayLike] | None = None
) -> LogPartition:
    """log of the integral of exp f over the box from `low` to `high`.

    `ends` are those of f's own space, where that goes on beyond the box.
    """
    value, coarser = map(float, _sums(f, low, high, NODES[low.size]))
    error, beyond = abs(value - coarser), 0.0
    if ends is not None:
        outside = float(_beyond(f, low, high, ends, NODES[low.size] // 2))
        beyond = BEYOND * float(np.exp(outside - value))
    caution = ""
    if not error < COARSE:
        caution = f"too steep an f for the grid: with half as many nodes log Z is {coarser:.3f}"
    elif not beyond < HEAVY:
        caution = f"about {np.log1p(beyond):.3f} nats may lie beyond the grid: f falls off slowly"
    return known(value, "quadrature")._replace(
        lower=value - error,
        upper=value + error + float(np.log1p(beyond)),
        standard_error=error,
        caution=caution,
    )


@eqx.filter_jit
def _sums(f: Potential, low: Point, high: Point, count: int) -> tuple[Array, Array]:
    """log of the trapezoidal sums over all nodes, and over every second one."""
    values = _on_grid(paramax.unwrap(f), low, high, count)
    every_second = values[(slice(None, None, 2),) * low.size]
    return _trapezoidal(values, low, high), _trapezoidal(every_second, low, high)


@eqx.filter_jit
def _beyond(
    f: Potential, low: Point, high: Point, ends: tuple[ArrayLike, ArrayLike], count: int
) -> Array:
    """log of the integral over a box twice as wide, within f's space, without the box itself."""
    f, margin = paramax.unwrap(f), (high - low) / 2
    wide_low, wide_high = jnp.maximum(low - margin, ends[0]), jnp.minimum(high + margin, ends[1])

    def outside(x: Point) -> Array:
        return jnp.where(jnp.all((low <= x) & (x <= high)), -jnp.inf, f(x))

    values = _on_grid(outside, wide_low, wide_high, count)
    return _trapezoidal(values, wide_low, wide_high)


def _on_grid(f: Potential, low: Point, high: Point, count: int) -> Array:
    """f at the nodes of a grid, (count, ..., count), of which the last are at `high` exactly."""
    shape, along = (count,) * low.size, jnp.linspace(low, high, count)

    def value(index: Array) -> Array:
        place = jnp.stack(jnp.unravel_index(index, shape))
        return f(along[place, jnp.arange(low.size)])

    return lax.map(value, jnp.arange(count**low.size), batch_size=ROWS).reshape(shape)


def _trapezoidal(values: Array, low: Point, high: Point) -> Array:
    spacing = (high - low) / (values.shape[0] - 1)
    for axis in range(values.ndim):
        ends = [slice(None)] * values.ndim
        ends[axis] = jnp.array([0, -1])  # type: ignore[call-overload]
        values = values.at[tuple(ends)].add(-jnp.log(2.0))
    return jax.nn.logsumexp(values) + jnp.sum(jnp.log(spacing))
