"""From settings to the nets of pictures."""

from collections.abc import Callable
from functools import cache
from typing import Any

import equinox as eqx
import jax.numpy as jnp

from fenchel.choices import choose
from fenchel.config import Config, PotentialConfig, StartConfig
from fenchel.dynamics import CentredNormal
from fenchel.errors import InputError
from fenchel.layers import Wrap
from fenchel.parameters import fixed, positive
from fenchel.potentials import ConvNet, ResidualNet, Scaled, spectral
from fenchel.shapes import Array, Key, Potential
from fenchel.starts import DeepPicture, Generator, deconvolutional, residual_generator
from fenchel.weights import rounded

PRECISIONS: dict[str, Any] = {"float32": jnp.float32, "bfloat16": jnp.bfloat16}
# Each is made by one program: layer by layer, every weight's shape would compile some of its own.
POTENTIALS: dict[str, Callable[..., Potential]] = {
    "conv": eqx.filter_jit(ConvNet),
    "residual-conv": eqx.filter_jit(ResidualNet),
}
GENERATORS: dict[str, Callable[..., Generator]] = {
    "deep-picture": eqx.filter_jit(deconvolutional),
    "residual-picture": eqx.filter_jit(residual_generator),
}

Shape = tuple[int, int, int]


def is_of_pictures(config: Config) -> bool:
    """Whether the data of this configuration are pictures."""
    return config.potential.kind in POTENTIALS


def picture_shape(config: Config) -> Shape:
    """Height, width and channels."""
    shape = config.pictures.shape
    if shape is None or len(shape) != 3:
        raise InputError(
            f"The net {config.potential.kind!r} is one of pictures, and pictures.shape is {shape}: "
            "give pictures, or their height, width and channels."
        )
    return shape[0], shape[1], shape[2]


def picture_potential(
    config: PotentialConfig, shape: Shape, activation: Callable[[Array], Array], key: Key
) -> Potential:
    if not config.scale > 0:
        raise InputError(f"potential.scale is {config.scale}: it must be positive.")
    norms = {"spectral": spectral, "none": _in_precision}
    dtype = choose(PRECISIONS, config.precision, "precision")
    wrap = choose(norms, config.norm, "norm of a net's weights")(dtype)
    net = POTENTIALS[config.kind](shape, config.width, activation, wrap, key=key)
    return Scaled(net, (positive if config.learns_scale else fixed)(config.scale))


def picture_start(
    config: StartConfig, shape: Shape, momentum: CentredNormal, key: Key
) -> DeepPicture:
    make = choose(GENERATORS, config.kind, "start of pictures")
    wrap = _in_precision(choose(PRECISIONS, config.precision, "precision"))
    generator = make(shape, config.latent, config.width, wrap, key=key)
    return DeepPicture(generator, momentum, config.latent, config.spread)


@cache  # one object for one precision: a net that is made again is not compiled again
def _in_precision(dtype: Any) -> Wrap:
    return lambda weight, key: rounded(weight, dtype)
