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


class Health(NamedTuple):
    """A word for the run, a sentence with the evidence, and whether it is good, so-so or bad."""

    word: str
    evidence: str
    verdict: str  # good, caution or bad


def training_health(rows: Sequence[dict[str, Any]], dim: int, steps: int) -> Health:
    """The verdict on a run of so many planned steps, by its rows of metrics."""
    if not rows:
        return Health("not begun", "the run has no metrics yet", "bad")
    evidence = _evidence(rows)
    done = rows[-1]["iteration"]
    since = _lost_since(rows)
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


def _evidence(rows: Sequence[dict[str, Any]]) -> str:
    said = {
        "dual gap": ("lag", "{:.3f} nats"),
        "effective sample size": ("ess", "{:.0%} of the batch"),
        "acceptance": ("acceptance", "{:.0%}"),
    }
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


def _lost_since(rows: Sequence[dict[str, Any]]) -> int | None:
    """From which iteration on the sampler has been lost, or nothing was finite, until the end."""
    lag, loss = _series(rows, "lag"), _series(rows, "loss")
    lost = ~np.isfinite(loss) | (np.nan_to_num(lag) > LOST)
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
