"""Medians over the seeds of a set, for tables."""

from typing import Any

import numpy as np

from fenchel.bench.markdown import number

Rows = list[dict[str, Any]]


def of_set(rows: Rows, name: str) -> Rows:
    return [row for row in rows if row["set"] == name]


def median(rows: Rows, name: str, key: str) -> float | None:
    return median_of([row.get(key) for row in of_set(rows, name)])


def median_of(values: list[float | None]) -> float | None:
    """None if any is: a median without the failures would flatter."""
    if not values or any(value is None for value in values):
        return None
    return float(np.median(np.array(values, float)))


def thousandfold(value: float | None) -> str:
    return number(None if value is None else 1e3 * value, 2)
