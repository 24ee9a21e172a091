"""Data to fit: toy distributions, tables from files, and the scaling of columns."""

from fenchel.data.checks import as_rows, as_samples, check_samples, default_columns
from fenchel.data.standardise import Standardiser
from fenchel.data.tables import Samples, load_rows, load_samples, read_table
from fenchel.data.toys import TOYS, Toy, toy

__all__ = [
    "TOYS",
    "Samples",
    "Standardiser",
    "Toy",
    "as_rows",
    "as_samples",
    "check_samples",
    "default_columns",
    "load_rows",
    "load_samples",
    "read_table",
    "toy",
]
