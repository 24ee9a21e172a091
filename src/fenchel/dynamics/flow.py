"""Dynamics of x alone: no momentum, a map that can be undone, a step that can be shortened."""

from abc import abstractmethod
from typing import NamedTuple, TypeVar

import jax

from fenchel.dynamics.particle import AbstractDynamics
from fenchel.shapes import Key, Point, Potential, PyTree, Scalar

T = TypeVar("T", bound=PyTree)


class Undone(NamedTuple):
    """Where a point came from, the log-determinant of the map there, and by how much it misses."""

    x: Point
    log_det: Scalar
    miss: Scalar  # how far from the given point the map takes x; large where there is no inverse


class AbstractFlow(AbstractDynamics):
    """Moves x along a field made of f, and knows its own limits.

    A particle's `strain` reaches 1 where the map can no longer be trusted. No step is ever cut for
    one particle alone, since then its length would depend on x, and the density would be wrong.
    """

    @abstractmethod
    def inverse(self, f: Potential, x: Point, key: Key) -> Undone:
        """Undo the map at a given point."""

    @abstractmethod
    def shortened(self, factor: Scalar | float) -> "AbstractFlow":
        """With its step, or its time, multiplied by this."""


def shortened(tree: T, factor: Scalar | float) -> T:
    """Every flow in the tree with its step multiplied by this; parameters may still be wrapped."""

    def is_flow(node: object) -> bool:
        return isinstance(node, AbstractFlow)

    return jax.tree.map(
        lambda node: node.shortened(factor) if is_flow(node) else node, tree, is_leaf=is_flow
    )
