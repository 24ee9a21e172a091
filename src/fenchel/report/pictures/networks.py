"""The networks through which pictures are seen, from a folder of the user's."""

from pathlib import Path
from typing import NamedTuple

from fenchel.errors import InputError
from fenchel.evaluate import Inception, SlimInception, load_inception, load_slim

FID_FILE, SLIM_FILE = "fid*.npz", "slim*.npz"


class Networks(NamedTuple):
    """That of FID, and that of IS-slim, which may be missing."""

    inception: Inception
    slim: SlimInception | None


def load_networks(folder: str | Path) -> Networks:
    """The networks in a folder, by the beginning of their files' names."""
    folder = Path(folder)
    inception, slim = _file(folder, FID_FILE), _file(folder, SLIM_FILE)
    if inception is None:
        raise InputError(
            f"{folder} has no file {FID_FILE}: give the folder with the weights of the FID "
            "Inception network, or leave --networks out."
        )
    return Networks(load_inception(inception), None if slim is None else load_slim(slim))


def _file(folder: Path, pattern: str) -> Path | None:
    found = sorted(folder.glob(pattern)) if folder.is_dir() else []
    if len(found) > 1:
        raise InputError(
            f"{folder} has {len(found)} files {pattern}, of which one is wanted: give a folder "
            "with one."
        )
    return found[0] if found else None
