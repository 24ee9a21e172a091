"""Probe vectors: how the trace of a matrix is seen through products with it.

Both kinds give rows p with E[sum of p p'] = I, so that E[sum of p' A p] = tr A.
"""

from abc import abstractmethod
from collections.abc import Callable

import equinox as eqx
import jax
import jax.numpy as jnp

from fenchel.errors import InputError
from fenchel.shapes import Array, Key, Point, Scalar

FEW = 4


class AbstractProbes(eqx.Module):
    """Which vectors to look along."""

    @property
    @abstractmethod
    def exact(self) -> bool:
        """Whether the trace comes out without any noise."""

    @abstractmethod
    def draw(self, key: Key, x: Point) -> Array:
        """Probes for the space of x, one a row."""


class Basis(AbstractProbes):
    """Every coordinate direction: d products, and the trace itself."""

    @property
    def exact(self) -> bool:
        return True

    def draw(self, key: Key, x: Point) -> Array:
        return jnp.eye(x.size, dtype=x.dtype)


class Rademacher(AbstractProbes):
    """Hutchinson's estimator: `count` random signs in all coordinates, without bias.

    Signs have the smallest variance of all probes with independent coordinates: the diagonal of A
    adds nothing to it.
    """

    count: int = eqx.field(static=True, default=1)

    def __check_init__(self) -> None:
        if self.count < 1:
            raise InputError(f"{self.count} probes were asked for: give at least one.")

    @property
    def exact(self) -> bool:
        return False

    def draw(self, key: Key, x: Point) -> Array:
        return jax.random.rademacher(key, (self.count, x.size), x.dtype) / self.count**0.5


def trace(product: Callable[[Point], Point], probes: Array) -> Scalar:
    """tr A as the probes see it, where `product` multiplies by A.

    A few products are written out, which on a CPU takes half the time of doing them together.
    """
    if probes.shape[0] <= FEW:
        return sum(
            (jnp.vdot(probe, product(probe)) for probe in probes), jnp.zeros((), probes.dtype)
        )
    return jnp.sum(probes * jax.vmap(product)(probes))
