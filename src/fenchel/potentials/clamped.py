"""f of some coordinates, the others given."""

from collections.abc import Callable

import equinox as eqx
import jax.numpy as jnp

from fenchel.shapes import Array, Point, Scalar


class Clamped(eqx.Module):
    """f where `free` is true, at the values `given` elsewhere: the conditional, unnormalised.

    Its score is zero at what is given, so that dynamics along it move only what is free.
    """

    potential: Callable[[Point], Scalar]
    free: Array
    given: Point

    def __call__(self, x: Point) -> Scalar:
        return self.potential(self.completed(x))

    def completed(self, x: Point) -> Point:
        """The point with what is given in its place."""
        return jnp.where(self.free, x, self.given)
