"""Writing files so that a reader never sees half of one."""

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from fenchel.errors import InputError

SPARE_BYTES = 64 * 2**20  # what a run needs beside its arrays: figures, metrics, a checkpoint more


@contextmanager
def written_whole(path: Path) -> Iterator[Path]:
    """A partial file to write to, which takes the name `path` when all went well."""
    partial = path.with_name(path.name + ".partial")
    try:
        yield partial
        with partial.open("rb") as file:
            os.fsync(file.fileno())
        partial.replace(path)
    finally:
        partial.unlink(missing_ok=True)


def replace_text(path: Path, text: str) -> None:
    """Write a text file whole or not at all."""
    with written_whole(path) as partial:
        partial.write_text(text, encoding="utf-8")


def make_folder(path: Path) -> None:
    """With all that it lies in, where they are not there yet."""
    try:
        path.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise InputError(
            f"{path} cannot be made ({error.strerror}): choose another folder."
        ) from None


def require_space(folder: Path, needed: int) -> None:
    """Refuse to begin what the disk cannot hold."""
    existing = folder
    while not existing.exists():
        existing = existing.parent
    free = shutil.disk_usage(existing).free
    needed += SPARE_BYTES
    if free < needed:
        raise InputError(
            f"{existing} has {free / 2**20:.0f} MiB free and about {needed / 2**20:.0f} MiB are "
            "needed: make room, or choose another folder."
        )


def refuse_unwritable(path: Path) -> None:
    """Notice before the work, not after it, that a result cannot be written."""
    if path.is_dir():
        raise InputError(f"{path} is a folder: give the name of a file in it.")
    if not path.parent.is_dir():
        raise InputError(f"The folder {path.parent} does not exist: make it first.")
    if not os.access(path.parent, os.W_OK):
        raise InputError(f"The folder {path.parent} cannot be written to: choose another.")
