"""A run read back from its folder, together with the data to judge it by."""

from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

from fenchel.data import TOYS, Samples, load_samples
from fenchel.errors import InputError
from fenchel.result import Fit
from fenchel.runs import RunFolder
from fenchel.saving import load

FRESH = 10_000  # points of a toy that the fit has not seen
SEED_OFFSET = 1_000_003  # far from the seeds that anybody trains with


class Opened(NamedTuple):
    """A run, its data or those given in their place, and points that it was not trained on."""

    folder: RunFolder
    record: dict[str, Any]
    rows: list[dict[str, Any]]
    fit: Fit
    source: str
    samples: Samples
    judges: Samples  # a toy's are fresh; else the samples themselves
    whose: str  # in words, what the judges are


def open_run(run: str | Path, data: str | None, command: str) -> Opened:
    """Read a run; `data` may be left out for a toy. `command` is what the user called."""
    folder = RunFolder(Path(run))
    record = folder.read_record()
    source = data or _toy(record["data"].get("name"), folder.path, command)
    fit = load(folder.path)
    samples = load_samples(source, seed=fit.config.seed)
    fit.standardiser.check_dimension(samples.x)
    samples = replace(samples, x=samples.in_order(fit.columns), columns=fit.columns)
    judges, whose = samples, "other data"
    if samples.toy is not None:
        fresh = samples.toy.sample(FRESH, fit.config.seed + SEED_OFFSET)
        judges, whose = replace(samples, x=fresh), "fresh data"
    elif folder.was_fitted_to(samples):
        whose = "training data"
    return Opened(folder, record, folder.read_metrics(), fit, source, samples, judges, whose)


def _toy(name: str | None, run: Path, command: str) -> str:
    if name in TOYS:
        return str(name)
    raise InputError(
        f"{run} was fitted to a file, {name!r}, which is not kept in it: give the file, as in "
        f"fenchel {command} {run} DATA."
    )
