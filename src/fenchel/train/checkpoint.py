"""Checkpoints of a run, by Orbax: parameters, optimisers, averages, keys, buffer, data position.

A batch is a function of the run's key and the iteration, so the iteration *is* the data position.
A checkpoint appears under its name only when it is whole: a kill loses at most one interval.
"""

import logging
import shutil
from pathlib import Path

import numpy as np

from fenchel.arrays import from_table, to_table
from fenchel.errors import InputError
from fenchel.train.state import TrainState

KEPT = 2


def save(folder: Path, state: TrainState) -> None:
    """Write the state as folder/ITERATION, and keep only the newest few."""
    table = to_table(state)
    iteration = int(np.max(state.iteration))  # of stacked runs all are at the same
    path = folder.resolve() / str(iteration)
    with _orbax() as checkpointer:
        checkpointer.save(path, table, force=True)
    for old in _iterations(folder)[:-KEPT]:
        shutil.rmtree(folder / str(old))


def latest(folder: Path) -> int | None:
    """The newest checkpoint's iteration, if there is any."""
    return max(_iterations(folder), default=None)


def restore(folder: Path, iteration: int, like: TrainState) -> TrainState:
    """The state as it was; `like` has its structure."""
    path = folder.resolve() / str(iteration)
    try:
        with _orbax() as checkpointer:
            table = checkpointer.restore(path)
        return from_table({k: np.asarray(v) for k, v in table.items()}, like, str(path))
    except InputError:
        raise
    except Exception as error:  # whatever a damaged checkpoint makes Orbax raise
        raise InputError(
            f"The checkpoint {path} cannot be read ({type(error).__name__}): remove that folder "
            "to go on from the one before it."
        ) from error


def _iterations(folder: Path) -> list[int]:
    if not folder.is_dir():
        return []
    return sorted(int(entry.name) for entry in folder.iterdir() if entry.name.isdigit())


def _orbax():
    """Orbax takes seconds to import, and is needed only by runs that are written down."""
    import orbax.checkpoint as ocp

    logging.getLogger("absl").setLevel(logging.ERROR)
    return ocp.Checkpointer(ocp.PyTreeCheckpointHandler())
