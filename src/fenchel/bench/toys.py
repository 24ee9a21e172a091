"""The paper's Table 2, on its fourteen sets: every method, set and seed, judged three ways.

The smallest MMD of a hundred epochs is the paper's figure; the last model's MMD on fresh points,
as a z-score against truth, says whether the samples can be told from the data; and the held-out
log likelihood, beside the true density's, says how good the density is.
"""

from dataclasses import dataclass
from typing import Any, NamedTuple

import jax
import numpy as np

from fenchel.bench.epochs import Looking
from fenchel.bench.folder import BenchFolder
from fenchel.bench.integral import Window
from fenchel.bench.jobs import (
    DIM,
    ROWS,
    Job,
    all_jobs,
    fit_of,
    parameter_count,
    prepare,
    together,
)
from fenchel.bench.paper import TABLE_2
from fenchel.bench.presets import PRESETS, Preset
from fenchel.bench.progress import Progressing
from fenchel.bench.provenance import provenance
from fenchel.bench.rival import BATCH, fit_flow, new_flow
from fenchel.bench.scores import Ours, scores
from fenchel.bench.together import Together, Trained, train
from fenchel.bench.toy_pictures import PICTURED, draw_pictures
from fenchel.bench.toy_table import as_markdown
from fenchel.bench.truth import Truth, truths
from fenchel.choices import choose
from fenchel.data import toy
from fenchel.errors import InputError
from fenchel.stacking import unstack

FLOWJAX = "flowjax"
METHODS = (*PRESETS, FLOWJAX)
SETS = tuple(TABLE_2)
PROTOCOL = 2  # the paper's own held-out points; a folder of the first cannot be gone on with


@dataclass(frozen=True)
class Settings:
    """What all methods in a folder have in common."""

    sets: tuple[str, ...] = SETS
    seeds: tuple[int, ...] = (1, 2, 3)
    steps: int | None = None  # iterations of every method, in place of its own
    replicates: int = 100  # of truth against truth
    rows: int = ROWS
    protocol: int = PROTOCOL

    def __post_init__(self) -> None:
        for name in self.sets:
            toy(name)
        if min(self.seeds, default=-1) < 0 or len(set(self.seeds)) < len(self.seeds):
            raise InputError(f"The seeds are {self.seeds}: give different whole numbers from 0 on.")
        if self.replicates < 2:
            raise InputError(f"A null spread needs at least 2 replicates, not {self.replicates}.")
        if self.steps is not None and self.steps < 1:
            raise InputError(f"{self.steps} iterations were asked for: ask for at least one.")

    def to_dict(self) -> dict[str, Any]:
        return {**vars(self), "sets": list(self.sets), "seeds": list(self.seeds)}

    def applied(self, preset: Preset) -> Preset:
        return preset._replace(config=preset.config.with_values(training__steps=self.steps))


class Bench(NamedTuple):
    """A sitting: what is asked for, where it is kept, who watches."""

    settings: Settings
    folder: BenchFolder
    progress: Progressing
    truths: dict[str, Truth]


def run(
    methods: list[str], settings: Settings, folder: BenchFolder, progress: Progressing
) -> dict[str, Any]:
    """Whatever of it is not in the folder yet; all results that are there by then."""
    for method in methods:
        choose(dict.fromkeys(METHODS), method, "method of this benchmark")
    folder.claim(settings.to_dict())
    progress.begin("truth against truth", len(settings.sets))
    known = truths(list(settings.sets), settings.replicates, folder, progress.reach)
    bench = Bench(settings, folder, progress, known)
    for method in methods:
        if method == FLOWJAX:
            run_flowjax(bench)
        else:
            run_preset(method, bench)
        results = collect(settings, folder)
        folder.write("toys", results)
        folder.write_text("toys.md", as_markdown(results))
    return collect(settings, folder)


def run_preset(name: str, bench: Bench) -> None:
    """Train all jobs at once, then judge them one by one."""
    folder, settings = bench.folder.within(name), bench.settings
    preset = settings.applied(PRESETS[name])
    folder.claim_for(preset.config)
    jobs = all_jobs(list(settings.sets), list(settings.seeds))
    if _is_done(folder, jobs):
        return
    prepared = [prepare(preset, job, settings.rows) for job in jobs]
    runs = together(prepared)
    steps = preset.config.training.steps
    bench.progress.begin(f"{name}, iteration", steps)
    trained = train(runs, steps, folder, bench.progress, Looking(prepared, bench.truths))
    _write_about(folder, trained, runs, prepared[0].noise_floor)
    if name == PICTURED:
        draw_pictures(bench.folder.path, prepared, trained.state)

    def row(index: int) -> dict[str, Any]:
        each = prepared[index]
        model = Ours(fit_of(each, trained.state, index), Window.around(np.asarray(each.points)))
        return {
            **scores(model, each.job, bench.truths[each.job.set]),
            **trained.health(index, runs.learner.patience, DIM),
            **best_epochs(trained, index),
        }

    judge(name, jobs, row, bench)


def best_epochs(trained: Trained, index: int) -> dict[str, float | None]:
    """The smallest MMD of a run, as the paper's protocol has it; of every kind of samples."""
    kinds = [kind for kind in ("mmd", "mmd_corrected") if kind in trained.blocks[0]]
    seen = {kind: [v for v in trained.of_run(kind, index) if v is not None] for kind in kinds}
    return {f"best_epoch_{kind}": min(values, default=None) for kind, values in seen.items()}


def run_flowjax(bench: Bench) -> None:
    """One after the other, as FlowJAX's loop is; for the first seed only, since that takes long."""
    folder, settings = bench.folder.within(FLOWJAX), bench.settings
    jobs = all_jobs(list(settings.sets), list(settings.seeds[:1]))
    if _is_done(folder, jobs):
        return
    # Standardised data with our noise floor, as the library's default sees them.
    preset = PRESETS["ade"]
    parameters = parameter_count(new_flow(jax.random.key(0)))
    floor = prepare(preset, jobs[0], settings.rows).noise_floor
    about = {"provenance": provenance(), "parameters": parameters, "noise_floor": floor}
    folder.write("about", about)
    # As many epochs as make so many iterations, or FlowJAX's own number.
    epochs = None if settings.steps is None else 1 + settings.steps * BATCH // settings.rows

    def row(index: int) -> dict[str, Any]:
        each = prepare(preset, jobs[index], settings.rows)
        model, about = fit_flow(each, epochs)
        return {**scores(model, each.job, bench.truths[each.job.set]), **about}

    judge(FLOWJAX, jobs, row, bench)


def judge(name: str, jobs: list[Job], row, bench: Bench) -> None:
    """A row for each job that has none yet, written down as soon as it is known."""
    folder = bench.folder.within(name)
    rows = folder.read("runs") or []
    bench.progress.begin(f"{name}, judged", len(jobs), len(rows))
    for index in range(len(rows), len(jobs)):
        rows.append(row(index))
        folder.write("runs", rows)
        bench.progress.reach(len(rows))


def collect(settings: Settings, folder: BenchFolder) -> dict[str, Any]:
    """All that the folder holds, method by method."""
    methods: dict[str, Any] = {}
    for name in METHODS:
        part = folder.within(name)
        rows, about = part.read("runs"), part.read("about")
        if rows:
            methods[name] = {**about, "settings": part.read("settings"), "runs": rows}
    return {"settings": settings.to_dict(), "truth": folder.read("truth"), "methods": methods}


def _is_done(folder: BenchFolder, jobs: list[Job]) -> bool:
    return len(folder.read("runs") or []) == len(jobs)


def _write_about(folder: BenchFolder, trained: Trained, runs: Together, floor: float) -> None:
    if folder.read("about") is not None:
        return
    model = unstack((runs.state.potential, runs.state.sampler), 0)
    learns_sampler = runs.state.sampler_memory is not None
    about = {
        "provenance": provenance(),
        "parameters": parameter_count(model if learns_sampler else model[0]),
        "noise_floor": floor,
        "jobs": runs.jobs,
        "seconds": trained.seconds,
    }
    folder.write("about", about)
