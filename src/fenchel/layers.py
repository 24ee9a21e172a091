"""Layers for pictures: one picture (height, width, channels) at a time.

They compute in the precision of their weights, which `weights.rounded` sets.
"""

from collections.abc import Callable
from functools import partial

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from fenchel.shapes import Array, Key

Wrap = Callable[[Array, Key], Array]  # what becomes of a fresh weight, such as a spectral norm
LAYOUT = ("NHWC", "HWIO", "NHWC")
FEW = 4  # channels
# Where two pixels meet: which taps of a kernel of three see the one before and the one after, of
# the last that the former is doubled to, and of the first that the latter is.
MET = np.array([[[1, 1, 0], [0, 0, 1]], [[1, 0, 0], [0, 1, 1]]])


def plain(weight: Array, key: Key) -> Array:
    """The weight as it is."""
    return weight


class Convolution(eqx.Module):
    """`size` x `size`, as large as it came, plus a bias."""

    weight: Array  # height, width, inputs, outputs
    bias: Array

    def __init__(self, inputs: int, outputs: int, size: int, wrap: Wrap = plain, *, key: Key):
        self.weight = _wrapped((size, size, inputs, outputs), wrap, key)
        self.bias = jnp.zeros(outputs)

    def __call__(self, x: Array) -> Array:
        return self._of(x, self.weight, _around(len(self.weight)))

    def halved(self, x: Array) -> Array:
        """`halved(self(x))` by a mean of kernels, once in four; of a picture with even sides.

        Of a 3 x 3 convolution that is less than half of the work.
        """
        return self._of(x, _of_four(self.weight), _around(len(self.weight)), 2)

    def of_doubled(self, x: Array) -> Array:
        """`self(doubled(x))` of a 3 x 3 convolution, likewise for less than half of the work.

        Where four pixels of x meet, four of the doubled picture do that see no others.
        """
        kernel = jnp.einsum("sak,tbl,klio->abisto", MET, MET, self.weight)
        y = _convolved(x, kernel.reshape(*kernel.shape[:3], -1), (1, 1))
        return _shifted(_unfolded(y)[1:-1, 1:-1], self.bias)

    def _of(self, x: Array, kernel: Array, around: tuple[int, int], stride: int = 1) -> Array:
        return _shifted(_convolved(x, kernel, around, stride), self.bias)


class OfDoubled(eqx.Module):
    """A convolution of a picture twice as large."""

    convolution: Convolution

    def __call__(self, x: Array) -> Array:
        return self.convolution.of_doubled(x)


class Doubling(eqx.Module):
    """A 2 x 2 transposed convolution of stride 2: every pixel becomes four."""

    weight: Array  # inputs, and for each of the four pixels the outputs
    bias: Array

    def __init__(self, inputs: int, outputs: int, wrap: Wrap = plain, *, key: Key):
        self.weight = _wrapped((inputs, 4 * outputs), wrap, key)
        self.bias = jnp.zeros(outputs)

    def __call__(self, x: Array) -> Array:
        return _shifted(_unfolded(x.astype(self.weight.dtype) @ self.weight), self.bias)


class Dense(eqx.Module):
    """A vector to a vector."""

    weight: Array  # inputs, outputs
    bias: Array

    def __init__(self, inputs: int, outputs: int, wrap: Wrap = plain, *, key: Key):
        self.weight = _wrapped((inputs, outputs), wrap, key)
        self.bias = jnp.zeros(outputs)

    def __call__(self, x: Array) -> Array:
        y = x.astype(self.weight.dtype) @ self.weight
        return _shifted(y, self.bias)


def halved(x: Array) -> Array:
    """The mean of every 2 x 2 pixels."""
    height, width, channels = x.shape
    return jnp.mean(x.reshape(height // 2, 2, width // 2, 2, channels), axis=(1, 3))


def doubled(x: Array) -> Array:
    """Every pixel four times."""
    return jnp.repeat(jnp.repeat(x, 2, axis=0), 2, axis=1)


def _unfolded(y: Array) -> Array:
    """Four pixels of every one, which holds their channels one after the other."""
    height, width, _ = y.shape
    y = y.reshape(height, width, 2, 2, -1).transpose(0, 2, 1, 3, 4)
    return y.reshape(2 * height, 2 * width, -1)


def _shifted(y: Array, bias: Array) -> Array:
    """Each channel by its own."""
    return y + jnp.broadcast_to(bias.astype(y.dtype), y.shape)


def _of_four(weight: Array) -> Array:
    """What 2 x 2 pixels beside each other see on average, in a kernel larger by one."""
    kernel = weight.astype(jnp.promote_types(weight.dtype, jnp.float32)) / 4
    kernel = jnp.pad(kernel, ((0, 1), (0, 1), (0, 0), (0, 0)))
    for axis in (0, 1):
        kernel = kernel + jnp.roll(kernel, 1, axis)
    return kernel.astype(weight.dtype)


def _convolved(x: Array, weight: Array, around: tuple[int, int], stride: int = 1) -> Array:
    """In the precision of the weight, by whichever way is the fastest.

    A GPU's library pads few channels to many, which takes longer than one matrix product of
    patches. On a CPU that product takes a small part of the time within loops, where all training
    and all dynamics are: there XLA hands no convolution to a library. Patches are many times as
    large as what they are made of, and so are made again on the way back.
    """
    x = x.astype(weight.dtype)
    if _on_cpu():
        return _again_by_patches(x, weight, around, stride)
    return (_by_few_channels if weight.shape[2] <= FEW else _by_library)(x, weight, around, stride)


def _around(size: int) -> tuple[int, int]:
    """How many zeros a kernel needs before and after a picture that shall stay as large."""
    return (size - 1) // 2, size // 2


def _on_cpu() -> bool:
    return jax.default_backend() == "cpu"


def _by_library(x: Array, weight: Array, around: tuple[int, int], stride: int) -> Array:
    strides = (stride, stride)
    y = lax.conv_general_dilated(x[None], weight, strides, [around] * 2, dimension_numbers=LAYOUT)
    return y[0]


def _by_patches(
    patches: Callable, x: Array, weight: Array, around: tuple[int, int], stride: int
) -> Array:
    """As one matrix product."""
    size, _, inputs, outputs = weight.shape
    x = jnp.pad(x, (around, around, (0, 0)))
    return patches(x, size, stride) @ weight.reshape(size * size * inputs, outputs)


def _patches(x: Array, size: int, stride: int) -> Array:
    """What a kernel of this size sees of each place, side by side."""
    height, width = (side - size + 1 for side in x.shape[:2])
    patches = [
        x[row : row + height : stride, column : column + width : stride]
        for row in range(size)
        for column in range(size)
    ]
    return jnp.concatenate(patches, axis=-1)


@partial(jax.custom_jvp, nondiff_argnums=(1, 2))
def _patches_by_rows(x: Array, size: int, stride: int) -> Array:
    """The same in two steps, which a GPU is sooner done with; but not with their transposes."""
    height, width = (side - size + 1 for side in x.shape[:2])
    shifted = [x[:, column : column + width : stride] for column in range(size)]
    seen = lax.optimization_barrier(jnp.concatenate(shifted, axis=-1))  # within a row
    return jnp.concatenate([seen[row : row + height : stride] for row in range(size)], axis=-1)


@_patches_by_rows.defjvp
def _patches_by_rows_jvp(size: int, stride: int, primals: tuple[Array], tangents: tuple[Array]):
    return _patches_by_rows(*primals, size, stride), _patches(*tangents, size, stride)


_by_few_channels = partial(_by_patches, _patches_by_rows)
_again_by_patches = jax.checkpoint(partial(_by_patches, _patches), static_argnums=(2, 3))


def _wrapped(shape: tuple[int, ...], wrap: Wrap, key: Key) -> Array:
    """A fresh weight with He's variance, for a last axis of outputs."""
    weight_key, wrap_key = jax.random.split(key)
    inputs = 1
    for length in shape[:-1]:
        inputs *= length
    weight = jax.random.normal(weight_key, shape) * (2 / inputs) ** 0.5
    return wrap(weight, wrap_key)
