"""What points must be before they are compared: finite (n, d) arrays with the same columns."""

import numpy as np

from fenchel.errors import InputError

LARGEST = 1e15  # in single precision squares end at 3e38


def checked_points(points: np.ndarray, name: str) -> np.ndarray:
    """`points` in 64 bits, or an InputError that calls them `name`."""
    points = np.asarray(points, dtype=np.float64)
    if points.ndim != 2 or len(points) < 2 or points.shape[1] == 0:
        raise InputError(
            f"{name} has shape {points.shape}: give an (n, d) array of at least two points."
        )
    if not np.isfinite(points).all():
        raise InputError(f"{name} has values that are not finite: drop those points first.")
    if (largest := np.abs(points).max()) > LARGEST:
        raise InputError(
            f"{name} reaches {largest:.2g}, whose squares are too large to compute with: scale the "
            "points, as to a standard deviation of 1."
        )
    return points


def checked_pair(
    first: np.ndarray, second: np.ndarray, names: tuple[str, str]
) -> tuple[np.ndarray, np.ndarray]:
    """Both in 64 bits, or an InputError: also where their columns are not as many."""
    first, second = checked_points(first, names[0]), checked_points(second, names[1])
    if first.shape[1] != second.shape[1]:
        raise InputError(
            f"The points of {names[0]} have {first.shape[1]} columns and those of {names[1]} have "
            f"{second.shape[1]}: give both the same columns."
        )
    return first, second


def check_at_least(count: int, least: int, name: str) -> None:
    """Raise an InputError unless the number `count` of a resampling is large enough."""
    if count < least:
        raise InputError(f"{name} is {count}: give at least {least}.")
