"""Do two sets of points come from one distribution? Permutation tests by the MMD.

Under the null the pooled points are exchangeable: which of them are called samples is arbitrary. So
the MMD at the given labels is one of many like it, those at shuffled labels, and its rank among
them is a p-value. The given labels are themselves one of the `permutations`: the test then rejects
at level α with a probability of at most α, at any n and for any distribution.

Widths of kernels come from the pooled points, whatever their labels and their order. Were they
chosen from one of the sets, the shuffled labels would no longer be on a par with the given ones.
"""

from dataclasses import dataclass

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int
from scipy.stats import rankdata

from fenchel.errors import InputError
from fenchel.evaluate.checks import check_at_least, checked_pair
from fenchel.evaluate.mmd import kernel_scale, median_squared_distance
from fenchel.evaluate.signed_sums import signed_sums, squared_distances
from fenchel.shapes import Points, Scalar

WIDEST = 2.0  # times the median distance
KERNELS = 6  # each half as wide as the one before: the narrowest is 1/16 of the median distance


@dataclass(frozen=True)
class MMDTest:
    """A squared MMD, and its rank among those of shuffled labels."""

    value: float
    """The unbiased squared MMD, as of `mmd_squared`."""
    p_value: float
    """The share of permutations, the given labels among them, with an MMD at least as large."""
    permutations: int
    """Labellings compared: the given one, and random others."""
    n: int
    """Samples."""
    m: int
    """Reference points."""
    gamma: float
    """The kernel is exp(-gamma |x - y|²)."""


@dataclass(frozen=True)
class AggregatedMMDTest:
    """One p-value for all of the kernels, and what each of them says."""

    p_value: float
    """Of the hypothesis that the distributions agree: corrected for looking at many kernels."""
    width: float
    """The kernel's width that rejects most: a hint at the scale on which the sets differ."""
    widths: tuple[float, ...]
    """The kernels are exp(-|x - y|² / (2 width²)), from wide to narrow."""
    values: tuple[float, ...]
    """Each kernel's unbiased squared MMD."""
    p_values: tuple[float, ...]
    """Each kernel's own p-value, not corrected for the others."""
    z_scores: tuple[float, ...]
    """Each value's distance from the mean of all permutations' values, the given labels' among
    them, in their standard deviations: at most the root of their number."""
    permutations: int
    """Labellings compared: the given one, and random others."""
    n: int
    """Samples."""
    m: int
    """Reference points."""


def mmd_test(
    samples: np.ndarray,
    reference: np.ndarray,
    *,
    gamma: float | None = None,
    permutations: int = 200,
    seed: int,
) -> MMDTest:
    """Whether `samples` (n, d) and `reference` (m, d) agree, as seen by a single Gaussian kernel.

    Arguments:
        samples, reference: points, independent within and between the sets.
        gamma: the kernel's rate; without one, the paper's rule (`kernel_scale`) on both sets.
        permutations: labellings compared; no p-value is smaller than 1 / permutations.
        seed: of the shuffles.
    """
    samples, reference = checked_pair(samples, reference, ("samples", "reference"))
    pooled = _pooled(samples, reference)
    if gamma is None:
        gamma = kernel_scale(_in_canonical_order(pooled))
    elif not 0.0 < gamma < np.inf:
        raise InputError(f"gamma is {gamma}: give a positive number, or none for the paper's rule.")
    signs = _shuffled_signs(len(samples), len(reference), permutations, seed)
    mmds = relabelled_mmds(pooled, signs, gamma, kernels=1)
    p_value = _ranks(mmds)[0, 0] / permutations
    return MMDTest(
        float(mmds[0, 0]), float(p_value), permutations, len(samples), len(reference), float(gamma)
    )


def aggregated_mmd_test(
    samples: np.ndarray, reference: np.ndarray, *, permutations: int = 200, seed: int
) -> AggregatedMMDTest:
    """Whether `samples` (n, d) and `reference` (m, d) agree on any of six scales.

    A single kernel is blind to differences much finer or coarser than its width. Here the widths
    are 2, 1, 1/2, ..., 1/16 of the median distance. Each labelling's score is the smallest of its
    p-values over the kernels, and the given labels' score is ranked among the scores (Westfall and
    Young): exact, since the score treats all labellings alike, and without Bonferroni's loss, since
    kernels that say the same count once. All are Gaussian: halving the width is then raising to
    the fourth power, so that six kernels need one exponential.

    Arguments:
        samples, reference: points, independent within and between the sets.
        permutations: labellings compared; no p-value is smaller than 1 / permutations.
        seed: of the shuffles.
    """
    samples, reference = checked_pair(samples, reference, ("samples", "reference"))
    pooled = _pooled(samples, reference)
    median = np.sqrt(median_squared_distance(_in_canonical_order(pooled), "both sets"))
    widths = WIDEST * median * 0.5 ** np.arange(KERNELS)
    signs = _shuffled_signs(len(samples), len(reference), permutations, seed)
    mmds = relabelled_mmds(pooled, signs, 0.5 / widths[0] ** 2, kernels=KERNELS)
    ranks, z_scores = _ranks(mmds), _z_scores(mmds)
    # Many kernels may reject as far as ranks can tell; the z-scores then say which does most.
    most = np.lexsort((-z_scores[:, 0], ranks[:, 0]))[0]
    return AggregatedMMDTest(
        p_value=float(_rank_of_smallest(ranks, z_scores) / permutations),
        width=float(widths[most]),
        widths=tuple(widths.tolist()),
        values=tuple(mmds[:, 0].tolist()),
        p_values=tuple((ranks[:, 0] / permutations).tolist()),
        z_scores=tuple(z_scores[:, 0].tolist()),
        permutations=permutations,
        n=len(samples),
        m=len(reference),
    )


def relabelled_mmds(
    points: np.ndarray, signs: np.ndarray, gamma: float, kernels: int
) -> Float[np.ndarray, "k b"]:
    """Squared MMDs between the points of sign 1 and those of sign -1, for each column of `signs`.

    The first kernel's rate is `gamma`, that of each further one 4 times as large: half as wide.
    """
    sums = signed_sums(_GaussianLadder(jnp.asarray(gamma, dtype=float), kernels), points, signs)
    n, m = (signs == 1.0).sum(axis=0), (signs == -1.0).sum(axis=0)
    # (1 + e) / 2 is 1 in the first set and 0 in the second, (1 - e) / 2 the other way round.
    plain = sums.plain[:, None]
    within_x = (plain + 2.0 * sums.linear + sums.quadratic) / 4.0 / (n * (n - 1))
    within_y = (plain - 2.0 * sums.linear + sums.quadratic) / 4.0 / (m * (m - 1))
    between = (plain - sums.quadratic) / 4.0 / (n * m)
    return within_x + within_y - 2.0 * between


class _GaussianLadder(eqx.Module):
    """Gaussian kernels, each half as wide as the one before."""

    gamma: Scalar
    kernels: int = eqx.field(static=True)

    def __call__(self, x: Points, y: Points) -> list[Float[Array, "n m"]]:
        ladder = [jnp.exp(-self.gamma * squared_distances(x, y))]
        for _ in range(1, self.kernels):
            ladder.append(jnp.square(jnp.square(ladder[-1])))
        return ladder


def _pooled(samples: np.ndarray, reference: np.ndarray) -> np.ndarray:
    pooled = np.concatenate([samples, reference])
    # Squared distances come from a matrix product, which loses digits far from the origin.
    return pooled - np.median(pooled, axis=0)


def _in_canonical_order(points: np.ndarray) -> np.ndarray:
    """Sorted by the first column, then by the next: the same for every order that is given."""
    return points[np.lexsort(points.T[::-1])]


def _shuffled_signs(n: int, m: int, permutations: int, seed: int) -> np.ndarray:
    """(n + m, permutations) signs: 1 for samples, -1 for reference, the first column as given."""
    check_at_least(permutations, 2, "permutations")
    given = np.repeat([1.0, -1.0], [n, m])
    others = np.tile(given, (permutations - 1, 1))
    shuffled = np.random.default_rng(seed).permuted(others, axis=1)
    return np.vstack([given, shuffled]).T


def _ranks(mmds: Float[np.ndarray, "k b"]) -> Int[np.ndarray, "k b"]:
    """How many labellings have an MMD at least as large, each itself included."""
    return rankdata(-mmds, method="max", axis=1).astype(int)


def _z_scores(mmds: Float[np.ndarray, "k b"]) -> Float[np.ndarray, "k b"]:
    spread = mmds.std(axis=1, keepdims=True)
    # A kernel so narrow that no two points are near has nothing but zeros.
    return (mmds - mmds.mean(axis=1, keepdims=True)) / np.where(spread > 0.0, spread, 1.0)


def _rank_of_smallest(ranks: Int[np.ndarray, "k b"], z_scores: Float[np.ndarray, "k b"]) -> int:
    """How many labellings have a smallest rank that is as small as the given labels'.

    Of any six kernels each has some labelling that it ranks first, so smallest ranks often tie;
    the largest z-score decides between them, again by a rule that treats all labellings alike.
    """
    smallest, largest = ranks.min(axis=0), z_scores.max(axis=0)
    tied = (smallest == smallest[0]) & (largest >= largest[0])
    return int(np.sum((smallest < smallest[0]) | tied))
