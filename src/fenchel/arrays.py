"""The arrays of a module as a flat table of names, and back: the form in which they are stored."""

from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from fenchel.errors import InputError
from fenchel.shapes import PyTree


def to_table(tree: PyTree) -> dict[str, np.ndarray]:
    """Every array by its path in the tree; a random key by its data.

    Arrays without elements (a momentum of no dimensions) hold nothing, and no format likes them.
    """
    table = {}
    for path, leaf in jax.tree_util.tree_leaves_with_path(tree):
        if _holds_numbers(leaf):
            table[jax.tree_util.keystr(path)] = np.asarray(_plain(leaf))
    return table


def from_table(table: dict[str, np.ndarray], like: PyTree, source: str) -> PyTree:
    """A tree of the shape of `like` with the table's arrays; they must fit one another exactly."""
    wanted = to_table(like)
    if wanted.keys() != table.keys():
        odd = sorted(wanted.keys() ^ table.keys())[0]
        raise InputError(
            f"{source} does not hold the arrays of this model ({odd} is on one side only): "
            "it was saved from another model, or is damaged."
        )

    def restored(path, leaf):
        if not _holds_numbers(leaf):
            return leaf
        name = jax.tree_util.keystr(path)
        value, expected = table[name], wanted[name]
        if value.shape != expected.shape or value.dtype != expected.dtype:
            raise InputError(
                f"{source} has {name} as {value.dtype}{list(value.shape)} where the model has "
                f"{expected.dtype}{list(expected.shape)}: it was saved from another model."
            )
        return _like(jnp.asarray(value), leaf)

    return jax.tree_util.tree_map_with_path(restored, like)


def _holds_numbers(leaf: Any) -> bool:
    return eqx.is_array(leaf) and leaf.size > 0


def _is_key(leaf: jax.Array) -> bool:
    return jnp.issubdtype(leaf.dtype, jax.dtypes.prng_key)


def _plain(leaf: jax.Array) -> jax.Array:
    return jax.random.key_data(leaf) if _is_key(leaf) else leaf


def _like(value: jax.Array, leaf: jax.Array) -> jax.Array:
    return jax.random.wrap_key_data(value) if _is_key(leaf) else value
