"""The two gradient estimators of Algorithm 1, for the step of f.

The draws depend on f, through the dynamics. *Back-propagation through time* follows that
dependence; the *truncated* estimator ignores it, which at the optimal sampler is no error at all
(Danskin's theorem) and in general is a bias that shrinks as the sampler improves.
"""

from abc import abstractmethod

import equinox as eqx
import jax
import paramax
from jax import lax

from fenchel.dynamics import Particle
from fenchel.samplers.embedding import AbstractSampler
from fenchel.shapes import Key, Points, Potential, PyTree


class AbstractGradient(eqx.Module):
    """How the step of f sees its sampler's draws."""

    @abstractmethod
    def draw(
        self, sampler: AbstractSampler, f: Potential, points: Points, state: PyTree, key: Key
    ) -> tuple[Particle, PyTree]:
        """`sampler.draw`, as seen by the gradient with respect to f."""


class BackPropagation(AbstractGradient):
    """Through every step of the dynamics: the gradient of the objective as written."""

    def draw(
        self, sampler: AbstractSampler, f: Potential, points: Points, state: PyTree, key: Key
    ) -> tuple[Particle, PyTree]:
        return sampler.draw(f, points, state, key)


class Truncated(AbstractGradient):
    """Stop at the draws: only f's value there is differentiated, and time is not gone back."""

    def draw(
        self, sampler: AbstractSampler, f: Potential, points: Points, state: PyTree, key: Key
    ) -> tuple[Particle, PyTree]:
        arrays, static = eqx.partition((sampler, f), eqx.is_array)
        still_sampler, still_f = eqx.combine(lax.stop_gradient(arrays), static)
        particles, state = still_sampler.draw(still_f, points, state, key)
        values = jax.vmap(paramax.unwrap(f))(particles.x)
        return eqx.tree_at(lambda p: p.f, particles, values), state
