"""Which numbers are learnt, and how they are kept in their range.

Two wrappers of Paramax do all of it: a positive number is stored as its logarithm, and a given
one is marked as not trainable. Both disappear when a module is unwrapped, which happens once, at
a sampler's or an objective's boundary; everything inside sees plain arrays, which is also what
the annotations say.
"""

from typing import cast

import equinox as eqx
import jax
import jax.numpy as jnp
import paramax
from jax import lax

from fenchel.shapes import Array, PyTree


def positive(value: float | Array, shape: tuple[int, ...] = ()) -> Array:
    """A learnt number (or an array of them) that stays positive wherever an optimiser takes it."""
    start = jnp.broadcast_to(jnp.asarray(value, jnp.result_type(float)), shape)
    return cast(Array, paramax.Parameterize(jnp.exp, jnp.log(start)))


def fixed(value: float | Array) -> Array:
    """A number that is given, as an array of definite type."""
    return cast(Array, paramax.NonTrainable(jnp.asarray(value, jnp.result_type(float))))


def given(tree: PyTree) -> PyTree:
    """The same object with its numbers held fixed."""
    return paramax.non_trainable(tree)


def _is_given(leaf: object) -> bool:
    return isinstance(leaf, paramax.NonTrainable)


def split(tree: PyTree) -> tuple[PyTree, PyTree]:
    """(what is learnt, the rest); `equinox.combine` puts them together again."""
    return eqx.partition(tree, eqx.is_inexact_array, is_leaf=_is_given)


def learnt(tree: PyTree) -> PyTree:
    """Only what is learnt, the rest replaced by None."""
    return split(tree)[0]


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
