"""Pictures of the library's own runs: what was learnt, and how its sampler gets there."""

from dataclasses import replace
from pathlib import Path

import equinox as eqx
import numpy as np

from fenchel.bench.integral import Window, log_density
from fenchel.bench.jobs import Prepared, fit_of
from fenchel.bench.scores import FRESH_SEED
from fenchel.data import TOYS
from fenchel.dynamics import Chain, PerStep
from fenchel.report.bench_figures import Learnt, landscape_figure, stages_figure
from fenchel.report.figures import save
from fenchel.result import Fit
from fenchel.samplers import Embedding
from fenchel.stacking import unstack
from fenchel.train import TrainState

PICTURED = "ade"
POINTS = 1_500
IN_STAGES = ("moons", "Multiring", "pinwheel", "2spirals")  # the first three are the paper's


def draw_pictures(folder: Path, prepared: list[Prepared], state: TrainState) -> None:
    """Of the first seed's runs, into the benchmark's folder."""
    seed = prepared[0].job.seed
    chosen = [(i, each) for i, each in enumerate(prepared) if each.job.seed == seed]
    fits = {each.job.set: fit_of(each, state, index) for index, each in chosen}
    data = {name: TOYS[name].sample(POINTS, FRESH_SEED + seed) for name in fits}
    entries = [_learnt(each, fits[each.job.set], data[each.job.set]) for _, each in chosen]
    title = "Data, samples and learnt densities"
    save(landscape_figure(entries, title=title), folder / "toys-ade.png")
    staged = [name for name in IN_STAGES if name in fits] or list(fits)[:1]
    stages = {name: _stages(fits[name]) for name in staged}
    save(stages_figure(stages, data), folder / "toys-ade-stages.png")


def after(sampler: Embedding, steps: int) -> Embedding:
    """The sampler as it is after its first few steps."""
    whole = sampler.dynamics
    assert isinstance(whole, PerStep)
    first = PerStep(
        unstack(whole.layers, slice(steps)), unstack(whole.between, slice(max(steps - 1, 0))), steps
    )
    return eqx.tree_at(lambda s: s.dynamics, sampler, first if steps else Chain())


def _learnt(prepared: Prepared, fit: Fit, data: np.ndarray) -> Learnt:
    window = Window.around(np.asarray(prepared.points))
    samples = fit.sample(POINTS, seed=FRESH_SEED)
    return Learnt(prepared.job.set, data, samples, lambda x: log_density(fit, x, window))


def _stages(fit: Fit) -> list[np.ndarray]:
    """Samples after no step, after one, and so on, all from the same start."""
    assert isinstance(fit.sampler, Embedding)
    assert isinstance(fit.sampler.dynamics, PerStep)
    cut = [after(fit.sampler, steps) for steps in range(fit.sampler.dynamics.count + 1)]
    return [
        replace(fit, sampler=sampler).sample(POINTS, seed=FRESH_SEED, corrected=False)
        for sampler in cut
    ]
