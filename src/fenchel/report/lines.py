"""What is said of a fit: lines that a person can read, each with its verdict."""

from typing import Any, NamedTuple


class Line(NamedTuple):
    """One thing that was looked at, and what it means."""

    name: str
    value: str
    verdict: str  # good, caution, bad, or nothing where there is none to give
    meaning: str


class Evaluation(NamedTuple):
    """All lines, the one that sums them up, and the numbers behind them."""

    verdict: Line
    lines: list[Line]
    values: dict[str, Any]
