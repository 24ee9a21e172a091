"""The Fréchet distance between two sets of pictures' features, as if both were Gaussian:

    |m - m'|² + tr(C + C' - 2 (C C')^(1/2)).

In the features of `load_inception` it is the published "FID", which is in squared units:

    reference = feature_moments(feature_batches(network, training_pictures))
    distance = frechet_distance(feature_moments(feature_batches(network, samples)), reference)
"""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from jaxtyping import Float

from fenchel.errors import InputError


class FeatureMoments(NamedTuple):
    """All that the distance needs to know of a set of features."""

    mean: Float[np.ndarray, " d"]
    covariance: Float[np.ndarray, "d d"]
    n: int


@dataclass(frozen=True)
class FrechetDistance:
    """A distance, what it is made of, and what would be no distance at all."""

    value: float
    """The squared distance; of Inception's features, "FID"."""
    of_means: float
    """The part of it that is the means'."""
    of_covariances: float
    """The part of it that is the covariances'."""
    baseline: float
    """About what chance alone makes of so many pictures, from one distribution, against so many:
    the finite sets' bias, to first order in their sizes, if features were Gaussian. It is too low
    where there are not many more pictures than features."""
    n: int
    """Samples."""
    m: int
    """Reference pictures."""


def feature_moments(batches: Iterable[np.ndarray]) -> FeatureMoments:
    """Mean and covariance of all rows of the batches (n, d), of which one is held at a time.

    For features that are one array, give a list of it. Covariances are divided by n - 1.
    """
    count, origin, total, products = 0, np.zeros(0), np.zeros(0), np.zeros((0, 0))
    for batch in batches:
        rows = np.asarray(batch, np.float64)
        if count == 0:
            _check_rows(rows, np.shape(rows)[-1:])
            # Sums of squares lose digits far from zero: let zero be near to the mean.
            origin = rows.mean(axis=0)
            total, products = np.zeros_like(origin), np.zeros((len(origin), len(origin)))
        _check_rows(rows, origin.shape)
        centred = rows - origin
        count += len(rows)
        total += centred.sum(axis=0)
        products += centred.T @ centred
    if count < 2:
        raise InputError(
            f"There are features of {count} pictures: give at least two for a covariance."
        )
    shift = total / count
    covariance = (products - count * np.outer(shift, shift)) / (count - 1)
    return FeatureMoments(origin + shift, covariance, count)


def _check_rows(rows: np.ndarray, width: tuple[int, ...]) -> None:
    if rows.ndim != 2 or rows.size == 0 or rows.shape[1:] != width:
        raise InputError(
            f"A batch of features has shape {rows.shape}: give (n, d) arrays of the same d, in a "
            "list if there is one only."
        )
    if not np.isfinite(rows).all():
        raise InputError("Some features are not finite: drop those pictures first.")


def frechet_distance(samples: FeatureMoments, reference: FeatureMoments) -> FrechetDistance:
    """The squared Fréchet distance between Gaussians with these moments.

    Compare distances of equally many pictures: fewer are farther away, whatever they are of. What
    is published is of 50,000 samples, or of 10,000; with fewer than there are features the
    covariances are not even of full rank.
    """
    if samples.mean.shape != reference.mean.shape:
        raise InputError(
            f"The samples have {len(samples.mean)} features and the reference has "
            f"{len(reference.mean)}: take both from one network."
        )
    variances, axes = np.linalg.eigh(reference.covariance)
    variances = np.maximum(variances, 0.0)  # they are, but for rounding
    of_means = float(np.sum((samples.mean - reference.mean) ** 2))
    # The eigenvalues of C C' are those of the symmetric R' C R with C' = R R', and more exactly.
    root = axes * np.sqrt(variances)
    common = np.linalg.eigvalsh(root.T @ samples.covariance @ root)
    traces = np.trace(samples.covariance) + np.trace(reference.covariance)
    of_covariances = float(traces - 2.0 * np.sum(np.sqrt(np.maximum(common, 0.0))))
    return FrechetDistance(
        of_means + of_covariances,
        of_means,
        of_covariances,
        _baseline(variances) * (1.0 / samples.n + 1.0 / reference.n),
        samples.n,
        reference.n,
    )


def _baseline(variances: np.ndarray) -> float:
    """The expected distance of two sets, over the sum of their inverse sizes.

    With H the difference of sample covariances and λ the variances along their axes, the distance
    of covariances is to second order Σ H_ij² / (2 λ_i + 2 λ_j), and the expectation of H_ij² is
    λ_i λ_j (1 + δ_ij) times the sum of inverse sizes.
    """
    held = variances[variances > variances.max(initial=0.0) * np.finfo(float).eps]
    pairs = np.outer(held, held) / (held[:, None] + held[None, :])
    return float(np.sum(held) + 0.5 * (np.sum(pairs) + np.trace(pairs)))
