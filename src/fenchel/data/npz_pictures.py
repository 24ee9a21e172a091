"""Pictures in NumPy's own files. Nothing is ever unpickled."""

import zipfile
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from fenchel.data.picture_arrays import to_labels, to_pictures
from fenchel.data.reading import names_in, read_array, read_member, reading
from fenchel.errors import InputError

_PICTURES = {"train": ("x_train", "x", "images", "data"), "test": ("x_test",)}
_LABELS = {"x_train": ("y_train",), "x_test": ("y_test",)}
_OTHER_LABELS = ("y", "labels")


def has_part(path: Path, part: str) -> bool:
    """Whether an array of it is called as that part of divided data."""
    with reading(path, "a .npz file"), zipfile.ZipFile(path) as archive:
        return f"x_{part}" in names_in(archive)


def read_npz(path: Path, part: str) -> tuple[NDArray[np.uint8], NDArray | None]:
    """A part's pictures and labels, by the arrays' names."""
    with reading(path, "a .npz file"), zipfile.ZipFile(path) as archive:
        names = names_in(archive)
        chosen = _chosen(path, names, part)
        pictures = to_pictures(read_member(archive, chosen), f"{path}, array {chosen!r},")
        for name in _LABELS.get(chosen, _OTHER_LABELS):
            if name in names:
                what = f"{path}, array {name!r},"
                return pictures, to_labels(read_member(archive, name), len(pictures), what)
    return pictures, None


def read_npy(path: Path) -> tuple[NDArray[np.uint8], None]:
    return to_pictures(read_any(path), str(path)), None


def read_any(path: Path) -> NDArray:
    """The array in a .npy file, whatever it is."""
    with reading(path, "a .npy file"), path.open("rb") as file:
        return read_array(file)


def _chosen(path: Path, names: list[str], part: str) -> str:
    for name in _PICTURES[part]:
        if name in names:
            return name
    if part == "train" and len(names) == 1 and names[0] not in _PICTURES["test"]:
        return names[0]
    held = f"the arrays {', '.join(names)}" if names else "no arrays"
    raise InputError(
        f"{path} holds {held}; name the pictures of its {part} part {_PICTURES[part][0]!r}."
    )
