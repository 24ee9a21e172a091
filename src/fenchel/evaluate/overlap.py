"""Do data and samples have the same values of f? The points, seen through the model itself.

Where f is right and its samples are drawn from exp f, f(data) and f(samples) have one distribution.
Samples at values higher than the data's are too concentrated, at lower ones too spread, and both
are seen in any dimension, since f maps all of it to one number.
"""

from dataclasses import dataclass

import numpy as np
from jaxtyping import Float
from scipy.stats import ks_2samp

from fenchel.errors import InputError

FEWEST = 8  # values on either side: halves of four


@dataclass(frozen=True)
class EnergyOverlap:
    """How far the distribution of f over the data agrees with that over the samples."""

    overlap: float
    """1 - total variation, from 0 (f tells data and samples apart) to 1 (it cannot)."""
    difference: float
    """Mean of f over the samples less that over the data, in nats."""
    standard_error: float
    """Of the difference, if the values on either side are independent."""
    ks_p_value: float
    """Of the two-sample Kolmogorov-Smirnov test that both have one distribution."""
    n: int
    """Samples."""
    m: int
    """Data points."""


def energy_overlap(f_samples: np.ndarray, f_data: np.ndarray) -> EnergyOverlap:
    """Compare the values of f at the samples (n,) with those at data (m,), best not trained on."""
    f_samples = _checked_values(f_samples, "f_samples")
    f_data = _checked_values(f_data, "f_data")
    n, m = len(f_samples), len(f_data)
    variance = f_samples.var(ddof=1) / n + f_data.var(ddof=1) / m
    # The exact distribution takes seconds for large sets, and is not exact where values repeat.
    ks = ks_2samp(f_samples, f_data, method="asymp")
    return EnergyOverlap(
        overlap=_overlap(f_samples, f_data),
        difference=float(f_samples.mean() - f_data.mean()),
        standard_error=float(np.sqrt(variance)),
        ks_p_value=float(ks.pvalue),
        n=n,
        m=m,
    )


def _overlap(x: np.ndarray, y: np.ndarray) -> float:
    """Twice the error of the best guess which set a value is from: 1 - total variation.

    The guess is learnt on every other value and judged on the rest, then the other way round. A
    histogram compared with itself would call chance a difference, the more so the finer it is; a
    guess that is judged on new values errs half of the time where there is nothing to learn. What
    it misses makes the overlap too large, never too small but for noise.
    """
    halves = (x[::2], y[::2]), (x[1::2], y[1::2])
    advantages = [_advantage(learnt, judged) for learnt, judged in (halves, halves[::-1])]
    return float(np.clip(1.0 - np.mean(advantages), 0.0, 1.0))


def _advantage(
    learnt: tuple[np.ndarray, np.ndarray], judged: tuple[np.ndarray, np.ndarray]
) -> float:
    """P(guess x | x) - P(guess x | y): the total variation, for the best of guesses."""
    edges = _edges(*learnt)
    x_share, y_share = (_shares(values, edges) for values in learnt)
    guess_x = x_share > y_share
    x_share, y_share = (_shares(values, edges) for values in judged)
    return float(np.sum((x_share - y_share)[guess_x]))


def _edges(x: np.ndarray, y: np.ndarray) -> np.ndarray:
    """Inner edges of bins that hold about equally many values of both sets together.

    Such bins depend on the values' order only: a far value does not stretch them, and any
    increasing function of f would give the same overlap.
    """
    smaller = min(len(x), len(y))
    # Rice's rule, made even: an edge in the middle then parts two sets that do not meet.
    bins = 2 * int(np.ceil(smaller ** (1.0 / 3.0)))
    # Each set weighs the same, however many values it has.
    levels = np.linspace(0.0, 1.0, bins + 1)[1:-1]
    even = (np.arange(smaller) + 0.5) / smaller
    pooled = np.concatenate([np.quantile(values, even, method="nearest") for values in (x, y)])
    return np.unique(np.quantile(pooled, levels, method="nearest"))


def _shares(values: np.ndarray, edges: np.ndarray) -> Float[np.ndarray, " bins"]:
    counts = np.bincount(np.searchsorted(edges, values), minlength=len(edges) + 1)
    return counts / len(values)


def _checked_values(values: np.ndarray, name: str) -> np.ndarray:
    values = np.asarray(values, dtype=np.float64)
    if values.ndim != 1 or len(values) < FEWEST:
        raise InputError(
            f"{name} has shape {values.shape}: give one number a point, for {FEWEST} or more."
        )
    if not np.isfinite(values).all():
        raise InputError(f"{name} has values that are not finite: drop those points first.")
    return values
