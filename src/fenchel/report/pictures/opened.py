"""A run of pictures read back from its folder, together with the pictures to judge it by."""

from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from fenchel.config import Config
from fenchel.data import Pictures, load_pictures, require_shape
from fenchel.errors import InputError
from fenchel.picture_parts import Shape, is_of_pictures, picture_shape
from fenchel.result import Fit
from fenchel.runs import RunFolder, same_data
from fenchel.saving import load

FEWEST = 16  # pictures of any kind: tests of fewer mean nothing


class PictureRun(NamedTuple):
    """A run, the pictures it was trained on, and ones that it was not, both in random order."""

    folder: RunFolder
    record: dict[str, Any]
    rows: list[dict[str, Any]]
    fit: Fit
    shape: Shape
    train: Pictures
    held_out: Pictures | None
    missing: str  # why none are held out, if so
    own: bool  # whether these are the pictures of the fit


def holds_pictures(run: str | Path) -> bool:
    """Whether the run in that folder is one of pictures."""
    return is_of_pictures(Config.from_dict(RunFolder(Path(run)).read_record()["config"]))


def open_picture_run(run: str | Path, data: str | None, command: str = "evaluate") -> PictureRun:
    """Read a run and its pictures, the parts `train` and `test` of `data`.

    `command` is what the user called.
    """
    folder = RunFolder(Path(run))
    record = folder.read_record()
    config = Config.from_dict(record["config"])
    if not is_of_pictures(config):
        raise InputError(
            f"{run} was fitted to a table, not to pictures: evaluate it without --images, "
            "--networks and --n."
        )
    if data is None:
        raise InputError(
            f"{run} was fitted to pictures, which are not kept in it: give them, as in fenchel "
            f"{command} {run} DATA."
        )
    shape = picture_shape(config)
    train = load_pictures(data)
    held_out, missing = _held_out(data)
    for part in (train, held_out):
        if part is not None:
            _check(part, shape, data)
    own = same_data(record, train)
    fit, rows, seed = load(folder.path), folder.read_metrics(), config.seed
    shuffled = None if held_out is None else _shuffled(held_out, seed)
    return PictureRun(
        folder, record, rows, fit, shape, _shuffled(train, seed), shuffled, missing, own
    )


def _held_out(data: str) -> tuple[Pictures | None, str]:
    """The test part, or why there is none: the cause alone, since the cure is another here."""
    try:
        return load_pictures(data, "test"), ""
    except InputError as error:
        return None, str(error).partition(";")[0]


def _check(pictures: Pictures, shape: Shape, data: str) -> None:
    require_shape(pictures, shape, data)
    if len(pictures) < FEWEST:
        raise InputError(
            f"{data} has a part of {len(pictures)} pictures: give at least {FEWEST} to judge by."
        )


def _shuffled(pictures: Pictures, seed: int) -> Pictures:
    """So that any first few are a fair choice: files are often sorted."""
    order = np.random.default_rng(seed).permutation(len(pictures))
    return Pictures(pictures.x[order], pictures.name)
