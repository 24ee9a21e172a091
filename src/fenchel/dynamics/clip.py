"""Bounding the score before it kicks.

A kick v' = v + η c(∇f(x)) is a shear for *any* function c of x: its Jacobian is unit triangular.
So clipping the score changes where a particle goes, and leaves the density exact.
"""

import equinox as eqx
import jax
import jax.numpy as jnp

from fenchel.shapes import Array, Point


class ClipNorm(eqx.Module):
    """Scale the score down to at most this Euclidean norm."""

    limit: float = eqx.field(static=True)

    def __call__(self, score: Point) -> Point:
        squared = jnp.sum(score**2)
        over = squared > self.limit**2
        # The inner `where` keeps the square root's gradient finite at a zero score.
        norm = jnp.sqrt(jnp.where(over, squared, 1.0))
        return jnp.where(over, score * (self.limit / norm), score)


class ClipValue(eqx.Module):
    """Cut every coordinate of the score at ± this value."""

    limit: float = eqx.field(static=True)

    def __call__(self, score: Point) -> Point:
        return cut(score, -self.limit, self.limit)


def no_clip(score: Point) -> Point:
    return score


def cut(x: Array, low: Array | float, high: Array | float) -> Array:
    """Into [low, high]; with slope 1 at what is not changed, the ends included, and 0 elsewhere.

    A loop keeps one truth value a number of it for the way back, of `jnp.clip` two numbers.
    """
    inside = jnp.clip(jax.lax.stop_gradient(x), low, high)
    return jnp.where(inside == x, x, inside)
