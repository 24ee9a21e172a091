"""A multi-layer perceptron as the potential."""

from collections.abc import Callable

import equinox as eqx
import jax
import jax.numpy as jnp

from fenchel.activations import silu
from fenchel.shapes import Array, Key, Point, Scalar


class MLP(eqx.Module):
    """Smooth by default (SiLU).

    A ReLU net has a zero Hessian almost everywhere, so the gradient through the dynamics, which
    sees f only through its score, would mostly be lost; pass `activation=jax.nn.relu` to have it.

    The weights start with He's variance, twice the standard deviation in the first layer, and
    biases spread over the data's range. With the smaller start that is usual for classifiers the
    net learns only the coarse shape for thousands of steps: eight Gaussians stay one ring.
    """

    net: eqx.nn.MLP

    def __init__(
        self,
        dim: int,
        width: int = 128,
        depth: int = 3,
        activation: Callable[[Array], Array] = silu,
        *,
        key: Key,
    ):
        net = eqx.nn.MLP(dim, "scalar", width, depth, activation, key=key)
        keys = jax.random.split(key, len(net.layers))
        gains = (2.0, *(1.0 for _ in net.layers[1:]))
        layers = tuple(map(_spread, net.layers, gains, keys))
        self.net = eqx.tree_at(lambda net: net.layers, net, layers)

    def __call__(self, x: Point) -> Scalar:
        return self.net(x)


def _spread(layer: eqx.nn.Linear, gain: float, key: Key) -> eqx.nn.Linear:
    """The layer with weights of He's variance times gain², and standard normal biases."""
    weight_key, bias_key = jax.random.split(key)
    scale = gain * jnp.sqrt(2.0 / layer.weight.shape[-1])
    weight = scale * jax.random.normal(weight_key, layer.weight.shape)
    bias = jax.tree.map(lambda b: jax.random.normal(bias_key, b.shape), layer.bias)
    return eqx.tree_at(lambda layer: (layer.weight, layer.bias), layer, (weight, bias))
