"""Recovering a Gaussian: mean -1 and standard deviation 0.1 in every dimension, from its samples.

f is a Gaussian's potential with a learnt mean and a learnt precision a dimension. Standardised
data would begin where they should end, so f begins away from the optimum: with a mean drawn from
N(0, 1) and a log precision drawn from N(0, 1), in the units that it sees. For the paper's settings
these are the data's own, in which 0.1 is far from 1; the library's default standardises.
"""

from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from fenchel.bench.folder import BenchFolder
from fenchel.bench.gaussian_table import as_markdown
from fenchel.bench.jobs import as_they_are
from fenchel.bench.presets import RECOVERY, Preset
from fenchel.bench.progress import Progressing
from fenchel.bench.provenance import provenance
from fenchel.bench.together import Entry, Trained, stacked, train
from fenchel.build import build
from fenchel.choices import choose
from fenchel.data import Standardiser
from fenchel.errors import InputError
from fenchel.potentials import DiagonalGaussian
from fenchel.report.bench_figures import error_figure
from fenchel.report.figures import save
from fenchel.stacking import unstack

MEAN, SD = -1.0, 0.1
ROWS = 10_000
MLE = "mle"
METHODS = (MLE, *RECOVERY)
START_PURPOSE = 8_117  # sets where f begins apart from the run's other draws


@dataclass(frozen=True)
class Settings:
    """What everything in a folder has in common."""

    seeds: tuple[int, ...] = (1, 2, 3)
    steps: int | None = None  # iterations of every method, in place of its own
    rows: int = ROWS

    def __post_init__(self) -> None:
        if len(set(self.seeds)) < len(self.seeds) or not self.seeds:
            raise InputError(f"The seeds are {self.seeds}: give different whole numbers.")

    def to_dict(self) -> dict[str, Any]:
        return {**vars(self), "seeds": list(self.seeds)}


def run(
    methods: list[str],
    dims: list[int],
    settings: Settings,
    folder: BenchFolder,
    progress: Progressing,
) -> dict[str, Any]:
    """Whatever of it is not in the folder yet; all results that are there by then."""
    for method in methods:
        choose(dict.fromkeys(METHODS), method, "method of this benchmark")
    if min(dims) < 1:
        raise InputError(f"The dimensions are {dims}: give them from 1 on.")
    folder.claim(settings.to_dict())
    for method in methods:
        for dim in dims:
            if not any(_is(row, method, dim) for row in _rows(folder)):
                row = one(method, dim, settings, folder, progress)
                folder.write("rows", [*_rows(folder), row])
        _write_tables(settings, folder)
    return _results(settings, folder)


def one(
    method: str, dim: int, settings: Settings, folder: BenchFolder, progress: Progressing
) -> dict[str, Any]:
    """All seeds of one method in one dimension, as a row of the results."""
    data = [samples(dim, seed, settings.rows) for seed in settings.seeds]
    if method == MLE:
        errors = [errors_of(x.mean(axis=0), x.std(axis=0)) for x in data]
        seconds = None
    else:
        errors, seconds = _learnt(method, data, settings, folder, progress)
    row = {"method": method, "dim": dim, "provenance": provenance(), "seconds": seconds}
    for name in ("mean_error", "sd_error"):
        row[name] = float(np.median([each[name] for each in errors]))
    return row | {"runs": errors}


def samples(dim: int, seed: int, rows: int) -> np.ndarray:
    return np.random.default_rng([seed, dim]).normal(MEAN, SD, (rows, dim))


def errors_of(mean: np.ndarray, sd: np.ndarray) -> dict[str, Any]:
    """Root mean squares over dimensions, in units of the true standard deviation."""
    return {
        "mean_error": float(np.sqrt(np.mean((mean - MEAN) ** 2)) / SD),
        "sd_error": float(np.sqrt(np.mean((sd / SD - 1) ** 2))),
    }


def _learnt(
    method: str,
    data: list[np.ndarray],
    settings: Settings,
    folder: BenchFolder,
    progress: Progressing,
) -> tuple[list[dict[str, Any]], float | None]:
    preset, dim = RECOVERY[method], data[0].shape[1]
    scales = [Standardiser.of(x) if preset.standardised else as_they_are(dim) for x in data]
    entries = [
        _entry(preset, scale.forward(x), seed, settings.steps)
        for scale, x, seed in zip(scales, data, settings.seeds, strict=True)
    ]
    runs, part = stacked(entries), folder.within(f"{method}-{dim}")
    part.claim_for(preset.config.with_values(training__steps=settings.steps))
    steps = entries[0].config.training.steps
    progress.begin(f"{method} in {dim} dimensions, iteration", steps)
    trained = train(runs, steps, part, progress)
    patience = runs.learner.patience
    errors = [
        _found(trained, index, scale) | trained.health(index, patience, dim) | {"seed": seed}
        for index, (scale, seed) in enumerate(zip(scales, settings.seeds, strict=True))
    ]
    return errors, trained.seconds


def _entry(preset: Preset, z: np.ndarray, seed: int, steps: int | None) -> Entry:
    key = jax.random.fold_in(jax.random.key(seed), START_PURPOSE)
    mean, log_precision = jax.random.normal(key, (2, z.shape[1]))
    config = preset.config.with_values(seed=seed, training__steps=steps)
    points = jnp.asarray(z, jnp.float32)
    parts = build(config, points.shape[1], potential=DiagonalGaussian(mean, log_precision))
    return Entry(config, points, parts)


def _found(trained: Trained, index: int, scale: Standardiser) -> dict[str, Any]:
    f, _ = unstack(trained.state, index).averaged()
    mean = scale.inverse(np.asarray(f.mean, np.float64))
    sd = np.exp(-0.5 * np.asarray(f.log_precision, np.float64)) * scale.scale
    return errors_of(mean, sd)


def _rows(folder: BenchFolder) -> list[dict[str, Any]]:
    return folder.read("rows") or []


def _is(row: dict[str, Any], method: str, dim: int) -> bool:
    return (row["method"], row["dim"]) == (method, dim)


def _results(settings: Settings, folder: BenchFolder) -> dict[str, Any]:
    order = {name: place for place, name in enumerate(METHODS)}
    rows = sorted(_rows(folder), key=lambda row: (order[row["method"]], row["dim"]))
    return {"settings": settings.to_dict(), "rows": rows}


def _write_tables(settings: Settings, folder: BenchFolder) -> None:
    results = _results(settings, folder)
    folder.write("gaussian", results)
    folder.write_text("gaussian.md", as_markdown(results))
    dims = sorted({row["dim"] for row in results["rows"]})
    methods = list(dict.fromkeys(row["method"] for row in results["rows"]))
    curves = {
        title: {method: _curve(results["rows"], method, dims, name) for method in methods}
        for title, name in {"Mean": "mean_error", "Standard deviation": "sd_error"}.items()
    }
    figure = error_figure(dims, curves, title="Recovering a Gaussian")
    save(figure, folder.path / "gaussian.png")


def _curve(rows: list[dict[str, Any]], method: str, dims: list[int], name: str) -> list[float]:
    found = {row["dim"]: row[name] for row in rows if row["method"] == method}
    return [found.get(dim, float("nan")) for dim in dims]
