"""What is said of a file whose bytes cannot be understood, and arrays that are never unpickled."""

import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO

import numpy as np
from numpy.typing import NDArray

from fenchel.errors import InputError


@contextmanager
def reading(path: Path, kind: str) -> Iterator[None]:
    """Whatever goes wrong with this file as one InputError; `kind` is what it should be."""
    try:
        with parsing(path, f"is damaged or not {kind}; save or download it again."):
            yield
    except OSError as error:
        raise InputError(
            f"{path} cannot be read ({error.strerror}); check the path and its permissions."
        ) from error


@contextmanager
def parsing(path: Path, damaged: str) -> Iterator[None]:
    """Whatever a parser raises on bytes that it does not understand, as one InputError.

    The parsers document no list of exceptions for damaged files, so all are caught; only the
    operating system's own errors (those with a number) are something else than damage.
    """
    try:
        yield
    except InputError:
        raise
    except Exception as error:
        if isinstance(error, OSError) and error.errno:
            raise
        raise InputError(f"{path} {_complaint(error, damaged)}") from error


def read_array(file: IO[bytes]) -> NDArray:
    """An array in NumPy's own format."""
    return np.lib.format.read_array(file, allow_pickle=False)


def names_in(archive: zipfile.ZipFile) -> list[str]:
    """Of the arrays in a .npz file."""
    return [name.removesuffix(".npy") for name in archive.namelist()]


def read_member(archive: zipfile.ZipFile, name: str) -> NDArray:
    """The array of that name."""
    with archive.open(f"{name}.npy") as file:
        return read_array(file)


def _complaint(error: Exception, damaged: str) -> str:
    if "Object arrays" in str(error):
        return (
            "holds Python objects, which are not loaded because they can run code; "
            "save it again as an array of numbers."
        )
    return damaged
