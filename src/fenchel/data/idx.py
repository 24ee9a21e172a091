"""Pictures in idx files, in which MNIST and Fashion-MNIST come, gzipped or not."""

import gzip
import math
from collections.abc import Iterable
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from fenchel.data.picture_arrays import to_labels, to_pictures
from fenchel.data.reading import reading
from fenchel.errors import InputError

_UNSIGNED_BYTES = 0x0800  # the magic number, but for the number of dimensions that is added to it
_GZIPPED = b"\x1f\x8b"
_HELD = {1: "labels", 3: "pictures"}  # by their number of dimensions
_PREFIX = {"train": "train", "test": "t10k"}


def is_idx(path: Path) -> bool:
    return "idx" in path.name.lower()


def has_idx(folder: Path, parts: Iterable[str] = _PREFIX) -> bool:
    """Whether a part of an MNIST, one of these, is in this folder, as far as the names tell."""
    return any(_pictures_file(folder, part) for part in parts)


def read_idx_folder(folder: Path, part: str) -> tuple[NDArray[np.uint8], NDArray | None]:
    """A part's pictures, and its labels where they lie beside them."""
    path = _pictures_file(folder, part)
    if path is None:
        raise InputError(
            f"{folder} has no {_PREFIX[part]}-images-idx3-ubyte file, plain or .gz, which holds "
            f"the {part} part; download it too."
        )
    return read_idx(path)


def read_idx(path: Path) -> tuple[NDArray[np.uint8], NDArray | None]:
    """The pictures of one idx file, and their labels where they lie beside it."""
    pictures = to_pictures(_numbers(path, 3)[..., None], str(path))
    beside = _labels_file(path)
    if beside is None:
        return pictures, None
    return pictures, to_labels(_numbers(beside, 1), len(pictures), str(beside))


def _pictures_file(folder: Path, part: str) -> Path | None:
    return min(folder.glob(f"{_PREFIX[part]}-images?idx3-ubyte*"), default=None)


def _labels_file(path: Path) -> Path | None:
    name = path.name.removesuffix(".gz").replace("images", "labels").replace("idx3", "idx1")
    candidates = (path.with_name(name), path.with_name(f"{name}.gz"))
    return next((found for found in candidates if found.is_file() and found != path), None)


def _numbers(path: Path, dimensions: int) -> NDArray[np.uint8]:
    content = _content(path)
    magic, wanted = int.from_bytes(content[:4], "big"), _UNSIGNED_BYTES + dimensions
    if magic != wanted:
        raise InputError(
            f"{path} begins with the number {magic}, and an idx file of {_HELD[dimensions]} with "
            f"{wanted}; give the file of the {_HELD[dimensions]}."
        )
    start = 4 + 4 * dimensions
    sizes = [int.from_bytes(content[at : at + 4], "big") for at in range(4, start, 4)]
    if len(content) != start + math.prod(sizes):
        raise InputError(
            f"{path} has {len(content)} bytes, and its header says {start + math.prod(sizes)}; "
            "download it again."
        )
    return np.frombuffer(content, np.uint8, offset=start).reshape(sizes)


def _content(path: Path) -> bytes:
    with reading(path, "an idx file"):
        content = path.read_bytes()
        return gzip.decompress(content) if content.startswith(_GZIPPED) else content
