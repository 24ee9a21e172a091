"""Pairwise models of discrete variables on a graph: Ising and Potts."""

from collections.abc import Sequence

import equinox as eqx
import jax.numpy as jnp
import numpy as np

from fenchel.errors import InputError
from fenchel.potentials.graphs import checked, complete
from fenchel.shapes import Array, Point, Scalar

Edges = Sequence[Sequence[int]] | np.ndarray


class Ising(eqx.Module):
    """f(x) = sum over edges of J_ij x_i x_j + sum of h_i x_i, for spins of -1 and 1."""

    couplings: Array
    fields: Array
    edges: Array

    def __init__(self, dim: int, edges: Edges | None = None):
        """On these edges, or on all pairs; everything starts at 0."""
        pairs = complete(dim) if edges is None else checked(edges, dim)
        self.edges = jnp.asarray(pairs)
        self.couplings = jnp.zeros(len(pairs))
        self.fields = jnp.zeros(dim)

    @property
    def states(self) -> tuple[float, ...]:
        """What a variable can be."""
        return (-1.0, 1.0)

    @property
    def names(self) -> tuple[str, ...]:
        """Of the parameters, couplings first."""
        return (*_of_edges(self.edges), *(f"h[{i}]" for i in range(self.fields.size)))

    def __call__(self, x: Point) -> Scalar:
        pairs = x[self.edges[:, 0]] * x[self.edges[:, 1]]
        return jnp.dot(self.couplings, pairs) + jnp.dot(self.fields, x)


class Potts(eqx.Module):
    """f(x) = sum over edges of J_ij [x_i = x_j] + sum of h_i(x_i), for states 0, ..., q - 1."""

    couplings: Array
    fields: Array
    edges: Array

    def __init__(self, dim: int, count: int, edges: Edges | None = None):
        """`count` states a variable, on these edges or on all pairs; everything starts at 0."""
        if count < 2:
            raise InputError(f"A Potts model of {count} states cannot vary: give at least 2.")
        pairs = complete(dim) if edges is None else checked(edges, dim)
        self.edges = jnp.asarray(pairs)
        self.couplings = jnp.zeros(len(pairs))
        self.fields = jnp.zeros((dim, count))

    @property
    def states(self) -> tuple[float, ...]:
        """What a variable can be."""
        return tuple(float(state) for state in range(self.fields.shape[1]))

    @property
    def names(self) -> tuple[str, ...]:
        """Of the parameters, couplings first."""
        fields = (f"h[{i}]({state})" for i, state in np.ndindex(self.fields.shape))
        return (*_of_edges(self.edges), *fields)

    def __call__(self, x: Point) -> Scalar:
        chosen = (x[:, None] == jnp.arange(self.fields.shape[1])[None]).astype(self.fields.dtype)
        alike = jnp.sum(chosen[self.edges[:, 0]] * chosen[self.edges[:, 1]], axis=1)
        return jnp.dot(self.couplings, alike) + jnp.sum(self.fields * chosen)


def _of_edges(edges: Array) -> list[str]:
    return [f"J[{i},{j}]" for i, j in np.asarray(edges).tolist()]
