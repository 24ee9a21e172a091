"""Conditional likelihoods: each block of coordinates given all the others.

Single coordinates are Besag's pseudo-likelihood, blocks the conditional composite likelihood, and
one block of everything is maximum likelihood itself, by enumeration or quadrature: the oracle in
small spaces. The paper says of continuous variables that the conditionals are intractable; one or
two coordinates at a time they are not.
"""

from collections.abc import Sequence

import equinox as eqx
import jax
import jax.numpy as jnp

from fenchel.errors import InputError
from fenchel.estimators.estimator import AbstractLoss, Negatives
from fenchel.estimators.measure import AbstractMeasure, Nodes, Quadrature
from fenchel.shapes import Array, Key, Point, Points, Potential, Scalar
from fenchel.states import by_size

Blocks = tuple[tuple[int, ...], ...]


class CompositeLikelihood(AbstractLoss):
    """The sum over blocks A of -log p_f(x_A | x_-A), a mean over the batch.

    `blocks` are disjoint. Those of one size are computed side by side.
    """

    blocks: Blocks = eqx.field(static=True)
    measure: AbstractMeasure = Quadrature()

    def __init__(self, blocks: Sequence[Sequence[int]], measure: AbstractMeasure | None = None):
        self.blocks = tuple(tuple(block) for block in blocks)
        self.measure = Quadrature() if measure is None else measure
        named = [coordinate for block in self.blocks for coordinate in block]
        distinct = len(set(named)) == len(named) and min(named, default=-1) >= 0
        if not distinct or not all(self.blocks):
            raise InputError(
                f"The blocks {self.blocks} are not disjoint sets of coordinates, numbered from 0: "
                "put each coordinate into one block at most, and leave none empty."
            )

    def loss(self, f: Potential, batch: Points, key: Key) -> Scalar:
        last = max(max(block) for block in self.blocks)
        if last >= batch.shape[1]:
            raise InputError(
                f"A block names coordinate {last}, and the data have {batch.shape[1]} columns, "
                "numbered from 0."
            )
        return jnp.mean(jax.vmap(lambda x: self._of_one(f, x))(batch))

    def _of_one(self, f: Potential, x: Point) -> Scalar:
        def surprise(block: Array) -> Scalar:
            return self.measure.nodes(f, x, block).log_integral(f) - f(x)

        return sum(
            (jnp.sum(jax.vmap(surprise)(blocks)) for blocks in by_size(self.blocks)),
            jnp.zeros((), x.dtype),
        )

    def dual(self, f: Potential, batch: Points) -> Negatives:
        """A block at random, drawn anew from its conditional; each outcome by its probability."""

        def outcomes(x: Point, block: Array) -> Negatives:
            nodes: Nodes = self.measure.nodes(f, x, block)
            return Negatives(nodes.x, jax.nn.softmax(nodes.values(f)))

        parts = [
            jax.vmap(jax.vmap(outcomes, (None, 0)), (0, None))(batch, blocks)
            for blocks in by_size(self.blocks)
        ]
        x = jnp.concatenate([part.x.reshape(-1, batch.shape[1]) for part in parts])
        weight = jnp.concatenate([part.weight.ravel() for part in parts])
        return Negatives(x, weight / (batch.shape[0] * len(self.blocks)))


def pseudo_likelihood(dim: int, measure: AbstractMeasure | None = None) -> CompositeLikelihood:
    """Each coordinate given the others."""
    return CompositeLikelihood([(index,) for index in range(dim)], measure)


class MaximumLikelihood(AbstractLoss):
    """log Z - E_D[f], with log Z summed over all states or integrated: the oracle.

    All coordinates are one block, so that one integral serves the whole batch.
    """

    measure: AbstractMeasure = Quadrature(count=100)

    def loss(self, f: Potential, batch: Points, key: Key) -> Scalar:
        return self.log_partition(f, batch.shape[1]) - jnp.mean(jax.vmap(f)(batch))

    def log_partition(self, f: Potential, dim: int) -> Scalar:
        return self._nodes(f, dim).log_integral(f)

    def dual(self, f: Potential, batch: Points) -> Negatives:
        """The model itself."""
        nodes = self._nodes(f, batch.shape[1])
        return Negatives(nodes.x, jax.nn.softmax(nodes.values(f)))

    def _nodes(self, f: Potential, dim: int) -> Nodes:
        return self.measure.nodes(f, jnp.zeros(dim), jnp.arange(dim))
