"""The features in which pictures are compared: those of the Inception network of 2015-12-05.

It is the network of all published Fréchet Inception distances, up to its 2,048 pooled features.
Others with the same name (torchvision's, Keras', TF-slim's) were trained anew, and their distances
are not comparable with anything. In its last block the pool is a maximum, unlike the others'.

The weights are the user's: an .npz file that has, for each of the 94 convolutions, NAME.weight in
PyTorch's order of axes, and its batch normalisation's NAME.beta, .mean and .var.
"""

from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from fenchel.evaluate.convolutions import (
    AveragePool,
    Branches,
    Chain,
    Convolution,
    Layer,
    MaxPool,
)
from fenchel.evaluate.pictures import BATCH, Pictures, Progress, in_batches, prepared, silent
from fenchel.evaluate.weight_files import (
    Arrays,
    check_fits_together,
    from_oihw,
    read_arrays,
    wrong_file,
)

EPSILON = 1e-3  # of the batch normalisation, whose gamma is 1


class Kernel(NamedTuple):
    """How a convolution goes over a picture."""

    height: int
    width: int
    stride: int = 1
    padding: str = "SAME"


class Named(NamedTuple):
    """A convolution, whose weights have this name in the file."""

    name: str
    kernel: Kernel


class Fork(NamedTuple):
    """Chains of layers side by side."""

    chains: tuple[tuple["Part", ...], ...]


Part = Named | Fork | MaxPool | AveragePool

ONE, THREE, FIVE = Kernel(1, 1), Kernel(3, 3), Kernel(5, 5)
ROW, COLUMN = Kernel(1, 7), Kernel(7, 1)
INSIDE, HALVING = Kernel(3, 3, 1, "VALID"), Kernel(3, 3, 2, "VALID")
MEAN = AveragePool((3, 3), (1, 1), "SAME")
LARGEST = MaxPool((3, 3), (1, 1), "SAME")
HALVING_POOL = MaxPool((3, 3), (2, 2), "VALID")


def _row(name: str, *kernels: Kernel) -> tuple[Named, ...]:
    """Convolutions that the file calls NAME, NAME_1, NAME_2 and so on."""
    names = (name if i == 0 else f"{name}_{i}" for i in range(len(kernels)))
    return tuple(Named(*pair) for pair in zip(names, kernels, strict=True))


def _apart(name: str) -> Fork:
    """A 3 x 3 neighbourhood as a row and a column of three, side by side."""
    return Fork(tuple((part,) for part in _row(name, Kernel(1, 3), Kernel(3, 1))))


def _last_kind(pool: AveragePool | MaxPool) -> Fork:
    return Fork(
        (
            _row("conv", ONE),
            (*_row("tower_conv", ONE), _apart("tower_mixed_conv")),
            (*_row("tower_1_conv", ONE, THREE), _apart("tower_1_mixed_conv")),
            (pool, *_row("tower_2_conv", ONE)),
        )
    )


STEM: tuple[Part, ...] = (
    *_row("conv", HALVING, INSIDE, THREE),
    HALVING_POOL,
    Named("conv_3", ONE),
    Named("conv_4", INSIDE),
    HALVING_POOL,
)
SMALL = Fork(
    (
        _row("conv", ONE),
        _row("tower.conv", ONE, FIVE),
        _row("tower_1.conv", ONE, THREE, THREE),
        (MEAN, *_row("tower_2.conv", ONE)),
    )
)
TO_17 = Fork((_row("conv", HALVING), _row("tower.conv", ONE, THREE, HALVING), (HALVING_POOL,)))
LONG = Fork(
    (
        _row("conv", ONE),
        _row("tower.conv", ONE, ROW, COLUMN),
        _row("tower_1.conv", ONE, COLUMN, ROW, COLUMN, ROW),
        (MEAN, *_row("tower_2.conv", ONE)),
    )
)
TO_8 = Fork(
    (
        _row("tower.conv", ONE, HALVING),
        _row("tower_1.conv", ONE, ROW, COLUMN, HALVING),
        (HALVING_POOL,),
    )
)
BLOCKS = {
    "mixed": SMALL,  # on 35 x 35 positions
    "mixed_1": SMALL,
    "mixed_2": SMALL,
    "mixed_3": TO_17,
    "mixed_4": LONG,
    "mixed_5": LONG,
    "mixed_6": LONG,
    "mixed_7": LONG,
    "mixed_8": TO_8,
    "mixed_9": _last_kind(MEAN),
    "mixed_10": _last_kind(LARGEST),
}


class Inception(eqx.Module):
    """From pictures of any size to their features: see `features`."""

    layers: Chain

    def __call__(self, pictures: Pictures) -> Float[Array, "n features"]:
        return jnp.mean(self.layers(prepared(pictures)), axis=(1, 2))


def load_inception(path: str | Path) -> Inception:
    """The network with the weights in the .npz file at `path`."""
    arrays = read_arrays(path)
    try:
        stem = [_built(part, "", arrays) for part in STEM]
        blocks = [_built(block, f"{name}.", arrays) for name, block in BLOCKS.items()]
        network = Inception(Chain((*stem, *blocks)))
        check_fits_together(network)
    except KeyError as error:
        reason = f"it has no array {error.args[0]}"
        raise wrong_file(path, "the FID Inception network", reason) from error
    except ValueError as error:
        raise wrong_file(path, "the FID Inception network", str(error)) from error
    return network


def _built(part: Part, prefix: str, arrays: Arrays) -> Layer:
    if isinstance(part, Named):
        return _convolution(part.kernel, prefix + part.name, arrays)
    if isinstance(part, Fork):
        return Branches(tuple(_chain(chain, prefix, arrays) for chain in part.chains))
    return part


def _chain(parts: tuple[Part, ...], prefix: str, arrays: Arrays) -> Chain:
    return Chain(tuple(_built(part, prefix, arrays) for part in parts))


def _convolution(kernel: Kernel, name: str, arrays: Arrays) -> Convolution:
    """The batch normalisation is linear too, and becomes a part of it."""
    weight, beta, mean, var = (
        arrays[f"{name}.{field}"].astype(np.float64) for field in ("weight", "beta", "mean", "var")
    )
    if weight.ndim != 4 or weight.shape[2:] != kernel[:2]:
        raise ValueError(f"{name}.weight has shape {weight.shape}")
    scale = 1.0 / np.sqrt(var + EPSILON)
    return Convolution(
        from_oihw(weight * scale[:, None, None, None]),
        jnp.asarray(beta - mean * scale, jnp.float32),
        (kernel.stride, kernel.stride),
        kernel.padding,
    )


def features(
    network: Inception, pictures: np.ndarray, *, batch: int = BATCH, progress: Progress = silent
) -> Float[np.ndarray, "n features"]:
    """The network's 2,048 features of each picture, as float32.

    Arguments:
        network: from `load_inception`.
        pictures: (n, height, width, 3) in uint8, or grey ones with one channel or none. They are
            enlarged to 299 x 299, whatever their size.
        batch: pictures at a time.
        progress: `(done, total)`, called after each batch.
    """
    return np.concatenate(list(feature_batches(network, pictures, batch=batch, progress=progress)))


def feature_batches(
    network: Inception, pictures: np.ndarray, *, batch: int = BATCH, progress: Progress = silent
) -> Iterator[Float[np.ndarray, "rows features"]]:
    """As `features`, a batch at a time: what `feature_moments` wants of many pictures."""
    return in_batches(network, pictures, batch, progress)
