"""Reading a csv file into numbers, or saying which line or column is none."""

import csv
import io
import re
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from fenchel.data.checks import default_columns
from fenchel.errors import InputError

# In this order where several fit: a comma may also be part of a number or of a name.
_DELIMITERS = ("\t", ";", ",")
_MISSING = {"", "na", "n/a", "nan", "null", "none", "?"}


def read_csv(path: Path) -> tuple[NDArray[np.float64], tuple[str, ...]]:
    """The numbers of a csv file and its column names; missing entries become NaN."""
    rows = _rows(path)
    if not rows:
        raise InputError(f"{path} is empty; at least two rows of numbers are needed.")
    columns = default_columns(len(rows[0]))
    if _is_header(rows[0]):
        header = rows.pop(0)
        columns = tuple(name.strip() or f"unnamed {index}" for index, name in enumerate(header, 1))
    return _numbers(rows, columns, path), columns


def not_numeric(path: Path, columns: list[str]) -> InputError:
    """The error for columns that hold something else than numbers."""
    subject, them = ("column", "it") if len(columns) == 1 else ("columns", "them")
    names = ", ".join(map(repr, columns))
    return InputError(
        f"{path}: not every entry of {subject} {names} is a number; drop or encode {them}."
    )


def _explain(rows: list[list[str]], path: Path) -> None:
    """Refuse what is numbers indeed, but not written as they are here."""
    for entry in (entry for row in rows for entry in row):
        if re.fullmatch(r"\s*[+-]?\d+(,\d+)+(\.\d+)?\s*", entry):
            raise InputError(
                f"{path} has commas within numbers, as in {entry.strip()!r}; write decimal points, "
                "and nothing between thousands."
            )
        words = entry.split()
        if len(rows[0]) == 1 and len(words) > 1 and all(map(_is_number, words)):
            raise InputError(
                f"{path} has several numbers in one entry, {entry.strip()!r}; put commas, "
                "semicolons or tabs between them."
            )


def _rows(path: Path) -> list[list[str]]:
    text = _text(path)
    reader = csv.reader(io.StringIO(text), delimiter=_delimiter(text))
    rows: list[list[str]] = []
    try:
        for row in reader:
            if not row or row == [""]:
                continue
            if rows and len(row) != len(rows[0]):
                raise InputError(
                    f"{path}: line {reader.line_num} has another number of entries "
                    f"({len(row)}) than the first line ({len(rows[0])}); mend that line."
                )
            rows.append(row)
    except csv.Error as error:
        raise InputError(f"{path} is not a csv file ({error}); save it again as csv.") from error
    return rows


def _text(path: Path) -> str:
    try:
        text = path.read_text(encoding="utf-8-sig")
    except UnicodeDecodeError:
        text = "\0"
    if "\0" in text:  # no csv has one, nearly every binary format does
        raise InputError(f"{path} is not a csv file in UTF-8 text; save it again as one.")
    return text


def _delimiter(text: str) -> str:
    first_line = next((line for line in text.splitlines() if line.strip()), "")
    return max(_DELIMITERS, key=re.sub(r'"[^"]*"', "", first_line).count)


def _is_header(row: list[str]) -> bool:
    return any(_number(entry) is None for entry in row)


def _number(entry: str) -> float | None:
    """The entry's value, NaN where it is marked as missing, None where it is no number."""
    if entry.strip().lower() in _MISSING:
        return float("nan")
    try:
        return float(entry)
    except ValueError:
        return None


def _is_number(word: str) -> bool:
    value = _number(word)
    return value is not None and not np.isnan(value)


def _numbers(rows: list[list[str]], columns: tuple[str, ...], path: Path) -> NDArray[np.float64]:
    try:
        # numpy parses a table of clean numbers many times faster than one entry at a time.
        return np.array(rows, dtype=np.float64).reshape(len(rows), len(columns))
    except ValueError:
        table = [[_number(entry) for entry in row] for row in rows]
    _explain(rows, path)
    bad = [
        name
        for name, column in zip(columns, zip(*table, strict=True), strict=True)
        if None in column
    ]
    if bad:
        raise not_numeric(path, bad)
    return np.array(table, dtype=np.float64)
