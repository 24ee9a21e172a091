"""A potential that sees the data as they were measured, in a run that standardises them."""

import equinox as eqx
import jax.numpy as jnp
from numpy.typing import ArrayLike

from fenchel.parameters import fixed
from fenchel.shapes import Array, Point, Potential, Scalar


class InUnits(eqx.Module):
    """`potential` at mean + scale * x: its parameters speak of the data in their own units."""

    potential: Potential
    mean: Array
    scale: Array

    def __init__(self, potential: Potential, mean: ArrayLike, scale: ArrayLike):
        self.potential = potential
        self.mean = fixed(jnp.asarray(mean))
        self.scale = fixed(jnp.asarray(scale))

    def __call__(self, x: Point) -> Scalar:
        return self.potential(self.mean + self.scale * x)
