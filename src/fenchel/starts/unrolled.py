"""A stack of layers written out instead of looped over.

FlowJAX runs its layers under `lax.scan`. Small layers, such as planar ones, do so little work that
the loop itself is most of the time; written out, the compiler fuses neighbouring layers.
"""

import equinox as eqx
import jax
import jax.numpy as jnp
from flowjax.bijections import AbstractBijection, Scan

from fenchel.shapes import Point, Scalar
from fenchel.stacking import unstack


class Unrolled(AbstractBijection):
    """The same map and the same parameters as FlowJAX's `Scan`, without the loop."""

    layers: AbstractBijection  # one module, whose arrays have the layers as their first axis
    shape: tuple[int, ...]
    cond_shape: tuple[int, ...] | None

    def __init__(self, scan: Scan):
        self.layers = scan.bijection
        self.shape, self.cond_shape = scan.shape, scan.cond_shape

    def transform_and_log_det(self, x, condition=None) -> tuple[Point, Scalar]:
        total = jnp.zeros(())
        for layer in self._each():
            x, log_det = layer.transform_and_log_det(x, condition)
            total = total + log_det
        return x, total

    def inverse_and_log_det(self, y, condition=None) -> tuple[Point, Scalar]:
        total = jnp.zeros(())
        for layer in reversed(self._each()):
            y, log_det = layer.inverse_and_log_det(y, condition)
            total = total + log_det
        return y, total

    def _each(self) -> list[AbstractBijection]:
        arrays = jax.tree.leaves(eqx.filter(self.layers, eqx.is_array))
        return [unstack(self.layers, index) for index in range(arrays[0].shape[0])]
