"""How training went, in one line with its evidence, from the metrics that a run writes."""

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from scipy.stats import kendalltau, t

LOST, BEHIND = 5.0, 1.0  # nats: a sampler so far behind has lost its model, or lags; and so
PER_DIMENSION = 0.05  # many more in each dimension
FEW = 0.1  # effective sample size, as a share of the batch
TAIL = 0.2  # of the run, in which it should no longer change,
NOTICED = 0.02  # by as many nats,
SHARE = 0.05  # or by this part of all that a loss without a unit has changed
CHANCE = 0.003  # the p-value from which on that is no noise
FEWEST, FEWEST_RANKED = 4, 6  # rows that can show it, by a line or by ranks
OFTEN = 0.05  # of the last iterations: dropping as many steps is no accident
GROWN = 10.0  # times the run's usual gap, from which on f has left its sampler behind

Said = dict[str, tuple[str, str]]  # a metric's name in words: its key, and how it is written

IN_NATS: Said = {
    "dual gap": ("lag", "{:.3f} nats"),
    "effective sample size": ("ess", "{:.0%} of the batch"),
    "acceptance": ("acceptance", "{:.0%}"),
}
OF_LOSS: Said = {"loss": ("loss", "{:.4g}"), "acceptance": ("acceptance", "{:.0%}")}
OF_DRAWS: Said = {**OF_LOSS, "mean f of data and of draws apart by": ("lag", "{:.3g}")}
OF_F: Said = {
    "mean f of data": ("potential_data", "{:.4g}"),
    "mean f of draws": ("potential_draws", "{:.4g}"),
    "gap in a batch": ("lag", "{:.2g}"),
    "acceptance": ("acceptance", "{:.0%}"),
}


class Health(NamedTuple):
    """A word for the run, a sentence with the evidence, and whether it is good, so-so or bad."""

    word: str
    evidence: str
    verdict: str  # good, caution or bad


def training_health(rows: Sequence[dict[str, Any]], dim: int, steps: int) -> Health:
    """The verdict on a run of so many planned steps, by its rows of metrics."""
    if not rows:
        return Health("not begun", "the run has no metrics yet", "bad")
    weighted, sampled = np.isfinite(_last(rows, "ess")), np.any(_gaps(rows))
    evidence = _evidence(rows, IN_NATS if weighted else OF_DRAWS if sampled else OF_LOSS)
    done = rows[-1]["iteration"]
    since = _since(rows, _not_finite(rows) | (_gaps(rows) > lost_from(dim)))
    if since is not None:
        return Health(f"diverging since step {since:,}", evidence, "bad")
    if (dropping := _dropping(rows, evidence)) is not None:
        return dropping
    if done < steps:
        return Health(f"stopped at step {done:,} of {steps:,}", evidence, "caution")
    lag, ess = _last(rows, "lag"), _last(rows, "ess")
    if lag > BEHIND + PER_DIMENSION * dim or ess < FEW:
        return Health("sampler behind", evidence, "caution")
    if len(rows) < FEWEST:
        return _too_short(rows, evidence)
    if np.isfinite(_series(_tail(rows), "log_likelihood")).all():
        return _by_likelihood(rows, evidence)
    return _by_loss(rows, evidence)


def lost_from(dim: int) -> float:
    """Nats by which a sampler is behind f when it has lost it."""
    return LOST + PER_DIMENSION * dim


def _too_short(rows: Sequence[dict[str, Any]], evidence: str) -> Health:
    return Health("too short to judge", f"{rows[-1]['iteration']:,} steps; {evidence}", "caution")


def _dropping(rows: Sequence[dict[str, Any]], evidence: str) -> Health | None:
    """Whether the guard was at work until the end."""
    last = rows[-max(2, len(rows) // 20) :]
    events = [event for row in last for event in row.get("events", []) if "dropped" in event]
    count = _iterations(rows, last)
    share = len({event["iteration"] for event in events}) / count
    if share <= OFTEN:
        return None
    words = f"in {share:.0%} of the last {count:,} iterations; {evidence}"
    return Health("dropping steps", words, "bad")


def _by_likelihood(rows: Sequence[dict[str, Any]], evidence: str) -> Health:
    tail = _tail(rows)
    change, noise = _trend(_series(tail, "log_likelihood"))
    noise *= t.ppf(1 - CHANCE / 2, len(tail) - 2)
    words = f"{abs(change):.3f} nats {{}} over the last {_iterations(rows, tail):,} iterations"
    if change - noise > NOTICED:
        return Health("still improving", f"{words.format('better')}; {evidence}", "caution")
    if change + noise < -NOTICED:
        return Health("getting worse", f"{words.format('worse')}; {evidence}", "caution")
    return Health("converged", evidence, "good")


def _by_loss(rows: Sequence[dict[str, Any]], evidence: str) -> Health:
    """Classical methods' losses have no common unit, and some have no minimum: that one no longer
    changes is all that can be said."""
    finite = [row for row, lost in zip(rows, _not_finite(rows), strict=True) if not lost]
    tail = _tail(finite, FEWEST_RANKED)
    if len(tail) < FEWEST_RANKED:
        return _too_short(rows, evidence)
    losses = _series(tail, "loss")
    change = losses[-1] - losses[0]
    # By ranks, since a loss that explodes is no straight line.
    drifts = kendalltau(np.arange(len(losses)), losses).pvalue < CHANCE
    if drifts and abs(change) > SHARE * np.ptp(_series(finite, "loss")):
        words = f"the loss {'fell' if change < 0 else 'rose'} by {abs(change):.3g} over the last"
        words = f"{words} {_iterations(rows, tail):,} iterations; {evidence}"
        return Health("loss still changing", words, "caution")
    return Health(f"all {rows[-1]['iteration']:,} steps done", evidence, "good")


def contest_health(rows: Sequence[dict[str, Any]], steps: int) -> Health:
    """The same of a run whose f is in no known unit: of pictures, say.

    The sampler's entropy is weighed by less than 1, so that what is fitted is not exp f: the lag is
    the gap between the mean f of data and of draws, and a gap of f is not one in nats. It can be
    held against the run's own only.
    """
    if not rows:
        return Health("not begun", "the run has no metrics yet", "bad")
    evidence = _evidence(rows, OF_F)
    done, gaps = rows[-1]["iteration"], _gaps(rows)
    since = _since(rows, _not_finite(rows))
    if since is not None:
        return Health(f"diverging since step {since:,}", evidence, "bad")
    since = _since(rows, gaps > GROWN * np.median(gaps))
    if since is not None:
        words = f"the gap is more than {GROWN:.0f} times the run's usual one; {evidence}"
        return Health(f"sampler left behind since step {since:,}", words, "bad")
    if (dropping := _dropping(rows, evidence)) is not None:
        return dropping
    if done < steps:
        words = f"by a limit on its time, or by hand: --resume goes on from there; {evidence}"
        return Health(f"stopped at step {done:,} of {steps:,}", words, "caution")
    return Health(f"all {done:,} steps done", evidence, "good")


def _evidence(rows: Sequence[dict[str, Any]], said: Said) -> str:
    parts = [
        f"{name} {text.format(_last(rows, key))}"
        for name, (key, text) in said.items()
        if np.isfinite(_last(rows, key))
    ]
    dropped = dropped_steps(rows)
    shortened = sum(event["who"] == "flow" for row in rows for event in row.get("events", []))
    parts.append(f"{dropped} step(s) dropped" if dropped else "no step dropped")
    if shortened:
        parts.append(f"flows shortened {shortened} time(s)")
    return ", ".join(parts)


def dropped_steps(rows: Sequence[dict[str, Any]]) -> int:
    """How many were not applied, since they were not finite."""
    return sum(row.get("skipped", 0) for row in rows)


def _series(rows: Sequence[dict[str, Any]], key: str) -> np.ndarray:
    return np.array([row.get(key) for row in rows], dtype=np.float64)


def _last(rows: Sequence[dict[str, Any]], key: str) -> float:
    """Over the last twentieth of the run; NaN where it was not recorded."""
    values = _series(rows, key)[-max(1, len(rows) // 20) :]
    known = values[np.isfinite(values)]
    return float(known.mean()) if known.size else float("nan")


def _gaps(rows: Sequence[dict[str, Any]]) -> np.ndarray:
    return np.nan_to_num(_series(rows, "lag"))


def _not_finite(rows: Sequence[dict[str, Any]]) -> np.ndarray:
    return ~np.isfinite(_series(rows, "loss"))


def _since(rows: Sequence[dict[str, Any]], lost: np.ndarray) -> int | None:
    """From which iteration on a run has been lost until its end."""
    if not lost[-1]:
        return None
    found = np.flatnonzero(~lost)
    return rows[found[-1] + 1 if found.size else 0]["iteration"]


def _iterations(rows: Sequence[dict[str, Any]], last: Sequence[dict[str, Any]]) -> int:
    """How many the last few of the rows are of."""
    before = rows[-len(last) - 1]["iteration"] if len(last) < len(rows) else 0
    return rows[-1]["iteration"] - before


def _tail(rows: Sequence[dict[str, Any]], fewest: int = FEWEST) -> Sequence[dict[str, Any]]:
    return rows[-max(fewest, int(TAIL * len(rows))) :]


def _trend(values: np.ndarray) -> tuple[float, float]:
    """(by how much a straight line through the values rises from end to end, its error)."""
    along = np.linspace(0.0, 1.0, len(values))
    coefficients, residuals, *_ = np.polyfit(along, values, 1, full=True)
    noise = np.sqrt(np.sum(residuals) / (len(values) - 2) / np.sum((along - along.mean()) ** 2))
    return float(coefficients[0]), float(noise)
