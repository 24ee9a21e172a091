"""The toys' results for people: the paper's table with ours beside it, then every detail."""

from collections.abc import Callable
from typing import Any

import numpy as np

from fenchel.bench.markdown import number, table
from fenchel.bench.medians import Rows, median, median_of, of_set, thousandfold
from fenchel.bench.paper_table import beside_paper
from fenchel.bench.provenance import in_words
from fenchel.bench.truth import PAPER_SIZE, SIZES

INTRODUCTION = """\
MMD is the unbiased squared one, times 1e3, with the paper's kernel. A perfect sampler's is negative
half of the time, with a spread of about 0.7 at n = 1,000; the smallest of a hundred, which is what
the paper prints, is then about -1 or less. The z-score compares the last model's MMD on fresh
points with truth against truth, as the mean over as many blocks of n points as 10,000 give: below 2
the samples of a block cannot be told from the data; a perfect sampler's single block is above 2
about once in 20. Log likelihoods are of fresh data, in nats in the data's units; those of
models without a base measure are taken within a window around the data. Everything is the median
over seeds, with a dash where one of them has no finite value."""


def as_markdown(results: dict[str, Any]) -> str:
    settings, methods = results["settings"], results["methods"]
    seeds = ", ".join(map(str, settings["seeds"]))
    parts = [
        "# The paper's Table 2",
        f"{len(settings['sets'])} sets, seeds {seeds}.\n{INTRODUCTION}",
        _overview(methods),
        "## Best epoch: MMD × 1e3",
        beside_paper(results, PAPER_SIZE),
        "## Last model: z-score of the MMD\n\nCorrected samples where the weights are exact, "
        "else the raw ones; at " + " and ".join(f"n = {n:,}" for n in SIZES) + ".",
        _side_by_side(settings["sets"], methods, _z_cell),
        "## Held-out log likelihood\n\nIn brackets, by how much the true density's is higher on "
        "the same points.",
        _side_by_side(settings["sets"], methods, _likelihood_cell, {"true density": _true_cell}),
        *[_details(name, settings["sets"], method) for name, method in methods.items()],
        "Made by `fenchel bench toys`.",
    ]
    return "\n\n".join(parts) + "\n"


def _overview(methods: dict[str, Any]) -> str:
    header = ["method", "runs", "diverged", *(f"z < 2, n = {n:,}" for n in SIZES)]
    header += [
        "worst run, nats behind the truth",
        "parameters",
        "iterations",
        "seconds, all runs",
        "seconds a run",
        "on",
    ]
    lines = []
    for name, method in methods.items():
        rows = method["runs"]
        under = [sum(below_two(best_z(row, n)) for row in rows) for n in SIZES]
        whole, each = _seconds(method)
        lines.append(
            [
                f"`{name}`",
                str(len(rows)),
                str(sum(row["diverged"] for row in rows)),
                *(f"{count} of {len(rows)}" for count in under),
                number(_worst(rows), 3),
                f"{method['parameters']:,}",
                _iterations(method),
                number(whole, 0),
                number(each, 1),
                method["provenance"]["device"],
            ]
        )
    return table(header, lines)


def _iterations(method: dict[str, Any]) -> str:
    if method["settings"] is None:
        return f"{np.median([row['epochs'] for row in method['runs']]):.0f} epochs"
    return f"{method['settings']['training']['steps']:,}"


def _seconds(method: dict[str, Any]) -> tuple[float | None, float | None]:
    """Of training after compilation: of all runs, which go at once, and their number's share."""
    if "seconds" not in method:  # one after the other
        seconds = [row["seconds"] for row in method["runs"]]
        return sum(seconds), float(np.mean(seconds))
    whole = method["seconds"]
    return whole, None if whole is None else whole / method["jobs"]


def _side_by_side(
    sets: list[str],
    methods: dict[str, Any],
    cell: Callable[[Rows], str],
    last: dict[str, Callable[[Rows], str]] | None = None,
) -> str:
    last = last or {}
    first = next(iter(methods.values()))["runs"]
    lines = [
        [
            name,
            *(cell(of_set(method["runs"], name)) for method in methods.values()),
            *(extra(of_set(first, name)) for extra in last.values()),
        ]
        for name in sets
    ]
    return table(["data", *(f"`{name}`" for name in methods), *last], lines)


def _details(name: str, sets: list[str], method: dict[str, Any]) -> str:
    rows = method["runs"]
    mmds = {"MMD, best": "best_epoch_mmd", "best, corrected": "best_epoch_mmd_corrected"}
    mmds |= {"MMD, last": "mmd_raw", "last, corrected": "mmd_corrected"}
    z = {f"z, {n:,}": f"z_{n}_raw" for n in SIZES}
    z |= {f"z, {n:,}, corrected": f"z_{n}_corrected" for n in SIZES}
    header = ["data", *mmds, *z, "log likelihood", "true", "log Z: grid - weights"]
    header += ["bracket, nats", "grid within", "diverged", "dropped steps"]
    lines = [
        [
            each,
            *(thousandfold(median(rows, each, key)) for key in mmds.values()),
            *(number(median(rows, each, key), 2) for key in z.values()),
            number(median(rows, each, "log_likelihood"), 4),
            number(median(rows, each, "true_log_likelihood"), 4),
            number(median(rows, each, "log_partition_gap"), 4),
            number(median(rows, each, "bracket_width"), 4),
            _count(rows, each, "bracketed"),
            _count(rows, each, "diverged"),
            str(sum(row.get("dropped_steps", 0) for row in of_set(rows, each))),
        ]
        for each in sets
    ]
    floor = f"noise floor {method['noise_floor']} standard deviations"
    about = f"{floor}; {in_words(method['provenance'])}."
    return f"## `{name}`\n\n{about[0].upper()}{about[1:]}\n\n{table(header, lines)}"


def _count(rows: Rows, name: str, key: str) -> str:
    """In how many runs of a set it is so."""
    found = [row.get(key) for row in of_set(rows, name)]
    return "-" if None in found else f"{sum(map(bool, found))} of {len(found)}"


def _z_cell(rows: Rows) -> str:
    medians = [median_of([best_z(row, n) for row in rows]) for n in SIZES]
    return " / ".join(number(value, 2) for value in medians)


def _likelihood_cell(rows: Rows) -> str:
    value = number(median_of([row["log_likelihood"] for row in rows]), 4)
    behind = [_difference(row["true_log_likelihood"], row["log_likelihood"]) for row in rows]
    if rows and rows[0]["true_log_likelihood"] is not None:
        value += f" ({number(median_of(behind), 4)})"
    return value


def _worst(rows: Rows) -> float | None:
    """The largest lack of held-out log likelihood, which no median shows."""
    known = [row for row in rows if row["true_log_likelihood"] is not None]
    behind = [_difference(row["true_log_likelihood"], row["log_likelihood"]) for row in known]
    measured = [nats for nats in behind if nats is not None]
    return max(measured, default=None) if len(measured) == len(known) else None


def _difference(a: float | None, b: float | None) -> float | None:
    return None if a is None or b is None else a - b


def _true_cell(rows: Rows) -> str:
    return number(median_of([row["true_log_likelihood"] for row in rows]), 4)


def best_z(row: dict[str, Any], n: int) -> float | None:
    """Of what the method hands out: corrected samples where it has them."""
    return row.get(f"z_{n}_corrected", row[f"z_{n}_raw"])


def below_two(z: float | None) -> bool:
    return z is not None and z < 2
