"""What convolutional networks are made of, on batches with the channels last.

Everything is in full single precision, on accelerators too: their faster products have 10 bits, and
a score that is compared with published ones would show it.
"""

import math
from collections.abc import Callable

import equinox as eqx
import jax.numpy as jnp
from jax import lax
from jaxtyping import Array, Float

Maps = Float[Array, "n height width channels"]
Layer = Callable[[Maps], Maps]
Pair = tuple[int, int]


class Convolution(eqx.Module):
    """With a bias, then cut to a range; by default that of ReLU."""

    weight: Float[Array, "height width before after"]
    bias: Float[Array, " after"]
    stride: Pair = eqx.field(static=True, default=(1, 1))
    padding: str = eqx.field(static=True, default="SAME")
    least: float = eqx.field(static=True, default=0.0)
    most: float = eqx.field(static=True, default=math.inf)

    def __call__(self, maps: Maps) -> Maps:
        summed = lax.conv_general_dilated(
            maps,
            self.weight,
            self.stride,
            self.padding,
            dimension_numbers=("NHWC", "HWIO", "NHWC"),
            precision=lax.Precision.HIGHEST,
        )
        return jnp.clip(summed + self.bias[None, None, None], self.least, self.most)


class MaxPool(eqx.Module):
    """The largest value in each window."""

    window: Pair = eqx.field(static=True)
    stride: Pair = eqx.field(static=True)
    padding: str = eqx.field(static=True)

    def __call__(self, maps: Maps) -> Maps:
        window, stride = (1, *self.window, 1), (1, *self.stride, 1)
        least = maps.dtype.type(-math.inf)
        return lax.reduce_window(maps, least, lax.max, window, stride, self.padding)


class AveragePool(eqx.Module):
    """The mean over each window, or over what of it is inside of the picture."""

    window: Pair = eqx.field(static=True)
    stride: Pair = eqx.field(static=True)
    padding: str = eqx.field(static=True)

    def __call__(self, maps: Maps) -> Maps:
        return self._sums(maps) / self._sums(jnp.ones_like(maps[:1, :, :, :1]))

    def _sums(self, maps: Maps) -> Maps:
        window, stride = (1, *self.window, 1), (1, *self.stride, 1)
        nothing = maps.dtype.type(0.0)
        return lax.reduce_window(maps, nothing, lax.add, window, stride, self.padding)


class Chain(eqx.Module):
    """One layer after another."""

    layers: tuple[Layer, ...]

    def __call__(self, maps: Maps) -> Maps:
        for layer in self.layers:
            maps = layer(maps)
        return maps


class Branches(eqx.Module):
    """Layers side by side, and their channels one after another."""

    branches: tuple[Layer, ...]

    def __call__(self, maps: Maps) -> Maps:
        return jnp.concatenate([branch(maps) for branch in self.branches], axis=-1)
