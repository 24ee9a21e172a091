"""The paper's Table 2 with ours beside it, and what its protocol makes of a perfect sampler."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from fenchel.bench.markdown import number, table
from fenchel.bench.medians import Rows, median_of, of_set, thousandfold
from fenchel.bench.paper import TABLE_2
from fenchel.bench.presets import PRESETS
from fenchel.drawing import POOL

OURS, PAPERS = "ade", "ADE"
TABLES, SEED = 10_000, 8_000_009  # simulated, of a perfect sampler

PROTOCOL = """\
The smallest MMD of a hundred looks, each at {points:,} new samples, against the same {points:,}
held-out points. These are the paper's too: its generators give every arm, circle or blade an equal
share and place circles and moons on a grid, which lowers the values of those sets by itself. Where
the weights are exact the samples are those that the method hands out, chosen by weight from a pool
of {pool:,}. `truth` is what the protocol makes of the true distribution, mean and spread over
{protocols} sets of held-out points; `chance` is how often the median over the seeds of a perfect
sampler, drawn from these, is below the paper's ADE."""


def beside_paper(results: dict[str, Any], points: int) -> str:
    """The table with what is to be known about it."""
    settings, truth = results["settings"], results["truth"]
    methods = {name: each for name, each in results["methods"].items() if name in PRESETS}
    of_truth = {name: truth[name]["best"] for name in settings["sets"]}
    below = perfect_below(of_truth, len(settings["seeds"]))
    header = ["data"]
    for name in methods:
        header += [f"{PRESETS[name].column}, paper", f"`{name}`"]
    lines = [_line(name, methods, values, below.get(name)) for name, values in of_truth.items()]
    protocols = len(next(iter(of_truth.values())))
    about = PROTOCOL.format(points=points, pool=POOL * points, protocols=protocols)
    parts = [about, table([*header, "truth", "chance"], lines)]
    if below:
        parts.append(_sentences(below, methods))
    return "\n\n".join(parts)


def perfect_below(of_truth: dict[str, Sequence[float]], seeds: int) -> dict[str, np.ndarray]:
    """For each of the paper's sets, in which simulated tables a perfect sampler is below its ADE.

    Of so many seeds, each with held-out points of its own, the median counts, as it does for all.
    """
    rng = np.random.default_rng(SEED)
    medians = {
        name: np.median(rng.choice(values, (TABLES, seeds)), axis=1)
        for name, values in of_truth.items()
        if name in TABLE_2
    }
    return {name: 1e3 * found < TABLE_2[name][PAPERS] for name, found in medians.items()}


def best_epoch(rows: Rows, name: str, corrected: bool) -> float | None:
    """The median over seeds; of corrected samples where a method has them, or of the raw ones."""
    raw = "best_epoch_mmd"
    key = f"{raw}_corrected" if corrected else raw
    return median_of([row.get(key, row[raw]) for row in of_set(rows, name)])


def _line(
    name: str,
    methods: dict[str, Any],
    of_truth: Sequence[float],
    below: np.ndarray | None,
) -> list[str]:
    cells = [name]
    for method, results in methods.items():
        cells.append(number(TABLE_2.get(name, {}).get(PRESETS[method].column), 2))
        cells.append(thousandfold(best_epoch(results["runs"], name, corrected=True)))
    mean, spread = float(np.mean(of_truth)), float(np.std(of_truth, ddof=1))
    cells.append(f"{thousandfold(mean)} ± {thousandfold(spread)}")
    return [*cells, "-" if below is None else f"{below.mean():.1f}"]


def _sentences(below: dict[str, np.ndarray], methods: dict[str, Any]) -> str:
    tables = np.array(list(below.values()))
    sets = "1 set" if len(below) == 1 else f"{len(below)} sets"
    text = (
        f"On {sets}, a perfect sampler is below the paper's {PAPERS} on "
        f"{tables.sum(axis=0).mean():.1f} on average, and on all of them in "
        f"{tables.all(axis=0).mean():.1%} of {TABLES:,} simulated tables."
    )
    if OURS not in methods:
        return text
    rows = methods[OURS]["runs"]
    own, raw = (sum(_is_below(rows, name, kind) for name in below) for kind in (True, False))
    return f"{text} `{OURS}` is below it on {own}, and with raw samples on {raw}."


def _is_below(rows: Rows, name: str, corrected: bool) -> bool:
    value = best_epoch(rows, name, corrected)
    return value is not None and 1e3 * value < TABLE_2[name][PAPERS]
