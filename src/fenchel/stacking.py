"""Trees of one structure as one tree, their arrays stacked along a new first axis, and back."""

from collections.abc import Sequence
from typing import TypeVar

import equinox as eqx
import jax
import jax.numpy as jnp

T = TypeVar("T")


def stack(trees: Sequence[T]) -> T:
    """What is no array is taken from the first of them."""
    return jax.tree.map(lambda *xs: jnp.stack(xs) if eqx.is_array(xs[0]) else xs[0], *trees)


def unstack(tree: T, index: int | slice) -> T:
    """One of the trees that were stacked; for a slice, several of them, still stacked."""
    return jax.tree.map(lambda x: x[index] if eqx.is_array(x) else x, tree)
