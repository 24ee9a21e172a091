"""What all estimators of f share: something to minimise, and the dual sampler behind it.

Section 4 of the paper: the field's estimators are one objective, E_D[f] - E_q[f], with different
fixed dual samplers q. Each file of this room that is named after an estimator has its own loss,
and, where the paper's Table 1 gives one, its `dual`; `contrast` is the objective between them.
"""

from abc import abstractmethod
from typing import NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp

from fenchel.shapes import Array, Key, Points, Potential, PyTree, Scalar

NOISE_FLOOR = 0.01  # standard deviations: data on a curve, rounded or repeated have no density


class Negatives(NamedTuple):
    """What a dual sampler sets against the data: E_q[g] is the sum over rows of weight times g."""

    x: Points
    weight: Array

    @classmethod
    def equal(cls, x: Points) -> "Negatives":
        """Draws, all of the same weight."""
        return cls(x, jnp.full(x.shape[0], 1 / x.shape[0], x.dtype))


def contrast(f: Potential, data: Points, negatives: Negatives) -> Scalar:
    """E_D[f] - E_q[f]: the primal-dual objective without the dual's entropy.

    With draws that are held fixed, its gradient is what the dual makes of the likelihood's.
    """
    return jnp.mean(jax.vmap(f)(data)) - jnp.sum(negatives.weight * jax.vmap(f)(negatives.x))


class Estimate(NamedTuple):
    """What one batch says."""

    loss: Scalar
    memory: PyTree
    lag: Scalar  # how far a dual sampler is behind f, in nats; 0 where there is none
    acceptance: Scalar  # of its Metropolis proposals; NaN where there are none


class AbstractEstimator(eqx.Module):
    """How f learns from data."""

    @property
    def noise_floor(self) -> float:
        """How much noise the data need on them, in standard deviations, unless a run says."""
        return NOISE_FLOOR

    @abstractmethod
    def init(self, data: Points, key: Key) -> PyTree:
        """What the estimator takes from the data before the run, or remembers along it."""

    @abstractmethod
    def estimate(self, f: Potential, batch: Points, memory: PyTree, key: Key) -> Estimate:
        """The loss of f on a batch, to be minimised."""


class AbstractLoss(AbstractEstimator):
    """An estimator that is a loss and nothing else: no chains, no memory."""

    @abstractmethod
    def loss(self, f: Potential, batch: Points, key: Key) -> Scalar:
        """To be minimised."""

    def init(self, data: Points, key: Key) -> None:
        return None

    def estimate(self, f: Potential, batch: Points, memory: None, key: Key) -> Estimate:
        value = self.loss(f, batch, key)
        return Estimate(value, None, jnp.zeros_like(value), jnp.full_like(value, jnp.nan))
