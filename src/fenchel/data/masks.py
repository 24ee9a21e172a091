"""Which part of a picture is to be completed: True there, False where it is known."""

from pathlib import Path

import numpy as np
from numpy.typing import ArrayLike, NDArray

from fenchel.choices import choose, nearest
from fenchel.data.npz_pictures import read_any
from fenchel.data.picture_files import PICTURE_KINDS, read_picture
from fenchel.data.pictures import Shape
from fenchel.errors import InputError

Mask = NDArray[np.bool_]

HALVES = ("lower", "upper", "left", "right")
_LOSSY = (".jpg", ".jpeg")


def half_mask(name: str, shape: Shape) -> Mask:
    """The lower, upper, left or right half, (h, w, c).

    Of an odd number of rows or columns the middle one is in the lower or in the right half.
    """
    height, width, _ = shape
    row, column = np.indices((height, width))
    upper, left = row < height // 2, column < width // 2
    halves = dict(zip(HALVES, (~upper, upper, left, ~left), strict=True))
    return _over(choose(halves, name, "half of a picture")[..., None], shape, f"The half {name!r}")


def load_mask(path: str | Path, shape: Shape) -> Mask:
    """A mask (h, w, c) from a picture file or a .npy file: what is not zero is to be completed.

    A pixel of a colour picture is to be completed if any of its channels is not zero; an array
    (h, w) speaks of all channels, an array (h, w, c) of each.
    """
    path = Path(path)
    if not path.is_file():
        raise InputError(
            f"{path} is no file{nearest(str(path), list(HALVES))}; give {', '.join(HALVES)}, or a "
            "mask as a picture or as a .npy file."
        )
    return _over(_marks(path), shape, str(path))


def as_mask(array: ArrayLike, shape: Shape) -> Mask:
    """A mask (h, w, c) from an array (h, w), of all channels, or (h, w, c)."""
    return _over(_of_array(np.asarray(array), "The mask"), shape, "The mask")


def _marks(path: Path) -> Mask:
    kind = path.suffix.lower()
    if kind in _LOSSY:
        # Its black is not quite 0, and all that is not 0 counts.
        raise InputError(f"{path} is a JPEG, which blurs a mask; save it as .png.")
    if kind == ".npy":
        return _of_array(read_any(path), str(path))
    if kind in PICTURE_KINDS:
        return (read_picture(path) != 0).any(axis=2, keepdims=True)
    raise InputError(f"{path} is neither a picture nor a .npy file; save the mask as .png.")


def _of_array(array: NDArray, name: str) -> Mask:
    if array.dtype.kind not in "biu":
        raise InputError(f"{name} holds {array.dtype} values; give the mask as booleans.")
    return (array != 0)[..., None] if array.ndim == 2 else array != 0


def _over(mask: Mask, shape: Shape, name: str) -> Mask:
    """The mask on all channels of a picture of this shape, if it marks anything."""
    height, width, channels = shape
    if mask.shape not in ((height, width, 1), (height, width, channels)):
        raise InputError(
            f"{name} has shape {mask.shape} and the pictures {shape}; give one of their size."
        )
    if not mask.any():
        raise InputError(f"{name} marks nothing to complete; mark it by what is not zero.")
    return np.broadcast_to(mask, shape).copy()
