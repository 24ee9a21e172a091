"""Pictures from files, folders and arrays, checked and ready to be fitted.

Nothing is ever unpickled: a file of somebody else's is data, and must not be able to run code.
"""

import hashlib
import math
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from fenchel.data.cifar import has_batches, read_batch, read_batches, refuse_pickle
from fenchel.data.idx import has_idx, is_idx, read_idx, read_idx_folder
from fenchel.data.npz_pictures import has_part, read_npy, read_npz
from fenchel.data.picture_arrays import to_pictures
from fenchel.data.picture_files import PICTURE_KINDS, read_picture_file, read_picture_folder
from fenchel.errors import InputError

Shape = tuple[int, int, int]
Found = tuple[NDArray[np.uint8], NDArray | None]
PARTS = ("train", "test")


@dataclass(frozen=True, eq=False)
class Pictures:
    """Pictures (n, height, width, channels) of 1 or 3 channels, and where they came from."""

    x: NDArray[np.uint8]
    name: str
    labels: NDArray | None = None

    @classmethod
    def of_rows(cls, rows: ArrayLike, shape: Shape, name: str = "array") -> "Pictures":
        """Pictures from (n, d) numbers on the scale of 0 to 255, rounded and clipped to it."""
        numbers = np.asarray(rows)
        if numbers.ndim != 2 or numbers.shape[1] != math.prod(shape):
            raise InputError(
                f"Rows of shape {numbers.shape} are no pictures of shape {shape}; "
                f"give (n, {math.prod(shape)}) numbers."
            )
        if not np.isfinite(numbers).all():
            raise InputError("Some rows are not finite; only finite numbers make a picture.")
        levels = np.clip(np.round(numbers), 0, 255).astype(np.uint8)
        return cls(levels.reshape(-1, *shape), name)

    def __len__(self) -> int:
        return len(self.x)

    @property
    def shape(self) -> Shape:
        """(height, width, channels) of each."""
        height, width, channels = self.x.shape[1:]
        return height, width, channels

    @property
    def dim(self) -> int:
        return math.prod(self.shape)

    def rows(self) -> NDArray[np.uint8]:
        """(n, d): each picture row by row of its pixels, the channels of a pixel side by side."""
        return self.x.reshape(len(self.x), self.dim)

    def fingerprint(self) -> dict[str, Any]:
        """Enough of the pictures to notice when they are not the same."""
        return {
            "name": self.name,
            "count": len(self.x),
            "shape": list(self.shape),
            "sha256": hashlib.sha256(np.ascontiguousarray(self.x).data).hexdigest(),
        }


def load_pictures(source: ArrayLike | str | Path, part: str = "train") -> Pictures:
    """Pictures from an array, a file or a folder.

    **Arguments:**

    - `source`: an array of whole numbers from 0 to 255, of shape (n, h, w), (n, h, w, 3) or
      (n, 3, h, w); or the path of such an array in a .npz or .npy file, of a folder of picture
      files, of CIFAR-10's binary version, or of MNIST's idx files, as a folder or as one file.
    - `part`: `"train"` or `"test"`. Sources that are not divided are all `"train"`. A .npz file
      has `x_train` and `x_test`, a folder of picture files may have folders `train` and `test`.
      Picture files may also lie one folder further down, as in one folder a class.
    """
    if part not in PARTS:
        raise InputError(f"Pictures have no part called {part!r}; choose 'train' or 'test'.")
    if isinstance(source, str | Path):
        path = Path(source)
        x, labels = _read(path, part)
        return Pictures(x, path.resolve().name if path.is_dir() else path.stem, labels)
    _refuse_part(part, "The array")
    return Pictures(to_pictures(source, "The array"), "array")


def load_part(source: str | Path, part: str | None) -> Pictures:
    """That part; where none is named, what training has not seen, or all if it is not divided."""
    return load_pictures(source, part or ("test" if "test" in parts_of(source) else "train"))


def parts_of(source: str | Path) -> tuple[str, ...]:
    """Which of train and test a file or a folder has; none of them if it is whole."""
    path = Path(source)
    return tuple(part for part in PARTS if _has(path, part))


def _has(path: Path, part: str) -> bool:
    if path.is_dir():
        return (path / part).is_dir() or has_batches(path, [part]) or has_idx(path, [part])
    return path.suffix.lower() == ".npz" and path.is_file() and has_part(path, part)


def require_shape(pictures: Pictures, shape: Shape, source: str) -> None:
    """Raise an InputError unless they are as large as those that a model knows."""
    if pictures.shape != shape:
        raise InputError(
            f"{source} holds pictures of shape {pictures.shape} and the model knows those of "
            f"{shape}: give pictures of that shape."
        )


def check_pictures(pictures: Pictures) -> None:
    """Raise an InputError unless a model can be fitted: there are several, and they differ."""
    if len(pictures) == 1:
        raise InputError(f"{pictures.name} is a single picture; at least two are needed.")
    if (pictures.x == pictures.x[0]).all():
        raise InputError(
            f"{pictures.name} has {len(pictures)} pictures that are all the same; "
            "give ones that differ."
        )


def _read(path: Path, part: str) -> Found:
    if not path.exists():
        raise InputError(f"{path} does not exist; check the path.")
    if path.is_dir():
        return _read_folder(path, part)
    refuse_pickle(path)
    if path.suffix.lower() == ".npz":
        return read_npz(path, part)
    _refuse_part(part, str(path))
    return _reader(path)(path)


def _read_folder(folder: Path, part: str) -> Found:
    if has_batches(folder):
        return read_batches(folder, part)
    refuse_pickle(folder)
    if has_idx(folder):
        return read_idx_folder(folder, part)
    if (folder / part).is_dir():
        return read_picture_folder(folder / part)
    _refuse_part(part, str(folder))
    return read_picture_folder(folder, apart=PARTS)


def _reader(path: Path) -> Callable[[Path], Found]:
    if is_idx(path):
        return read_idx
    reader = _READERS.get(path.suffix.lower())
    if reader is None:
        kind = f"ends in {path.suffix!r}" if path.suffix else "has no extension"
        known = ", ".join([".npz", *_READERS])
        raise InputError(f"{path} {kind}; the known ones are {known}, and MNIST's idx files.")
    return reader


def _refuse_part(part: str, name: str) -> None:
    if part != PARTS[0]:
        raise InputError(
            f"{name} is not divided and has no part called {part!r}; "
            "give those pictures as a source of their own."
        )


_READERS: dict[str, Callable[[Path], Found]] = {
    ".npy": read_npy,
    ".bin": read_batch,
    **dict.fromkeys(PICTURE_KINDS, read_picture_file),
}
