"""The sliced Wasserstein distance: how far points must be moved, seen along random directions.

On a line the best transport is monotone, W_p^p = ∫₀¹ |F⁻¹(t) - G⁻¹(t)|^p dt, and takes two sorts.
The sliced distance is its mean over directions θ of the sphere, SW_p^p = E_θ[W_p^p(θ·x, θ·y)]: a
metric as W_p is, in the units of the data.
"""

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from jaxtyping import Float, Int

from fenchel.errors import InputError
from fenchel.evaluate.checks import check_at_least, checked_pair

POINTS_FOR_BASELINE = 4  # two in either half


@dataclass(frozen=True)
class SlicedWasserstein:
    """A distance, how well it is known, and what would be no distance at all."""

    value: float
    """SW_p between samples and reference, in the units of the data."""
    standard_error: float
    """Of the value, over the choice of directions; not over the choice of points."""
    baseline: float
    """SW_p between two random halves of the reference, along the same directions: what chance
    alone makes of m / 2 true points against m / 2. A perfect sampler's n = m points have about 0.7
    of it, since there are twice as many."""
    p: float
    """The power to which distances are raised."""
    projections: int
    """Random directions."""
    n: int
    """Samples."""
    m: int
    """Reference points."""


def sliced_wasserstein(
    samples: np.ndarray,
    reference: np.ndarray,
    *,
    p: float = 2.0,
    projections: int = 200,
    seed: int,
) -> SlicedWasserstein:
    """The sliced Wasserstein-p distance between `samples` (n, d) and `reference` (m, d).

    Arguments:
        samples, reference: points in the same units; a column of large numbers weighs most.
        p: at least 1. The larger, the more the farthest points count.
        projections: the number of random directions.
        seed: of the directions, and of the reference's halves.
    """
    samples, reference = checked_pair(samples, reference, ("samples", "reference"))
    check_at_least(projections, 2, "projections")
    check_at_least(len(reference), POINTS_FOR_BASELINE, "The number of reference points")
    if not 1.0 <= p < np.inf:
        raise InputError(f"p is {p}: a distance needs a finite p of at least 1.")
    rng = np.random.default_rng(seed)
    directions = rng.normal(size=(projections, samples.shape[1]))
    directions /= np.linalg.norm(directions, axis=1, keepdims=True)
    shuffled = rng.permutation(reference)
    half = len(reference) // 2
    value, error = _sliced(samples, reference, directions, p)
    baseline, _ = _sliced(shuffled[:half], shuffled[half:], directions, p)
    return SlicedWasserstein(
        value, error, baseline, float(p), projections, len(samples), len(reference)
    )


def _sliced(x: np.ndarray, y: np.ndarray, directions: np.ndarray, p: float) -> tuple[float, float]:
    """The distance, and its standard error over the directions."""
    plan = _monotone_plan(len(x), len(y))
    gaps = (np.sort(x @ way)[plan.x] - np.sort(y @ way)[plan.y] for way in directions)
    powers = np.array([np.sum(plan.mass * np.abs(gap) ** p) for gap in gaps])
    mean = powers.mean()
    if mean == 0.0:
        return 0.0, 0.0
    value = mean ** (1.0 / p)
    error_of_mean = powers.std(ddof=1) / np.sqrt(len(powers))
    return float(value), float(value / (p * mean) * error_of_mean)  # by the delta method


class _Plan(NamedTuple):
    """Which of the sorted x goes to which of the sorted y, and how much of it."""

    x: Int[np.ndarray, " pieces"]
    y: Int[np.ndarray, " pieces"]
    mass: Float[np.ndarray, " pieces"]


def _monotone_plan(n: int, m: int) -> _Plan:
    """Between quantile functions, which are steps at i/n and at j/m: pieces where neither steps."""
    # In units of 1 / (n m) the steps are whole numbers, so that equal ones are seen to be equal.
    steps = np.union1d(np.arange(n + 1) * m, np.arange(m + 1) * n)
    return _Plan(steps[:-1] // m, steps[:-1] // n, np.diff(steps) / (n * m))
