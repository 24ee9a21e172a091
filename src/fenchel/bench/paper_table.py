"""The paper's Table 2 with ours beside it, and what its protocol makes of a perfect sampler."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from scipy.stats import binom, norm

from fenchel.bench.markdown import number, table
from fenchel.bench.medians import median_of, of_set, thousandfold
from fenchel.bench.paper import COLUMNS, TABLE_2
from fenchel.bench.presets import PRESETS

OURS, PAPERS = "ade", COLUMNS[-1]  # whose figures the paper's best are compared with

PROTOCOL = """\
The smallest MMD of a hundred looks, each at {points:,} new samples, against the same {points:,}
held-out points. These are the paper's too: its generators give every arm, circle or blade an equal
share and place circles and moons on a grid, which lowers the values of those sets by itself.
Corrected samples where the weights are exact, else the raw ones. `truth` is what the protocol makes
of the true distribution, mean and spread over its held-out points; the last column is the chance
that a perfect sampler's median over the seeds is below the best of the paper's columns, ADE's."""


def beside_paper(results: dict[str, Any], points: int) -> str:
    """The table with what is to be known about it."""
    sets, seeds = results["settings"]["sets"], results["settings"]["seeds"]
    methods = {name: each for name, each in results["methods"].items() if name in PRESETS}
    lines = [_line(name, methods, results["truth"][name]["best"], len(seeds)) for name in sets]
    header = ["data"]
    for name in methods:
        header += [f"{PRESETS[name].column}, paper", f"`{name}`"]
    parts = [PROTOCOL.format(points=points), table([*header, "truth", "chance"], lines)]
    known = [name for name in sets if name in TABLE_2]
    if known:
        parts.append(_sentence(known, results))
    return "\n\n".join(parts)


def chance_below(figure: float, of_truth: Sequence[float], seeds: int) -> float:
    """That a perfect sampler's median over so many seeds, each with its own held-out points, is
    below a figure; by the normal distribution that has the mean and spread seen of one."""
    once = norm.cdf(figure / 1e3, np.mean(of_truth), np.std(of_truth, ddof=1))
    return float(binom.sf(seeds // 2, seeds, once))


def _line(name: str, methods: dict[str, Any], of_truth: Sequence[float], seeds: int) -> list[str]:
    cells = [name]
    for method, results in methods.items():
        figure = TABLE_2.get(name, {}).get(PRESETS[method].column)
        cells += [number(figure, 2), thousandfold(best_epoch(results["runs"], name))]
    spread = thousandfold(float(np.std(of_truth, ddof=1)))
    cells.append(f"{thousandfold(float(np.mean(of_truth)))} ± {spread}")
    paper = TABLE_2.get(name, {}).get(PAPERS)
    return [*cells, "-" if paper is None else f"{chance_below(paper, of_truth, seeds):.2f}"]


def best_epoch(rows: list[dict[str, Any]], name: str) -> float | None:
    """Of what the method hands out: corrected samples where it has them."""
    kept = [
        row.get("best_epoch_mmd_corrected", row["best_epoch_mmd"]) for row in of_set(rows, name)
    ]
    return median_of(kept)


def _sentence(known: list[str], results: dict[str, Any]) -> str:
    seeds = len(results["settings"]["seeds"])
    chances = [
        chance_below(TABLE_2[name][PAPERS], results["truth"][name]["best"], seeds) for name in known
    ]
    perfect = (
        f"A perfect sampler would be below the paper's {PAPERS} on {sum(chances):.1f} of these "
        f"{len(known)} sets on average, and on all of them with a chance of "
        f"{float(np.prod(chances)):.2g}."
    )
    if OURS not in results["methods"]:
        return perfect
    runs = results["methods"][OURS]["runs"]
    below = [name for name in known if _is_below(best_epoch(runs, name), TABLE_2[name][PAPERS])]
    return f"`{OURS}` is below it on {len(below)}. {perfect}"


def _is_below(value: float | None, figure: float) -> bool:
    return value is not None and 1e3 * value < figure
