"""Tables to files, or to the screen as CSV."""

import sys
from pathlib import Path

import numpy as np

from fenchel.errors import InputError
from fenchel.files import refuse_unwritable


def writer_to(path: Path | None, as_json: bool):
    """How to write a table to that file; refused here, before any work is done, if it cannot be.

    Without a file it is printed as CSV, unless JSON, which then holds it, is to be printed.
    """
    writers = {".npy": _write_npy, ".npz": _write_npz, ".csv": _write_csv}
    if path is None and as_json:
        return lambda table, columns: None
    if path is None:
        return lambda table, columns: _write_csv(sys.stdout, table, columns)
    kind = path.suffix.lower()
    if kind not in writers:
        raise InputError(f"{path} must end in one of {', '.join(writers)}.")
    refuse_unwritable(path)
    return lambda table, columns: writers[kind](path, table, columns)


def _write_npy(path, table: np.ndarray, columns: tuple[str, ...]) -> None:
    with path.open("wb") as file:  # given a name, NumPy would add to one in capitals
        np.save(file, table)


def _write_npz(path, table: np.ndarray, columns: tuple[str, ...]) -> None:
    with path.open("wb") as file:
        np.savez(file, x=table)


def _write_csv(path, table: np.ndarray, columns: tuple[str, ...]) -> None:
    np.savetxt(path, table, delimiter=",", header=",".join(columns), comments="")
