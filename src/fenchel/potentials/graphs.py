"""Graphs as lists of edges, for models whose variables sit on them."""

from collections.abc import Sequence
from itertools import combinations

import numpy as np

from fenchel.errors import InputError


def complete(dim: int) -> np.ndarray:
    """Every pair."""
    return np.array(list(combinations(range(dim), 2)), np.int32).reshape(-1, 2)


def chain(dim: int) -> np.ndarray:
    """Each with the next."""
    return np.stack([np.arange(dim - 1), np.arange(1, dim)], axis=1).astype(np.int32)


def grid(rows: int, columns: int) -> np.ndarray:
    """Neighbours on a grid whose places are numbered row by row."""
    place = np.arange(rows * columns).reshape(rows, columns)
    across = np.stack([place[:, :-1].ravel(), place[:, 1:].ravel()], axis=1)
    down = np.stack([place[:-1].ravel(), place[1:].ravel()], axis=1)
    return np.concatenate([across, down]).astype(np.int32)


def checked(edges: Sequence[Sequence[int]] | np.ndarray, dim: int) -> np.ndarray:
    """Edges as an array of pairs, or an error that says which is wrong."""
    pairs = np.asarray(edges, np.int32).reshape(-1, 2)
    for a, b in pairs:
        if not (0 <= a < dim and 0 <= b < dim and a != b):
            raise InputError(
                f"The edge ({a}, {b}) does not join two of the {dim} variables, which are numbered "
                f"from 0 to {dim - 1}."
            )
    if len({frozenset(pair) for pair in pairs.tolist()}) < len(pairs):
        raise InputError("The graph has an edge twice: name each pair once.")
    return pairs
