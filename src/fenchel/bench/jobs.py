"""From (set, seed) pairs and a preset to stacked runs, and back to fitted models."""

from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from fenchel.bench.presets import Preset
from fenchel.bench.together import Entry, Together, stacked
from fenchel.config import Config
from fenchel.data import TOYS, Standardiser, default_columns
from fenchel.fitting import fitted_model
from fenchel.parameters import learnt
from fenchel.result import Fit
from fenchel.shapes import Points, PyTree
from fenchel.stacking import unstack
from fenchel.train import MaxMin, TrainState

DIM = 2
ROWS = 50_000  # of training data


class Job(NamedTuple):
    """One run: a toy and the seed of its data, its parts and its batches."""

    set: str
    seed: int


class Prepared(NamedTuple):
    """A job's data in the units that f sees, and its own settings."""

    job: Job
    preset: Preset
    config: Config
    standardiser: Standardiser
    points: Points

    @property
    def noise_floor(self) -> float:
        """Of its training data, in standard deviations."""
        return self.config.training.floor(MaxMin().noise_floor)

    def fit(self, state: TrainState) -> Fit:
        """The model that its run ended with."""
        columns = default_columns(DIM)
        return fitted_model(
            state, self.points, self.standardiser, self.config, columns, self.job.set
        )


def all_jobs(sets: list[str], seeds: list[int]) -> list[Job]:
    return [Job(name, seed) for name in sets for seed in seeds]


def prepare(preset: Preset, job: Job, rows: int = ROWS) -> Prepared:
    x = TOYS[job.set].sample(rows, job.seed)
    scale = Standardiser.of(x) if preset.standardised else as_they_are(DIM)
    points = jnp.asarray(scale.forward(x), jnp.float32)
    return Prepared(job, preset, preset.config.with_values(seed=job.seed), scale, points)


def as_they_are(dim: int) -> Standardiser:
    """The map that leaves data in their own units."""
    return Standardiser(np.zeros(dim), np.ones(dim))


def together(prepared: list[Prepared]) -> Together:
    return stacked(
        [
            Entry(each.config, each.points, each.preset.parts(each.config, each.points))
            for each in prepared
        ]
    )


def fit_of(prepared: Prepared, state: TrainState, index: int) -> Fit:
    """One of the fitted models in a stacked state."""
    return prepared.fit(unstack(state, index))


def parameter_count(tree: PyTree) -> int:
    """How many numbers are learnt."""
    return sum(leaf.size for leaf in jax.tree.leaves(learnt(tree)))
