"""Between which two numbers log Z lies, from importance weights.

Weights w whose mean under the sampler is Z bound log Z from below: E[log w] <= log Z, by Jensen's
inequality. The same logarithm under the *model* bounds it from above. With the mean of k weights
in place of one both bounds close in on log Z, the upper one if at least one of the k is drawn
from the model.

Where nothing can be drawn from the model, its averages are those of the sampler tilted by the
weights: the upper bound is then E[w log w] / E[w], over means of k weights.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import logsumexp
from scipy.stats import t

GROUPS = 32  # independent ones, whose spread is the bounds' error
MISSES = 0.005  # how often either bound may lie on the wrong side by chance
HEAVY = 0.7  # the Pareto index from which on the weights' mean cannot be relied on
ENOUGH = 400  # effective draws: log Z to about 5%
FEWEST = 100  # weights, from which on they have a tail to speak of
UNSEEN = 0.01  # nats, from which on mass that the sampler never meets is spoken of
EQUAL = 1e-4  # nats, by which equal weights may differ: potentials are in single precision
FEW_PATHS = 20  # that count, of annealing, whose bracket is of both its ends
NO_MEAN = 1.0  # the Pareto index from which on there is none
WIDE = 1.0  # nats between the two ends of a path, from which on it was too short


class LogPartition(NamedTuple):
    """log Z, and how well it is known.

    `lower` and `upper` are the many-sample bounds, each moved outward by what its own noise can
    amount to, so that the truth is between them in 99 runs of 100 (where the caution is empty).
    An integral and a sum over all states have no draws, and neither has a constant that noise
    contrast learnt, of which no bounds are known.
    """

    lower: float
    upper: float
    estimate: float  # the logarithm of the mean weight
    standard_error: float  # of the estimate
    bound: float  # the paper's own lower bound, the mean log weight,
    bound_error: float  # and its standard error
    ess: float  # effective sample size of the weights, as a fraction of the draws
    pareto_k: float  # the tail's index: from 0.7 on the mean cannot be relied on
    draws: int
    how: str
    caution: str  # why not to trust it, in words; empty if there is no reason

    @property
    def width(self) -> float:
        """Of the bracket, in nats."""
        return self.upper - self.lower

    def moved(self, nats: float) -> "LogPartition":
        """That of f + nats."""
        names = ("lower", "upper", "estimate", "bound")
        return self._replace(**{name: getattr(self, name) + nats for name in names})


def known(value: float, how: str) -> LogPartition:
    """A value that is taken to be exact."""
    return LogPartition(value, value, value, 0.0, value, 0.0, 1.0, -np.inf, 0, how, "")


def believed(value: float, how: str) -> LogPartition:
    """A value of which nobody knows by how much it is off."""
    caution = f"nothing bounds its error: it is {how}"
    return known(value, how)._replace(
        lower=-np.inf, upper=np.inf, standard_error=np.nan, ess=np.nan, caution=caution
    )


def from_weights(log_w: ArrayLike, how: str, enough: int = ENOUGH) -> LogPartition:
    """The bracket from a sampler's weights alone, to be trusted from `enough` effective ones on.

    It cannot know of a mode that the sampler never visits.
    """
    log_w = _numbers(log_w, otherwise=-np.inf)
    groups = _grouped(log_w)
    means = logsumexp(groups, axis=1) - np.log(groups.shape[1])
    lower, lower_error = _mean(means)
    upper, upper_error = _tilted_mean(means)
    found = _bracket(log_w, (lower, lower_error), (upper, upper_error), how)
    return found._replace(caution=_caution(found, enough))


def from_both_ends(log_w: ArrayLike, reverse: ArrayLike, how: str) -> LogPartition:
    """The bracket from weights of paths begun at the sampler, and of others begun at the model."""
    log_w = _numbers(log_w, otherwise=-np.inf)
    reverse = _numbers(reverse, otherwise=np.inf)
    forward, backward = _grouped(log_w), _grouped(reverse)
    k = min(forward.shape[1], backward.shape[1])
    forward, backward = forward[:, :k], backward[:, :k]
    lower = logsumexp(forward, axis=1) - np.log(k)
    # Each draw from the model in turn takes the place of one of its group's others.
    others = np.where(np.eye(k, dtype=bool), -np.inf, forward[:, None, :])
    mixed = np.logaddexp(backward, logsumexp(others, axis=2)) - np.log(k)
    upper = _mean(mixed.mean(axis=1), otherwise=np.inf)
    found = _bracket(log_w, _mean(lower), upper, how)
    if not np.isfinite(found.width):
        return found._replace(caution="some paths ran off to infinity, and a bound with them")
    if found.width < WIDE:
        return found._replace(caution=_caution_of_paths(found))
    return found._replace(
        caution=f"the two ends of the path disagree by {found.width:.1f} nats: anneal over more "
        "stations, or the sampler lacks a mode that the model has"
    )


def beside_unseen(found: LogPartition, sent: ArrayLike, seen: ArrayLike) -> LogPartition:
    """With what scouts find of the mass where a sampler's start never goes, and its draws do not.

    Of that part of space both `sent`, log weights of the scouts, and `seen`, the draws' own, which
    are among those of `found`, estimate the mass: the dynamics may well carry draws there.
    """
    if not np.isfinite(found.estimate):
        return found
    logs = [_numbers(log_w, otherwise=-np.inf) - found.estimate for log_w in (sent, seen)]
    top = max(each.max(initial=0.0) for each in logs)  # a share of Z may be no float
    theirs, own = (np.exp(each - top) for each in logs)
    whole = float(np.exp(-top))
    more = theirs.mean() - own.mean()
    error = float(np.hypot(theirs.std() / theirs.size**0.5, own.std() / own.size**0.5))
    margin = float(t.ppf(1 - MISSES, GROUPS - 1))
    if own.mean() > 0.5 * theirs.mean() and more <= margin * error:
        return found  # the draws go there, and there is no more than they have met
    nats = float(np.log(whole + more) + top)
    error /= whole + more
    cautions = [found.caution] if found.caution else []
    if not nats < UNSEEN:
        cautions.insert(
            0,
            f"{nats:.2g} nats of it, by {_effective(theirs):.0f} scouts, are mass of f where the "
            "sampler hardly goes: its samples lack a part of the model",
        )
    return found._replace(
        upper=found.upper + nats + float(np.log1p(margin * error)),
        estimate=found.estimate + nats,
        standard_error=float(np.hypot(found.standard_error, error)),
        caution="; ".join(cautions),
    )


def _effective(weights: np.ndarray) -> float:
    """How many of them there seem to be."""
    largest = weights / weights.max()
    return float(largest.sum() ** 2 / (largest**2).sum())


def pareto_index(log_w: np.ndarray) -> float:
    """The index k of the generalised Pareto distribution that fits the weights' upper tail."""
    # Imported here: it takes longer than all else in this file.
    from arviz_stats.base import array_stats

    finite = log_w[np.isfinite(log_w)]
    if finite.size < FEWEST:
        return np.nan
    if np.ptp(finite) < EQUAL:
        return -np.inf  # equal weights have no tail at all
    tail = int(min(finite.size / 5, 3 * finite.size**0.5))
    if np.exp(np.sort(finite)[-tail] - finite.max()) == 0:
        return np.inf  # no tail is heavier than one that underflows, and none can be fitted to it
    return float(array_stats.psislw(-finite)[1])


def _bracket(
    log_w: np.ndarray, lower: tuple[float, float], upper: tuple[float, float], how: str
) -> LogPartition:
    count = len(log_w)
    margin = float(t.ppf(1 - MISSES, GROUPS - 1))
    estimate = float(logsumexp(log_w) - np.log(count))
    shares = np.exp(log_w - logsumexp(log_w))
    ess = float(1 / np.sum(shares**2) / count) if np.isfinite(estimate) else 0.0
    pareto_k = pareto_index(log_w)
    bound, bound_error = _mean(log_w)
    return LogPartition(
        lower=lower[0] - margin * lower[1],
        upper=upper[0] + margin * upper[1],
        estimate=estimate,
        standard_error=float(np.std(count * shares) / count**0.5),
        bound=bound,
        bound_error=bound_error,
        ess=ess,
        pareto_k=pareto_k,
        draws=count,
        how=how,
        caution="",
    )


def _caution_of_paths(found: LogPartition) -> str:
    """Of two ends that agree: by chance, if hardly a path counts, or where there is no mean."""
    if found.ess * found.draws >= FEW_PATHS and not found.pareto_k >= NO_MEAN:
        return ""
    return (
        f"only {found.ess * found.draws:.0f} of {found.draws:,} paths count (Pareto k "
        f"{found.pareto_k:.2f}): anneal over more stations, and see whether f has an integral"
    )


def _caution(found: LogPartition, enough: int) -> str:
    effective = found.ess * found.draws
    if not np.isfinite(found.width):
        return "some draws ran off to infinity, and the lower bound with them"
    if effective < enough:
        return (
            f"only {effective:.0f} of {found.draws:,} draws count: log Z may be far larger, and "
            "neither it nor a likelihood should be trusted"
        )
    if found.pareto_k >= HEAVY:
        return (
            f"the weights have a heavy tail (Pareto k {found.pareto_k:.2f}): log Z is probably too "
            "low, and its standard error too small"
        )
    return ""


def _grouped(log_w: np.ndarray) -> np.ndarray:
    """(GROUPS, k), without the few that are left over."""
    k = len(log_w) // GROUPS
    return log_w[: k * GROUPS].reshape(GROUPS, k)


def _numbers(logs: ArrayLike, otherwise: float) -> np.ndarray:
    """In double precision; what is not a number becomes what makes the bracket wider."""
    return np.nan_to_num(np.asarray(logs, np.float64), nan=otherwise, posinf=np.inf, neginf=-np.inf)


def _mean(values: np.ndarray, otherwise: float = -np.inf) -> tuple[float, float]:
    """(mean, its standard error), or else this, if a value is not finite."""
    if not np.isfinite(values).all():
        return otherwise, 0.0
    return float(values.mean()), float(values.std(ddof=1) / len(values) ** 0.5)


def _tilted_mean(logs: np.ndarray) -> tuple[float, float]:
    """(mean under weights exp(logs), its standard error by the delta method)."""
    shares = np.exp(logs - logsumexp(logs))
    mean = float(np.sum(shares * np.where(shares > 0, logs, 0.0)))
    deviations = shares * np.where(shares > 0, logs - mean, 0.0)
    return mean, float(np.sqrt(np.sum(deviations**2) * len(logs) / (len(logs) - 1)))
