"""A planar layer as the paper's released code has it."""

import jax
import jax.numpy as jnp
from flowjax.bijections import AbstractBijection

from fenchel.shapes import Array, Point, Scalar


class Planar(AbstractBijection):
    """z + û tanh(w·z + b), with w·û = softplus(w·u) - 1 > -1, so that it is one-to-one.

    FlowJAX's own takes log(1 + softplus) in place of softplus, with which a layer can hardly
    stretch. The inverse has no closed form, and nothing here asks for it.
    """

    shape: tuple[int, ...]
    cond_shape: tuple[int, ...] | None
    w: Array
    u: Array
    b: Array

    def __init__(self, w: Array, u: Array, b: Array):
        self.shape, self.cond_shape = w.shape, None
        self.w, self.u, self.b = w, u, b

    @property
    def direction(self) -> Array:
        """û."""
        along = self.w @ self.u
        return self.u + (jax.nn.softplus(along) - 1 - along) * self.w / (self.w @ self.w)

    def transform_and_log_det(self, x, condition=None) -> tuple[Point, Scalar]:
        a, u = jnp.tanh(self.w @ x + self.b), self.direction
        return x + a * u, jnp.log1p((1 - a**2) * (self.w @ u))

    def inverse_and_log_det(self, y, condition=None) -> tuple[Point, Scalar]:
        raise NotImplementedError("A planar layer with a hyperbolic tangent has no closed inverse.")
