"""What pictures and their labels must be: whole numbers from 0 to 255, one label a picture."""

import numpy as np
from numpy.typing import ArrayLike, NDArray

from fenchel.data.checks import rectangular
from fenchel.errors import InputError

CHANNELS = (1, 3)
_SHAPES = "(n, h, w), (n, h, w, 3) or (n, 3, h, w)"


def to_pictures(x: ArrayLike, name: str) -> NDArray[np.uint8]:
    """A copy of `x` as (n, h, w, channels), or an InputError; `name` begins the message."""
    array = _as_array(x, name)
    _check_levels(array, name)
    return np.array(_channels_last(array, name), dtype=np.uint8, order="C")


def to_labels(y: ArrayLike, count: int, name: str) -> NDArray[np.integer]:
    """`y` as one whole number for each of `count` pictures; a column will do."""
    labels = np.asarray(y)
    if labels.dtype.kind not in "iu" or labels.shape not in ((count,), (count, 1)):
        raise InputError(
            f"{name} has shape {labels.shape} and holds {labels.dtype} values; give one whole "
            f"number for each of the {count} pictures, or leave the labels out."
        )
    return labels.reshape(count)


def _as_array(x: ArrayLike, name: str) -> NDArray:
    if np.ma.is_masked(x):
        # A plain conversion would bring the masked values back.
        raise InputError(f"{name} has masked values; fill them in first.")
    return rectangular(x, name, "make its pictures equally large")


def _check_levels(array: NDArray, name: str) -> None:
    if array.size == 0:
        raise InputError(f"{name} is empty, {array.shape}; give at least one picture.")
    if array.dtype.kind in "iu" and array.min() >= 0 and array.max() <= 255:
        return
    raise InputError(f"{name} holds {_found(array)}; give whole numbers from 0 to 255{_how(array)}")


def _found(array: NDArray) -> str:
    if array.dtype.kind not in "iuf":
        return f"{array.dtype} values"
    bad = np.count_nonzero(~np.isfinite(array))
    if bad:
        return f"{bad} values that are not finite"
    return f"{array.dtype} values from {array.min():g} to {array.max():g}"


def _how(array: NDArray) -> str:
    if array.dtype.kind == "f" and array.min() >= 0 and array.max() <= 1:
        return ", as in np.round(255 * x).astype(np.uint8)."
    return "."


def _channels_last(array: NDArray, name: str) -> NDArray:
    # Three axes that end in a few channels are one picture more often than a stack of narrow ones.
    if array.ndim == 3 and array.shape[-1] in CHANNELS:
        raise InputError(
            f"{name} has shape {array.shape}, which looks like one picture; "
            "put an axis of pictures before it, as in x[None]."
        )
    if array.ndim == 3:
        return array[..., None]
    if array.ndim == 4 and array.shape[-1] in CHANNELS:
        return array
    if array.ndim == 4 and array.shape[1] in CHANNELS:
        return np.moveaxis(array, 1, -1)
    raise InputError(f"{name} has shape {array.shape}; give {_SHAPES}.")
