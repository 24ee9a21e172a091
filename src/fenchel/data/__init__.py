"""Data to fit: toy distributions, tables and pictures from files, and the scaling of columns."""

from fenchel.data.checks import as_rows, as_samples, check_samples, default_columns
from fenchel.data.masks import HALVES, as_mask, half_mask, load_mask
from fenchel.data.pictures import (
    Pictures,
    check_pictures,
    load_part,
    load_pictures,
    parts_of,
    require_shape,
)
from fenchel.data.standardise import Standardiser
from fenchel.data.tables import Samples, load_rows, load_samples, read_table
from fenchel.data.toys import TOYS, Toy, toy

__all__ = [
    "HALVES",
    "TOYS",
    "Pictures",
    "Samples",
    "Standardiser",
    "Toy",
    "as_mask",
    "as_rows",
    "as_samples",
    "check_pictures",
    "check_samples",
    "default_columns",
    "half_mask",
    "load_mask",
    "load_part",
    "load_pictures",
    "load_rows",
    "load_samples",
    "parts_of",
    "read_table",
    "require_shape",
    "toy",
]
