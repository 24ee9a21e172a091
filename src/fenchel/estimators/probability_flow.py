"""Minimum probability flow: how fast mass begins to leave the data when the model's dynamics run.

From x the flow goes to x' at the rate exp((f(x') - f(x)) / 2). Its dual is the data a moment later:
a datum has jumped with that rate, and stayed otherwise.
"""

from abc import abstractmethod
from collections.abc import Callable
from typing import NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
from jax import lax

from fenchel.dynamics import Leapfrog, Repeat, kinetic_energy, particle_at
from fenchel.estimators.estimator import AbstractLoss, Negatives
from fenchel.shapes import Array, Key, Momentum, Point, Points, Potential, Scalar


class Proposals(NamedTuple):
    """Where mass may go, and what besides f the logarithm of the ratio of densities has."""

    x: Points
    log_ratio: Array


class AbstractConnections(eqx.Module):
    """Which states are connected; symmetric, in phase space where there are momenta."""

    @abstractmethod
    def propose(self, f: Potential, x: Point, key: Key) -> Proposals:
        """From one state."""


class Neighbours(AbstractConnections):
    """All neighbours of a discrete state, such as its bit flips."""

    neighbours: Callable[[Point], Points]

    def propose(self, f: Potential, x: Point, key: Key) -> Proposals:
        found = self.neighbours(x)
        return Proposals(found, jnp.zeros(found.shape[0], x.dtype))


class Hamiltonian(AbstractConnections):
    """The end of a trajectory of leapfrogs with a fresh momentum; one leapfrog is Langevin's step.

    The map is reversible and keeps volume whatever potential drives it, so states of phase space
    are connected symmetrically, and the change of kinetic energy is part of the ratio. The
    trajectory is held fixed when f is learnt: a gradient through it would reward trajectories
    that conserve energy badly. (The paper's third term is that gradient.) Momenta come in pairs v
    and -v, in which what is odd in them, and most of the noise, cancels.
    """

    step_size: float = eqx.field(static=True, default=0.5)
    leapfrogs: int = eqx.field(static=True, default=1)
    pairs: int = eqx.field(static=True, default=1)  # of trajectories, a datum

    def propose(self, f: Potential, x: Point, key: Key) -> Proposals:
        map_ = Repeat(Leapfrog(jnp.asarray(self.step_size, x.dtype)), self.leapfrogs)

        def one(v: Momentum) -> Proposals:
            end = map_(f, particle_at(f, x, v, jnp.zeros((), x.dtype)), key)
            return Proposals(end.x, kinetic_energy(v, 1.0) - kinetic_energy(end.v, 1.0))

        half = jax.random.normal(key, (self.pairs, x.size), x.dtype)
        return lax.stop_gradient(jax.vmap(one)(jnp.concatenate([half, -half])))


class MinimumProbabilityFlow(AbstractLoss):
    """E_D of the sum over connected x' of exp((f(x') - f(x)) / 2)."""

    connections: AbstractConnections = Hamiltonian()

    def loss(self, f: Potential, batch: Points, key: Key) -> Scalar:
        rates = self._rates(f, batch, self._proposals(f, batch, key))
        return jnp.mean(jnp.sum(rates, axis=1))

    def dual(self, f: Potential, batch: Points, time: Scalar | float, key: Key) -> Negatives:
        """The data after so short a time: jumped with the flow's rate, or where they were."""
        proposals = self._proposals(f, batch, key)
        rates = time * self._rates(f, batch, proposals)
        stayed = 1 - jnp.sum(rates, axis=1)
        x = jnp.concatenate([proposals.x.reshape(-1, batch.shape[1]), batch])
        return Negatives(x, jnp.concatenate([rates.ravel(), stayed]) / batch.shape[0])

    def _proposals(self, f: Potential, batch: Points, key: Key) -> Proposals:
        keys = jax.random.split(key, batch.shape[0])
        return jax.vmap(lambda x, key: self.connections.propose(f, x, key))(batch, keys)

    def _rates(self, f: Potential, batch: Points, proposals: Proposals) -> Array:
        there = jax.vmap(jax.vmap(f))(proposals.x)
        here = jax.vmap(f)(batch)
        return jnp.exp(0.5 * (there + proposals.log_ratio - here[:, None]))
