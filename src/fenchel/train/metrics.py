"""A block of iterations as a row of a run's metrics."""

from typing import Any

import numpy as np

from fenchel.dynamics import step_sizes
from fenchel.train.loop import Block
from fenchel.train.state import Info


def metrics_row(block: Block, weighted: bool, seconds: float) -> dict[str, Any]:
    """A block's health as one row of metrics: means over its iterations, and its events.

    `weighted`: whether draws have weights that mean something, those of what is fitted.
    """
    info, length = block.info, len(block.info.ess)
    row: dict[str, Any] = {"iteration": block.iteration}
    averaged = ("loss", "acceptance", "lag", "trust", "strain")
    norms = ("potential_grad_norm", "sampler_grad_norm")
    energies = ("potential_data", "potential_draws")
    of_density = ("log_likelihood", "log_partition", "log_partition_lower", "ess")
    for name in (*averaged, *norms, *energies, *of_density):
        row[name] = _mean(getattr(info, name))
    row["objective"] = row["log_likelihood"]  # what f ascends, be it a likelihood or not
    if not weighted:  # better no figure than a wrong one
        row |= dict.fromkeys(of_density)
    sizes = step_sizes(block.state.sampler)
    row["step_size"] = float(np.exp(np.mean(np.log(sizes)))) if sizes.size else None
    row["potential_rate"] = float(info.potential_rate[-1])
    row["sampler_rate"] = float(info.sampler_rate[-1])
    row["iterations_per_second"] = length / seconds
    row["events"] = _events(info, block.iteration - length)
    row["skipped"] = sum(event.get("dropped", 0) for event in row["events"])
    return row


def _mean(values: np.ndarray) -> float | None:
    finite = values[np.isfinite(values)]
    return float(finite.mean()) if finite.size else None


def _events(info: Info, first: int) -> list[dict[str, Any]]:
    """One event for each iteration in which the guard dropped a step of the potential's or the
    sampler's, or the steps of flows were shortened."""
    events: list[dict[str, Any]] = []
    for who in ("potential", "sampler"):
        dropped, rate = getattr(info, f"dropped_{who}"), getattr(info, f"{who}_rate")
        for index in np.flatnonzero(dropped):
            when, how_many = first + int(index) + 1, int(dropped[index])
            how = {"dropped": how_many, "learning_rate": float(rate[index])}
            events.append({"iteration": when, "who": who, **how})
    for index in np.flatnonzero(info.shortened):
        strain, when = float(info.strain[index]), first + int(index) + 1
        events.append({"iteration": when, "who": "flow", "strain": strain})
    return sorted(events, key=lambda event: event["iteration"])
