"""Which numbers are learnt, and how they are kept in their range.

Two wrappers of Paramax do all of it: a positive number is stored as its logarithm, and a given
one is marked as not trainable. Both disappear when a module is unwrapped, which happens once, at
a sampler's or an objective's boundary; everything inside sees plain arrays, which is also what
the annotations say.
"""

from collections.abc import Callable
from typing import cast

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import paramax
from jax import lax
from jax.flatten_util import ravel_pytree

from fenchel.shapes import Array, PyTree


def positive(value: float | Array, shape: tuple[int, ...] = ()) -> Array:
    """A learnt number (or an array of them) that stays positive wherever an optimiser takes it."""
    start = jnp.broadcast_to(jnp.asarray(value, jnp.result_type(float)), shape)
    return cast(Array, paramax.Parameterize(jnp.exp, jnp.log(start)))


def fraction(value: float) -> Array:
    """A learnt number that stays between 0 and 1."""
    start = jnp.asarray(value, jnp.result_type(float))
    return cast(Array, paramax.Parameterize(jax.nn.sigmoid, jnp.log(start) - jnp.log1p(-start)))


def fixed(value: float | Array) -> Array:
    """A number that is given, as an array of definite type."""
    return cast(Array, paramax.NonTrainable(jnp.asarray(value, jnp.result_type(float))))


def given(tree: PyTree) -> PyTree:
    """The same object with its numbers held fixed."""
    return paramax.non_trainable(tree)


def is_given(leaf: object) -> bool:
    """Whether a node of a tree is a number that is not learnt."""
    return isinstance(leaf, paramax.NonTrainable)


def split(tree: PyTree) -> tuple[PyTree, PyTree]:
    """(what is learnt, the rest); `equinox.combine` puts them together again."""
    return eqx.partition(tree, eqx.is_inexact_array, is_leaf=is_given)


def learnt(tree: PyTree) -> PyTree:
    """Only what is learnt, the rest replaced by None."""
    return split(tree)[0]


def flat(tree: PyTree) -> tuple[Array, Callable[[Array], PyTree]]:
    """What is learnt as one vector, and the way back from such a vector to the whole."""
    params, static = split(tree)
    vector, unravel = ravel_pytree(params)
    return vector, lambda vector: eqx.combine(unravel(vector), static)


def names(tree: PyTree) -> tuple[str, ...]:
    """A name for each number that is learnt, in the order of `flat`.

    A part that has `names` of its own is called by them, everything else by where it stands.
    """

    def is_named(node: PyTree) -> bool:
        own = getattr(node, "names", None)
        return isinstance(own, tuple) and len(own) == flat(node)[0].size

    is_leaf = lambda node: is_named(node) or is_given(node)  # noqa: E731
    found = jax.tree_util.tree_flatten_with_path(tree, is_leaf=is_leaf)[0]
    parts = [(path, part) for path, part in found if is_named(part) or eqx.is_inexact_array(part)]
    return tuple(name for path, part in parts for name in _names_at(path, part))


def _names_at(path: tuple, part: PyTree) -> list[str]:
    if not eqx.is_array(part):
        return list(part.names)
    where = [
        str(getattr(key, "name", getattr(key, "key", getattr(key, "idx", "")))) for key in path
    ]
    stem = ".".join(name for name in where if name not in ("potential", ""))
    return [
        stem + (f"[{','.join(map(str, index))}]" if index else "")
        for index in np.ndindex(part.shape)
    ]


def definite(tree: PyTree) -> PyTree:
    """The same tree with no array weakly typed.

    A weakly typed one changes its type at the first update, and the training step would compile
    twice.
    """
    numbers, rest = eqx.partition(tree, eqx.is_inexact_array)
    numbers = jax.tree.map(lambda leaf: lax.convert_element_type(leaf, leaf.dtype), numbers)
    return eqx.combine(numbers, rest)


def times(parameter: Array, factor: float | Array) -> Array:
    """The same parameter with its value multiplied by a positive number, wrapped as it was."""
    if parameter is None:  # in a tree of what is learnt, the place of what is not
        return parameter
    if isinstance(parameter, paramax.Parameterize):  # as made by `positive`: a logarithm
        return eqx.tree_at(lambda p: p.args[0], parameter, parameter.args[0] + jnp.log(factor))
    if isinstance(parameter, paramax.NonTrainable):
        return eqx.tree_at(lambda p: p.tree, parameter, parameter.tree * factor)
    return parameter * factor
