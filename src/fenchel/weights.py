"""Weights that are something else by the time a net uses them.

As all wrappers they disappear once, at a sampler's or an objective's boundary. A net is then one
fixed function for as long as a trajectory lasts, and what is computed here is computed once.
"""

from typing import cast

import equinox as eqx
import jax
import jax.numpy as jnp
import paramax
from jax import lax
from jax.typing import DTypeLike

from fenchel.parameters import fixed, is_given
from fenchel.shapes import Array, Key, PyTree, Scalar

BEGINNING = 10  # power iterations for a fresh weight: with none, its norm would be far too small


class SpectralNorm(paramax.AbstractUnwrappable[Array]):
    """A weight divided by its largest singular value, as the power iteration knows it by now.

    The last axis is the outputs', all others the inputs'. Both singular vectors are given, not
    learnt: they move on by `renewed`, once a training step, and so f does not change while
    particles move along it. The gradient sees through the division.
    """

    weight: Array
    left: Array
    right: Array

    def __init__(self, weight: Array, *, key: Key):
        self.weight = weight
        matrix = _as_matrix(weight)
        left, right = _begun(matrix, jax.random.normal(key, matrix.shape[:1]))
        self.left, self.right = fixed(left), fixed(right)

    def unwrap(self) -> Array:
        return self.weight / self.norm()

    def norm(self) -> Scalar:
        """The singular value; only of a module whose wrappers are gone."""
        return self.left @ _as_matrix(self.weight) @ self.right

    def renewed(self) -> "SpectralNorm":
        """After one more power iteration."""
        matrix = lax.stop_gradient(_as_matrix(paramax.unwrap(self.weight)))
        vectors = tuple(map(fixed, _iterated(matrix, paramax.unwrap(self.left))))
        return eqx.tree_at(lambda s: (s.left, s.right), self, vectors, is_leaf=is_given)


class Rounded(paramax.AbstractUnwrappable[Array]):
    """Numbers that are learnt in full precision and used in another, such as bfloat16."""

    numbers: Array
    dtype: DTypeLike = eqx.field(static=True)

    def unwrap(self) -> Array:
        return self.numbers.astype(self.dtype)


def rounded(numbers: Array, dtype: DTypeLike) -> Array:
    """To be used in that precision."""
    return cast(Array, Rounded(numbers, jnp.dtype(dtype)))


def renewed(tree: PyTree, times: int = 1) -> PyTree:
    """The tree with every spectral norm so many power iterations on."""
    for _ in range(times):
        tree = jax.tree.map(
            lambda node: node.renewed() if _is_spectral(node) else node, tree, is_leaf=_is_spectral
        )
    return tree


def _is_spectral(node: object) -> bool:
    return isinstance(node, SpectralNorm)


def _as_matrix(weight: Array) -> Array:
    return weight.reshape(-1, weight.shape[-1])


@jax.jit
def _begun(matrix: Array, left: Array) -> tuple[Array, Array]:
    left = lax.fori_loop(0, BEGINNING, lambda _, left: _iterated(matrix, left)[0], left)
    return _iterated(matrix, left)


@jax.jit
def _iterated(matrix: Array, left: Array) -> tuple[Array, Array]:
    right = _unit(matrix.T @ left)
    return _unit(matrix @ right), right


def _unit(vector: Array) -> Array:
    return vector / (jnp.linalg.norm(vector) + jnp.finfo(vector.dtype).tiny)
