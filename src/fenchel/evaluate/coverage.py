"""Which of the two is wrong: samples where there are no data, or data where there are no samples?

Each set's support is taken to be the balls around its points that reach to the k-th neighbour.
Precision and recall (Kynkäänniemi et al., 2019) ask whether the points of one set are in some ball
of the other. Density and coverage (Naeem et al., 2020) use the balls of the reference only, whose
outliers' large balls then do less harm. In many dimensions all of them are noisy.
"""

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from jaxtyping import Float, Int
from scipy.spatial import KDTree

from fenchel.errors import InputError
from fenchel.evaluate.checks import check_at_least, checked_pair

COLUMNS_FOR_TREE = 6  # beyond, a tree looks at most of the points anyway, one by one
ROWS_PER_BLOCK = 256
EDGE = 1.0 + 1e-9  # a point at a ball's very edge is in it, however the distance was rounded


@dataclass(frozen=True)
class Coverage:
    """How samples and reference cover each other, by k-nearest-neighbour balls."""

    precision: float
    """The share of samples that are in some ball of the reference: are the samples plausible?"""
    recall: float
    """The share of reference points in some ball of the samples: are they all within reach?"""
    density: float
    """The mean number of the reference's balls that a sample is in, over k: 1 for a perfect
    sampler, more where samples crowd the dense parts, less where they stray."""
    coverage: float
    """The share of the reference's balls with a sample in them: is any mode left out?"""
    k: int
    """Neighbours to which the balls reach."""
    n: int
    """Samples."""
    m: int
    """Reference points."""


def coverage(samples: np.ndarray, reference: np.ndarray, *, k: int = 5) -> Coverage:
    """Precision, recall, density and coverage of `samples` (n, d) against `reference` (m, d).

    Arguments:
        samples, reference: points in the same units; a column of large numbers weighs most. Take
            as many of each: fewer samples have larger balls, and cover fewer of the reference's.
        k: the neighbour to which balls reach. At n = m, a perfect sampler's coverage is about
            1 - 2^-k.
    """
    samples, reference = checked_pair(samples, reference, ("samples", "reference"))
    check_at_least(k, 1, "k")
    n, m = len(samples), len(reference)
    if k >= min(n, m):
        raise InputError(
            f"A {k}-th neighbour needs more than {k} points in either set, and they have {n} and "
            f"{m}: give more points, or a smaller k."
        )
    few_columns = samples.shape[1] <= COLUMNS_FOR_TREE
    incidence = _incidence_by_tree if few_columns else _incidence_by_blocks
    in_reference = incidence(reference, samples, k)
    in_samples = incidence(samples, reference, k)
    return Coverage(
        precision=float(np.mean(in_reference.balls_around > 0)),
        recall=float(np.mean(in_samples.balls_around > 0)),
        density=float(np.mean(in_reference.balls_around) / k),
        coverage=float(np.mean(in_reference.points_within > 0)),
        k=k,
        n=n,
        m=m,
    )


class _Incidence(NamedTuple):
    """Which points lie in which balls, counted by the ball and by the point."""

    points_within: Int[np.ndarray, " centres"]
    balls_around: Int[np.ndarray, " points"]


def _incidence_by_tree(centres: np.ndarray, points: np.ndarray, k: int) -> _Incidence:
    distances, _ = KDTree(centres).query(centres, k=[k + 1])  # the nearest is the point itself
    within = KDTree(points).query_ball_point(centres, EDGE * distances[:, 0])
    points_within = np.array([len(indices) for indices in within])
    members = np.concatenate(within).astype(int)
    return _Incidence(points_within, np.bincount(members, minlength=len(points)))


def _incidence_by_blocks(centres: np.ndarray, points: np.ndarray, k: int) -> _Incidence:
    # Squared distances come from a matrix product, which loses digits far from the origin.
    middle = np.median(centres, axis=0)
    centres, points = centres - middle, points - middle
    points_within, balls_around = [], np.zeros(len(points), dtype=int)
    for block in np.array_split(centres, -(-len(centres) // ROWS_PER_BLOCK)):
        neighbours = np.partition(_squared_distances(block, centres), k, axis=1)
        radii = EDGE**2 * neighbours[:, k : k + 1]  # squared; place 0 is the point itself
        inside = _squared_distances(block, points) <= radii
        points_within.append(inside.sum(axis=1))
        balls_around += inside.sum(axis=0)
    return _Incidence(np.concatenate(points_within), balls_around)


def _squared_distances(x: np.ndarray, y: np.ndarray) -> Float[np.ndarray, "n m"]:
    norms = (x**2).sum(axis=1)[:, None] + (y**2).sum(axis=1)[None, :]
    return np.maximum(norms - 2.0 * x @ y.T, 0.0)
