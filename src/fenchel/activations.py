"""What nets put between their layers, where JAX's own would be slower or another one."""

from functools import partial

import jax
import jax.numpy as jnp

from fenchel.shapes import Array

SLOPE = 0.1


def silu(x: Array) -> Array:
    """x σ(x), by 2 σ(x) = 1 + tanh(x/2).

    A CPU takes a hyperbolic tangent in less time than an exponential and a division, and so its
    derivatives, of which a gradient through the dynamics needs two. The error is x times a
    rounding of one: nothing in single precision, too much where numbers have eight bits.
    """
    if x.dtype.itemsize < 4:
        return jax.nn.silu(x)
    half = 0.5 * x
    return half + half * jnp.tanh(half)


@jax.custom_jvp
def leaky_relu(x: Array) -> Array:
    """The paper's, with a slope of 0.1 below zero, and at it.

    Its derivative is read off its own value, and a product: nothing but that value follows x, so
    that a GPU can end a convolution with it, and a loop over scores keeps no whole arrays of zeros,
    as it does where a derivative selects.
    """
    return jnp.maximum(x, SLOPE * x)


@leaky_relu.defjvp
def _(primals: tuple[Array], tangents: tuple[Array]) -> tuple[Array, Array]:
    y = leaky_relu(*primals)
    return y, _sloped(y > 0, tangents[0])


@partial(jax.checkpoint, prevent_cse=False)  # what is kept is where, not the slopes there
def _sloped(above: Array, tangent: Array) -> Array:
    return tangent * jnp.maximum(above.astype(tangent.dtype), SLOPE)
