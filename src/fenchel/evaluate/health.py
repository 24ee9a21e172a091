"""How training went, in one line with its evidence, from the metrics that a run writes."""

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

LOST = 5.0  # nats: a sampler that is farther behind has lost its model
BEHIND = 1.0  # nats, beyond what the dimension allows, from which on a sampler is behind
PER_DIMENSION = 0.05
FEW = 0.1  # effective sample size, as a share of the batch
TAIL = 0.2  # of the run, in which it should no longer improve
NOTICED = 0.02  # nats in that part of it
GROWN = 10.0  # times the run's usual gap, from which on f has left its sampler behind

Said = dict[str, tuple[str, str]]  # a metric's name in words: its key, and how it is written

IN_NATS: Said = {
    "dual gap": ("lag", "{:.3f} nats"),
    "effective sample size": ("ess", "{:.0%} of the batch"),
    "acceptance": ("acceptance", "{:.0%}"),
}
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
    evidence = _evidence(rows, IN_NATS)
    done = rows[-1]["iteration"]
    since = _since(rows, _not_finite(rows) | (_gaps(rows) > LOST))
    if since is not None:
        return Health(f"diverging since step {since:,}", evidence, "bad")
    if done < steps:
        return Health(f"stopped at step {done:,} of {steps:,}", evidence, "caution")
    lag, ess = _last(rows, "lag"), _last(rows, "ess")
    if lag > BEHIND + PER_DIMENSION * dim or ess < FEW:
        return Health("sampler behind", evidence, "caution")
    gained = _gain(rows)
    if gained > NOTICED:
        words = f"{gained:.3f} nats better over the last fifth; {evidence}"
        return Health("still improving", words, "caution")
    return Health("converged", evidence, "good")


def contest_health(rows: Sequence[dict[str, Any]], steps: int) -> Health:
    """The same of a run whose f is in no known unit: of pictures, say.

    Its sampler has no exact density, so that the lag is the gap between the mean f of data and of
    draws; and its entropy is weighed by less than 1, so that a gap of f is not one in nats. A gap
    can be held against the run's own only.
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
    dropped = sum(row.get("skipped", 0) for row in rows)
    shortened = sum(event["who"] == "flow" for row in rows for event in row.get("events", []))
    parts.append(f"{dropped} step(s) dropped" if dropped else "no step dropped")
    if shortened:
        parts.append(f"flows shortened {shortened} time(s)")
    return ", ".join(parts)


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


def _gain(rows: Sequence[dict[str, Any]]) -> float:
    """Nats gained over the last fifth, as far as they stand out of the noise: slope less 2 errors.

    Of the likelihood, where there is one; the losses of classical methods have no common unit.
    """
    tail = rows[-max(4, int(TAIL * len(rows))) :]
    values = _series(tail, "log_likelihood")
    if len(tail) < 4 or not np.isfinite(values).all():
        return 0.0
    steps = np.linspace(0.0, 1.0, len(values))
    coefficients, residuals, *_ = np.polyfit(steps, values, 1, full=True)
    noise = np.sqrt(np.sum(residuals) / (len(values) - 2) / np.sum((steps - steps.mean()) ** 2))
    return float(coefficients[0] - 2 * noise)
