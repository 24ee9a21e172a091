"""What the pictures are made of, drawn once: data, samples, and their values of f."""

from typing import NamedTuple

import numpy as np

from fenchel.data import Samples
from fenchel.report.page.elements import Key
from fenchel.result import Fit

DRAWS = 2_000
SEED_OFFSET = 2_000_003  # far from the seeds that anybody trains with


class Draws(NamedTuple):
    """Points in the data's units; `samples` are the ones to show, corrected where they can be."""

    data: np.ndarray
    samples: np.ndarray
    raw: np.ndarray | None  # where `samples` are corrected
    held_out: np.ndarray | None

    @property
    def kind(self) -> str:
        return "corrected samples" if self.raw is not None else "samples"

    def named(self) -> dict[Key, np.ndarray]:
        """Each cloud by its name and its mark."""
        every = {
            Key("data", "fill data"): self.data,
            Key("held-out data", "line held-out"): self.held_out,
            Key("raw samples", "line raw"): self.raw,
            Key(self.kind, "line samples"): self.samples,
        }
        return {key: points for key, points in every.items() if points is not None}


def draw(fit: Fit, samples: Samples) -> Draws:
    seed = fit.config.seed
    return Draws(
        data=_some(samples.in_order(fit.columns), seed),
        samples=_finite(fit.sample(DRAWS, seed=seed)),
        raw=_finite(fit.sample(DRAWS, seed=seed, corrected=False)) if fit.is_corrected else None,
        held_out=samples.toy.sample(DRAWS, seed + SEED_OFFSET) if samples.toy else None,
    )


def _some(points: np.ndarray, seed: int) -> np.ndarray:
    """A random part: files are often sorted."""
    return points[np.random.default_rng(seed).permutation(len(points))[:DRAWS]]


def _finite(points: np.ndarray) -> np.ndarray:
    """A sampler that went astray may still be looked at, by the points that can be drawn."""
    return points[np.isfinite(points).all(axis=1)]
