"""What is said of a model after its last iteration: MMD, z-scores and log likelihood."""

from typing import Any, NamedTuple, Protocol

import numpy as np

from fenchel.bench.integral import Window, log_density, log_partition
from fenchel.bench.jobs import Job
from fenchel.bench.together import finite
from fenchel.bench.truth import PAPER_SIZE, SIZES, Truth
from fenchel.data import TOYS
from fenchel.evaluate.mmd import mmds_squared
from fenchel.result import Fit

FRESH = 10_000
FRESH_SEED, DRAW_SEED = 1_000_003, 2_000_003  # far from the seeds that anybody trains with


class Contestant(Protocol):
    """A model in the plane, whoever fitted it."""

    @property
    def kinds(self) -> tuple[str, ...]:
        """Of samples: raw, and corrected where the weights are exact."""

    def sample(self, kind: str, n: int, seed: int) -> np.ndarray: ...

    def log_density(self, x: np.ndarray) -> np.ndarray: ...

    def remarks(self) -> dict[str, Any]:
        """What else there is to say, by name."""


class Ours(NamedTuple):
    """A model of this library, normalised on a grid."""

    fit: Fit
    window: Window

    @property
    def kinds(self) -> tuple[str, ...]:
        return ("raw", "corrected") if self.fit.sampler.exact else ("raw",)

    def sample(self, kind: str, n: int, seed: int) -> np.ndarray:
        return self.fit.sample(n, seed=seed, corrected=kind == "corrected")

    def log_density(self, x: np.ndarray) -> np.ndarray:
        return log_density(self.fit, x, self.window)

    def remarks(self) -> dict[str, Any]:
        """By importance sampling too, where that can be: the two normalisers check each other."""
        names = ("ess", "bracket_width", "log_partition_gap")
        if not self.fit.sampler.exact:
            return dict.fromkeys((*names, "bracketed"))
        z = self.fit.log_partition()
        exact = log_partition(self.fit, self.window)
        found = dict(zip(names, finite([z.ess, z.width, exact - z.estimate]), strict=True))
        return {**found, "bracketed": bool(z.lower <= exact <= z.upper)}


def scores(model: Contestant, job: Job, truth: Truth) -> dict[str, Any]:
    """One row of the results."""
    toy = TOYS[job.set]
    fresh = toy.sample(FRESH, FRESH_SEED + job.seed)
    row: dict[str, Any] = {"set": job.set, "seed": job.seed, **model.remarks()}
    for kind in model.kinds:
        drawn = model.sample(kind, max(SIZES), DRAW_SEED + job.seed)
        row |= {f"{name}_{kind}": value for name, value in _mmd(drawn, job, truth).items()}
    likelihood = float(np.mean(model.log_density(fresh)))
    true = None if toy.log_density is None else float(np.mean(toy.log_density(fresh)))
    (row["log_likelihood"],) = finite([likelihood])
    row["true_log_likelihood"] = true
    return row


def _mmd(drawn: np.ndarray, job: Job, truth: Truth) -> dict[str, float | None]:
    """At the paper's size the value, at ours the z-scores.

    Of as many blocks of each size as the points give, the mean: one block's z would have a spread
    of one by itself, which says nothing about the model.
    """
    # Other points than those of the likelihood: no score should hang on one sample of the truth.
    true = TOYS[job.set].sample(max(SIZES), FRESH_SEED + 1_000_000 + job.seed)
    values = {n: mean_value(drawn, true, n, truth.gamma) for n in (PAPER_SIZE, *SIZES)}
    z = {f"z_{n}": truth.nulls[n].z(values[n]) for n in SIZES}
    everything = {"mmd": values[PAPER_SIZE], **z}
    return dict(zip(everything, finite(list(everything.values())), strict=True))


def mean_value(x: np.ndarray, y: np.ndarray, n: int, gamma: float) -> float:
    """The squared MMD of blocks of n points, on average."""
    x, y = (points[: len(points) // n * n].reshape(-1, n, points.shape[-1]) for points in (x, y))
    return float(np.mean(mmds_squared(x, y, np.full(len(x), gamma))))
