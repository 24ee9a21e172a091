"""CIFAR-10 in its binary version: records of a label's byte and three planes of 32 x 32.

The Python version is a pickle, which could run code when it is read, and is refused.
"""

from collections.abc import Iterable
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from fenchel.data.picture_arrays import to_pictures
from fenchel.data.reading import reading
from fenchel.errors import InputError

_PLANES = (3, 32, 32)
_RECORD = 1 + 3 * 32 * 32
_CLASSES = 10
_BATCHES = {
    "train": tuple(f"data_batch_{number}" for number in range(1, 6)),
    "test": ("test_batch",),
}
_PYTHON_FILES = {*_BATCHES["train"], *_BATCHES["test"], "batches.meta"}
_PICKLES = (".pkl", ".pickle", ".p")


def refuse_pickle(path: Path) -> None:
    """Raise an InputError if `path` is CIFAR's Python version, as a folder or a file of it."""
    names = {entry.name for entry in path.iterdir()} if path.is_dir() else {path.name}
    if names & _PYTHON_FILES or path.suffix.lower() in _PICKLES:
        raise InputError(
            f"{path} is pickled, as CIFAR's Python version is, and not loaded because it can run "
            "code; use the binary version, cifar-10-binary.tar.gz."
        )


def has_batches(folder: Path, parts: Iterable[str] = _BATCHES) -> bool:
    """Whether this folder has some of these parts in the binary version, as far as names tell."""
    return any((folder / f"{name}.bin").exists() for part in parts for name in _BATCHES[part])


def read_batches(folder: Path, part: str) -> tuple[NDArray[np.uint8], NDArray[np.uint8]]:
    """All pictures of a part, and their labels."""
    paths = [folder / f"{name}.bin" for name in _BATCHES[part]]
    missing = [path.name for path in paths if not path.exists()]
    if missing:
        raise InputError(
            f"{folder} lacks {', '.join(missing)} of CIFAR's {part} part; download it again, or "
            "give one .bin file alone."
        )
    pictures, labels = zip(*map(read_batch, paths), strict=True)
    return np.concatenate(pictures), np.concatenate(labels)


def read_batch(path: Path) -> tuple[NDArray[np.uint8], NDArray[np.uint8]]:
    """The pictures of one .bin file, and their labels."""
    with reading(path, "a CIFAR-10 batch"):
        content = np.frombuffer(path.read_bytes(), np.uint8)
    if content.size == 0 or content.size % _RECORD:
        raise InputError(
            f"{path} has {content.size} bytes, which is no multiple of CIFAR-10's {_RECORD} a "
            "picture; download it again."
        )
    records = content.reshape(-1, _RECORD)
    labels, planes = records[:, 0].copy(), records[:, 1:].reshape(-1, *_PLANES)
    if labels.max() >= _CLASSES:
        raise InputError(
            f"{path} has a picture of class {labels.max()} and CIFAR-10 has {_CLASSES} classes; "
            "give a file of its binary version."
        )
    return to_pictures(np.moveaxis(planes, 1, -1), str(path)), labels
