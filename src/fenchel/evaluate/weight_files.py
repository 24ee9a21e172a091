"""Networks from files of weights, which the user has and this library does not."""

import zipfile
import zlib
from collections.abc import Mapping
from pathlib import Path

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from fenchel.errors import InputError
from fenchel.evaluate.pictures import SIZE, Network

Arrays = Mapping[str, np.ndarray]
DAMAGED = (OSError, ValueError, EOFError, zipfile.BadZipFile, zlib.error, NotImplementedError)


def read_arrays(path: str | Path) -> dict[str, np.ndarray]:
    """The arrays of an .npz file; nothing in it is executed."""
    path = Path(path)
    if not path.is_file():
        raise InputError(f"There is no file {path}: give the path of the network's .npz file.")
    try:
        with zipfile.ZipFile(path):  # else np.load would take a file of one array too
            pass
        with np.load(path, allow_pickle=False) as file:
            return {name: file[name] for name in file.files}
    except DAMAGED as error:
        raise InputError(
            f"{path} cannot be read as an .npz file of arrays: give the network's own file, "
            "or copy it once more."
        ) from error


def wrong_file(path: str | Path, network: str, reason: str) -> InputError:
    """For a file of arrays which are not those of the network."""
    return InputError(f"{path} is not {network} ({reason}): give the path of that network's file.")


def from_oihw(weight: np.ndarray) -> Float[Array, "height width before after"]:
    """A convolution's weight, whose axes files have in PyTorch's order, as the layers want it."""
    return jnp.asarray(np.transpose(weight, (2, 3, 1, 0)), jnp.float32)


def check_fits_together(network: Network) -> None:
    """Raise a ValueError unless each layer can take what the ones before it give."""
    picture = jax.ShapeDtypeStruct((1, SIZE, SIZE, 3), jnp.uint8)
    try:
        rows = eqx.filter_eval_shape(network, picture)
    except (TypeError, ValueError) as error:  # which is how JAX complains of shapes
        raise ValueError("its layers do not fit together") from error
    if rows.ndim != 2:
        raise ValueError("its output is not one row a picture")
