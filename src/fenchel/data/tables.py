"""Data from files, arrays and toys' names, checked and ready to be fitted.

Nothing is ever unpickled: a file of somebody else's is data, and must not be able to run code.
"""

import hashlib
import zipfile
from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from fenchel.data.checks import check_rows, check_samples, default_columns, to_table
from fenchel.data.csv_table import not_numeric, read_csv
from fenchel.data.reading import names_in, parsing, read_array, read_member
from fenchel.data.toys import TOYS, Toy, nearest_toy, toy
from fenchel.errors import InputError

Columns = tuple[str, ...]
Check = Callable[[NDArray, str, Columns | None], None]
DEFAULT_SIZE = 50_000

_NPZ_NAMES = ("x", "x_train", "data")


@dataclass(frozen=True, eq=False)
class Samples:
    """Checked data (n, d), where it came from, and what its columns are called."""

    x: NDArray[np.float64]
    name: str
    toy: Toy | None
    columns: Columns

    def fingerprint(self) -> dict[str, Any]:
        """Enough of the data to notice when they are not the same, whatever they are called."""
        return {
            "name": self.name,
            "rows": self.x.shape[0],
            "columns": list(self.columns),
            "sha256": hashlib.sha256(np.ascontiguousarray(self.x).data).hexdigest(),
        }

    def in_order(self, columns: Columns) -> NDArray[np.float64]:
        """The table with its columns in this order; as it is where either has no names."""
        if sorted(self.columns) == sorted(columns):
            return self.x[:, [self.columns.index(name) for name in columns]]
        if default_columns(len(columns)) in (columns, self.columns):
            return self.x
        raise InputError(
            f"The model was fitted to the columns {_listed(columns)} and these are "
            f"{_listed(self.columns)}: give those, or a file whose columns have no names."
        )


def load_samples(
    source: ArrayLike | str | Path, *, size: int = DEFAULT_SIZE, seed: int = 0
) -> Samples:
    """Samples to fit, from an array, a file's path, or a toy's name.

    `size` and `seed` say how many points of a toy are drawn, and which; files and arrays are taken
    whole. A toy's exact name means the toy; a file so called is reached as "./name".
    """
    return _load(source, size, seed, check_samples)


def load_rows(
    source: ArrayLike | str | Path, *, size: int = DEFAULT_SIZE, seed: int = 0
) -> Samples:
    """Rows to evaluate a model at: as `load_samples`, but they need not vary."""
    return _load(source, size, seed, check_rows)


def _load(source: ArrayLike | str | Path, size: int, seed: int, check: Check) -> Samples:
    if isinstance(source, str) and source in TOYS:
        drawn = toy(source).sample(size, seed)
        check(drawn, source, None)
        return Samples(drawn, source, TOYS[source], default_columns(2))
    if isinstance(source, str | Path):
        path = _existing(source)
        x, columns = _read(path, check)
        return Samples(x, path.stem, None, columns)
    x = to_table(source, "The data")
    columns = _columns_of(source, x.shape[1])
    _check_names(columns, "The data")
    check(x, "The data", columns)
    return Samples(x, "array", None, columns)


def read_table(source: str | Path) -> NDArray[np.float64]:
    """The table in a .npy, .npz, .csv or .parquet file, as a checked (n, d) float64 array."""
    return _read(Path(source), check_samples)[0]


def _check_names(columns: Columns, name: str) -> None:
    seen: set[str] = set()
    for column in columns:
        if column in seen:
            raise InputError(f"{name} has two columns called {column!r}: rename one of them.")
        seen.add(column)


def _listed(columns: Columns) -> str:
    return ", ".join(map(repr, columns))


def _existing(source: str | Path) -> Path:
    path = Path(source)
    if isinstance(source, Path) or path.exists() or path.suffix.lower() in _READERS:
        return path
    nearest = nearest_toy(source)
    cure = f"did you mean {nearest!r}?" if nearest else f"the toys are {', '.join(TOYS)}."
    raise InputError(f"{source!r} is neither a toy data set nor an existing file; {cure}")


def _columns_of(source: object, count: int) -> Columns:
    """A data frame's own column names, or x1, x2, ..."""
    names = getattr(source, "columns", None)
    return default_columns(count) if names is None else tuple(str(name) for name in names)


def _read(path: Path, check: Check) -> tuple[NDArray[np.float64], Columns]:
    if not path.exists():
        raise InputError(f"{path} does not exist; check the path.")
    if not path.is_file():
        raise InputError(f"{path} is not a file; give the path of one.")
    reader = _READERS.get(path.suffix.lower())
    if reader is None:
        kind = f"ends in {path.suffix!r}" if path.suffix else "has no extension"
        raise InputError(f"{path} {kind}; the known ones are {', '.join(_READERS)}.")
    try:
        x, columns = reader(path)
    except OSError as error:
        raise InputError(f"{path} cannot be read ({error.strerror or error}).") from error
    _check_names(columns, str(path))
    check(x, str(path), columns)
    return x, columns


def _parsing(path: Path) -> AbstractContextManager[None]:
    kind = path.suffix.lower()
    return parsing(path, f"is damaged or not a {kind} file; save it again as {kind}.")


def _read_npy(path: Path) -> tuple[NDArray[np.float64], Columns]:
    with _parsing(path), path.open("rb") as file:
        array = read_array(file)
    return _with_default_columns(array, str(path))


def _read_npz(path: Path) -> tuple[NDArray[np.float64], Columns]:
    with _parsing(path), zipfile.ZipFile(path) as archive:
        chosen = _chosen_array(path, names_in(archive))
        array = read_member(archive, chosen)
    return _with_default_columns(array, f"{path}, array {chosen!r},")


def _chosen_array(path: Path, names: list[str]) -> str:
    preferred = [name for name in _NPZ_NAMES if name in names]
    if preferred:
        return preferred[0]
    if len(names) == 1:
        return names[0]
    held = f"the arrays {', '.join(names)}" if names else "no arrays"
    raise InputError(f"{path} holds {held}; name the one to fit {_NPZ_NAMES[0]!r}.")


def _with_default_columns(array: NDArray, name: str) -> tuple[NDArray[np.float64], Columns]:
    table = to_table(array, name)
    return table, default_columns(table.shape[1])


def _read_parquet(path: Path) -> tuple[NDArray[np.float64], Columns]:
    try:
        from pyarrow import parquet
    except ImportError as error:
        raise InputError(
            f"Reading {path} needs pyarrow; install it with pip install 'fenchel[parquet]'."
        ) from error
    # An open file, since a path would have pyarrow look for partitions in the folders' names.
    with _parsing(path), path.open("rb") as file:
        table = parquet.read_table(file)
    return _arrow_numbers(table, path), tuple(table.column_names)


def _arrow_numbers(table, path: Path) -> NDArray[np.float64]:
    import pyarrow as pa

    def numeric(kind) -> bool:
        number = (
            pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_decimal(kind)
        )
        return number or pa.types.is_boolean(kind) or pa.types.is_null(kind)

    bad = [field.name for field in table.schema if not numeric(field.type)]
    if bad:
        raise not_numeric(path, bad)
    # Arrow turns nulls into NaN; a "safe" cast would refuse integers that float64 must round.
    columns = [column.cast(pa.float64(), safe=False).to_numpy() for column in table.columns]
    return np.column_stack(columns) if columns else np.empty((table.num_rows, 0))


_READERS: dict[str, Callable[[Path], tuple[NDArray[np.float64], Columns]]] = {
    ".npy": _read_npy,
    ".npz": _read_npz,
    ".csv": read_csv,
    ".parquet": _read_parquet,
}
