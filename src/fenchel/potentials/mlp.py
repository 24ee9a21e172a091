"""A multi-layer perceptron as the potential."""

from collections.abc import Callable

import equinox as eqx
import jax

from fenchel.shapes import Array, Key, Point, Scalar


class MLP(eqx.Module):
    """Smooth by default (SiLU).

    A ReLU net has a zero Hessian almost everywhere, so the gradient through the dynamics, which
    sees f only through its score, would mostly be lost; pass `activation=jax.nn.relu` to have it.
    """

    net: eqx.nn.MLP

    def __init__(
        self,
        dim: int,
        width: int = 128,
        depth: int = 3,
        activation: Callable[[Array], Array] = jax.nn.silu,
        *,
        key: Key,
    ):
        self.net = eqx.nn.MLP(dim, "scalar", width, depth, activation, key=key)

    def __call__(self, x: Point) -> Scalar:
        return self.net(x)
