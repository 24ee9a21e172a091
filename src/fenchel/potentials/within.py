"""A potential on a box or a half-line: nothing is outside."""

import equinox as eqx
import jax.numpy as jnp

from fenchel.parameters import fixed
from fenchel.shapes import Array, Point, Potential, Scalar


class Within(eqx.Module):
    """`potential` between `low` and `high` in each coordinate, minus infinity elsewhere."""

    potential: Potential
    low: Array
    high: Array

    def __init__(self, potential: Potential, low: float | Array, high: float | Array):
        self.potential = potential
        self.low = fixed(low)
        self.high = fixed(high)

    def __call__(self, x: Point) -> Scalar:
        inside = jnp.all((x >= self.low) & (x <= self.high))
        # Outside, f is asked for at the nearest point inside, so that it stays finite to look at.
        nearest = jnp.where(inside, x, jnp.clip(x, self.low, self.high))
        return jnp.where(inside, self.potential(nearest), -jnp.inf)
