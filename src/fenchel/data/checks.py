"""What data must be before anything is fitted to it: a finite (n, d) table that varies."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike, NDArray

from fenchel.errors import InputError

_KINDS = {"U": "text", "S": "text", "M": "dates", "m": "times", "V": "records", "O": "objects"}


def default_columns(count: int) -> tuple[str, ...]:
    """x1, x2, ...: the names of columns that came without any."""
    return tuple(f"x{j + 1}" for j in range(count))


def as_samples(x: ArrayLike) -> NDArray[np.float64]:
    """Any array-like as a checked (n, d) float64 array; one dimension becomes one column."""
    samples = to_table(x, "The data")
    check_samples(samples, "The data")
    return samples


def as_rows(x: ArrayLike) -> NDArray[np.float64]:
    """Any array-like as rows to evaluate a model at: finite, but they need not vary."""
    rows = to_table(x, "The data")
    check_rows(rows, "The data")
    return rows


def to_table(x: ArrayLike, name: str) -> NDArray[np.float64]:
    """`x` in two dimensions and float64, or an InputError about its shape or its type."""
    array = _as_array(x, name)
    if array.dtype.kind == "c":
        raise InputError(
            f"{name} is complex; give its real and imaginary parts as columns of their own."
        )
    if array.dtype.kind not in "biuf":
        what = _KINDS.get(array.dtype.kind, str(array.dtype))
        raise InputError(f"{name} holds {what}; convert every entry to a number.")
    if array.ndim not in (1, 2):
        raise InputError(_wrong_dimensions(array, name))
    return array.reshape(len(array), -1).astype(np.float64) if array.size else _empty(array)


def check_samples(x: NDArray, name: str, columns: Sequence[str] | None = None) -> None:
    """Raise an InputError unless the (n, d) table `x` can be fitted; `name` begins the message."""
    if len(x) == 1:
        raise InputError(f"{name} has a single row; at least two are needed.")
    check_rows(x, name, columns)
    _check_varies(x, name, columns or default_columns(x.shape[1]))
    _check_range(x, name, columns or default_columns(x.shape[1]))


def check_rows(x: NDArray, name: str, columns: Sequence[str] | None = None) -> None:
    """Raise an InputError unless a model can be evaluated at every row of `x`."""
    if x.size == 0:
        raise InputError(f"{name} is empty; at least two rows and one column are needed.")
    _check_finite(x, name, columns or default_columns(x.shape[1]))


def _as_array(x: ArrayLike, name: str) -> NDArray:
    if isinstance(x, np.ma.MaskedArray):
        # A plain conversion would bring the masked values back.
        return np.ma.filled(x.astype(np.float64), np.nan)
    return rectangular(x, name, "make its rows equally long")


def rectangular(x: ArrayLike, name: str, cure: str) -> NDArray:
    """`x` as an array, or an InputError that says what to do about it."""
    try:
        return np.asarray(x)
    except ValueError as error:
        raise InputError(f"{name} is not a rectangular array; {cure}.") from error


def _wrong_dimensions(array: NDArray, name: str) -> str:
    if array.ndim == 0:
        return f"{name} is a single number; give one row for each example."
    return (
        f"{name} has {array.ndim} dimensions, {array.shape}; flatten each example first, as in "
        "x.reshape(len(x), -1), or, if they are pictures, choose settings for those, as --preset "
        "mnist."
    )


def _empty(array: NDArray) -> NDArray[np.float64]:
    # reshape(0, -1) is ambiguous, so an empty table is made rather than reshaped.
    return np.empty((len(array), array.shape[1] if array.ndim == 2 else 1))


def _check_finite(x: NDArray, name: str, columns: Sequence[str]) -> None:
    bad = ~np.isfinite(x)
    if not bad.any():
        return
    row, column = (int(index) for index in np.argwhere(bad)[0])
    value = x[row, column]
    what = "is missing (empty or NaN)" if np.isnan(value) else f"is infinite ({value})"
    count = int(bad.any(axis=1).sum())
    rows = "the row" if count == 1 else f"the {count} such rows"
    raise InputError(
        f"{name}: row {row + 1} of column {columns[column]!r} {what}; "
        f"drop {rows} or fill in numbers."
    )


def _check_varies(x: NDArray, name: str, columns: Sequence[str]) -> None:
    constant = [columns[j] for j in np.flatnonzero(x.min(axis=0) == x.max(axis=0)).tolist()]
    if not constant:
        return
    subject, verb, them = (
        ("column", "is", "it") if len(constant) == 1 else ("columns", "are", "them")
    )
    names = ", ".join(map(repr, constant))
    raise InputError(
        f"{name}: {subject} {names} {verb} constant, so no density exists; drop {them}."
    )


def _check_range(x: NDArray, name: str, columns: Sequence[str]) -> None:
    with np.errstate(over="ignore"):
        wide = ~np.isfinite(x.max(axis=0) - x.min(axis=0))
    if wide.any():
        column = int(np.argmax(wide))
        low, high = x[:, column].min(), x[:, column].max()
        raise InputError(
            f"{name}: column {columns[column]!r} runs from {low:.3g} to {high:.3g}, too far for "
            "its differences to be numbers; divide it by something."
        )
