"""f of a picture: the paper's convolutional net, and a residual one.

Points are flat, as everywhere: a net folds its own back into height, width and channels.
"""

from collections.abc import Callable
from functools import cache

import equinox as eqx
import jax
import jax.numpy as jnp
from jax.typing import DTypeLike

from fenchel.activations import leaky_relu
from fenchel.errors import InputError
from fenchel.layers import Convolution, Dense, Wrap, halved, plain
from fenchel.shapes import Array, Key, Point, Scalar
from fenchel.weights import SpectralNorm, rounded

Activation = Callable[[Array], Array]
Shape = tuple[int, int, int]  # height, width, channels


class ConvNet(eqx.Module):
    """The paper's f: five 3 x 3 convolutions, two halvings, a mean over pixels, one number.

    `width` is that of the first layer, 64 in the paper.
    """

    layers: tuple[Convolution, ...]
    last: Dense
    shape: Shape = eqx.field(static=True)
    activation: Activation = eqx.field(static=True)

    def __init__(
        self,
        shape: Shape,
        width: int = 64,
        activation: Activation = leaky_relu,
        wrap: Wrap = plain,
        *,
        key: Key,
    ):
        _require_divisible(shape, 4)
        widths = (shape[-1], width, 2 * width, 2 * width, 4 * width, 4 * width)
        keys = jax.random.split(key, 6)
        self.layers = tuple(
            Convolution(widths[i], widths[i + 1], 3, wrap, key=keys[i]) for i in range(5)
        )
        self.last = Dense(widths[-1], 1, wrap, key=keys[5])
        self.shape, self.activation = shape, activation

    def __call__(self, x: Point) -> Scalar:
        y = x.reshape(self.shape)
        for index, layer in enumerate(self.layers):
            y = self.activation(layer(y))
            y = halved(y) if index in (1, 3) else y
        return _number(self.last, jnp.mean(_precise(y), axis=(0, 1)), x)


class ResidualBlock(eqx.Module):
    """y = conv(act(conv(act(x)))), halved or not, and to it the shortcut of x, halved likewise."""

    first: Convolution
    second: Convolution
    shortcut: Convolution | None
    halves: bool = eqx.field(static=True)
    activation: Activation = eqx.field(static=True)

    def __init__(
        self, inputs: int, outputs: int, halves: bool, activation: Activation, wrap: Wrap, *, key
    ):
        keys = jax.random.split(key, 3)
        self.first = Convolution(inputs, outputs, 3, wrap, key=keys[0])
        self.second = Convolution(outputs, outputs, 3, wrap, key=keys[1])
        changes = halves or inputs != outputs
        self.shortcut = Convolution(inputs, outputs, 1, wrap, key=keys[2]) if changes else None
        self.halves, self.activation = halves, activation

    def __call__(self, x: Array) -> Array:
        y = self.activation(self.first(self.activation(x)))
        y = self.second.halved(y) if self.halves else self.second(y)
        x = halved(x) if self.halves else x  # before its shortcut, which costs less then
        return y + (x if self.shortcut is None else self.shortcut(x))


class ResidualNet(eqx.Module):
    """Four residual blocks, the first two halving, a mean over pixels, one number."""

    first: Convolution
    blocks: tuple[ResidualBlock, ...]
    last: Dense
    shape: Shape = eqx.field(static=True)
    activation: Activation = eqx.field(static=True)

    def __init__(
        self,
        shape: Shape,
        width: int = 128,
        activation: Activation = leaky_relu,
        wrap: Wrap = plain,
        *,
        key: Key,
    ):
        _require_divisible(shape, 4)
        keys = jax.random.split(key, 6)
        self.first = Convolution(shape[-1], width, 3, wrap, key=keys[0])
        self.blocks = tuple(
            ResidualBlock(width, width, index < 2, activation, wrap, key=keys[1 + index])
            for index in range(4)
        )
        self.last = Dense(width, 1, wrap, key=keys[5])
        self.shape, self.activation = shape, activation

    def __call__(self, x: Point) -> Scalar:
        y = self.first(x.reshape(self.shape))
        for block in self.blocks:
            y = block(y)
        y = jnp.mean(_precise(self.activation(y)), axis=(0, 1))
        return _number(self.last, y, x)


class Scaled(eqx.Module):
    """`scale` times f.

    A spectral norm bounds how steep a net can be, and a mean over pixels divides that by their
    number: exp f could not be peaked. What multiplies the net is not normalised, and may be learnt.
    """

    potential: Callable[[Point], Scalar]
    scale: Array

    def __call__(self, x: Point) -> Scalar:
        return self.scale * self.potential(x)


@cache
def spectral(dtype: DTypeLike = jnp.float32) -> Wrap:
    """Weights with a spectral norm, used in this precision; one object for each of those."""
    return lambda weight, key: rounded(SpectralNorm(weight, key=key), dtype)  # type: ignore[arg-type]


def _precise(y: Array) -> Array:
    """Sums over pixels, and what comes of them, are in full precision."""
    return y.astype(jnp.promote_types(y.dtype, jnp.float32))


def _number(last: Dense, y: Array, x: Point) -> Scalar:
    # In full precision too, but for its rounded weights: f is a log density.
    return (y @ last.weight[:, 0].astype(y.dtype) + last.bias[0]).astype(x.dtype)


def _require_divisible(shape: Shape, by: int) -> None:
    if any(side % by for side in shape[:2]):
        raise InputError(
            f"The pictures are {shape[0]} x {shape[1]}, and this net halves them twice: crop or "
            f"pad them to multiples of {by}."
        )
