"""Coordinates by the block, and the states that discrete ones can be in."""

from collections.abc import Sequence
from itertools import product

import jax
import jax.numpy as jnp
import numpy as np

from fenchel.errors import InputError
from fenchel.shapes import Array, Point, Points

MOST_STATES = 2**20  # of a block, before memory and patience end


def all_states(values: tuple[float, ...], size: int) -> np.ndarray:
    """Every state of `size` coordinates, one a row."""
    count = float(len(values)) ** size
    if count > MOST_STATES:
        raise InputError(
            f"{len(values)} values in {size} coordinates at once are {count:.0e} states: take "
            "smaller blocks (up to 20 coordinates of two values can be summed)."
        )
    return np.array(list(product(values, repeat=size)))


def by_size(blocks: Sequence[Sequence[int]]) -> list[Array]:
    """The blocks of each size as the rows of an array, which one scan or `vmap` can take."""
    sizes = sorted({len(block) for block in blocks})
    return [jnp.array([block for block in blocks if len(block) == size]) for size in sizes]


def replaced(x: Point, block: Array, rows: Array) -> Points:
    """x once for each row, with that row in the coordinates of the block."""
    return jax.vmap(lambda row: x.at[block].set(row))(rows)
