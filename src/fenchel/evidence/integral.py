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
        beyond = BEYOND * float(_beyond(f, low, high, ends, NODES[low.size] // 2) / jnp.exp(value))
    caution = ""
    if not error < COARSE:
        caution = f"f is too steep for the grid: with half as many nodes log Z is {coarser:.3f}"
    elif not beyond < HEAVY:
        caution = f"f falls off slowly: about {np.log1p(beyond):.3f} nats may lie beyond the grid"
    return known(value, "quadrature")._replace(
        lower=value - error,
        upper=value + error + float(np.log1p(beyond)),
        standard_error=error,
        caution=caution,
    )


@eqx.filter_jit
def _sums(f: Potential, low: Point, high: Point, count: int) -> tuple[Array, Array]:
    """log of the trapezoidal sums over all nodes, and over every second one."""
    spacing = (high - low) / (count - 1)
    values = _on_grid(paramax.unwrap(f), low, spacing, count)
    every_second = values[(slice(None, None, 2),) * low.size]
    return _trapezoidal(values, spacing), _trapezoidal(every_second, 2 * spacing)


@eqx.filter_jit
def _beyond(
    f: Potential, low: Point, high: Point, ends: tuple[ArrayLike, ArrayLike], count: int
) -> Array:
    """The integral over a box twice as wide, within f's space, without the box itself."""
    f, margin = paramax.unwrap(f), (high - low) / 2
    wide_low, wide_high = jnp.maximum(low - margin, ends[0]), jnp.minimum(high + margin, ends[1])

    def outside(x: Point) -> Array:
        return jnp.where(jnp.all((low <= x) & (x <= high)), -jnp.inf, f(x))

    spacing = (wide_high - wide_low) / (count - 1)
    return jnp.exp(_trapezoidal(_on_grid(outside, wide_low, spacing, count), spacing))


def _on_grid(f: Potential, low: Point, spacing: Array, count: int) -> Array:
    """f at the nodes of a grid, (count, ..., count)."""
    shape = (count,) * low.size

    def value(index: Array) -> Array:
        place = jnp.stack(jnp.unravel_index(index, shape))
        return f(low + spacing * place)

    return lax.map(value, jnp.arange(count**low.size), batch_size=ROWS).reshape(shape)


def _trapezoidal(values: Array, spacing: Array) -> Array:
    for axis in range(values.ndim):
        ends = [slice(None)] * values.ndim
        ends[axis] = jnp.array([0, -1])  # type: ignore[call-overload]
        values = values.at[tuple(ends)].add(-jnp.log(2.0))
    return jax.nn.logsumexp(values) + jnp.sum(jnp.log(spacing))
