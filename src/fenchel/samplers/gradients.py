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
from fenchel.shapes import Array, Key, Point, Points, Potential, PyTree, Scalar


class AbstractGradient(eqx.Module):
    """How the step of f sees its sampler's draws."""

    def draw(
        self, sampler: AbstractSampler, f: Potential, points: Points, state: PyTree, key: Key
    ) -> tuple[Particle, PyTree]:
        """`sampler.draw`, as seen by the gradient with respect to f."""
        particles, state = self.moved(sampler, f, points, state, key)
        return valued(particles, jax.vmap(paramax.unwrap(f))(particles.x)), state

    @abstractmethod
    def moved(
        self, sampler: AbstractSampler, f: Potential, points: Points, state: PyTree, key: Key
    ) -> tuple[Particle, PyTree]:
        """The same, but for f's values at the draws, which are still to be taken there.

        Along the way its values are not to be differentiated; and whoever needs f at other points,
        too, can look at all of them at once.
        """


class BackPropagation(AbstractGradient):
    """Through every step of the dynamics: the gradient of the objective as written."""

    def moved(
        self, sampler: AbstractSampler, f: Potential, points: Points, state: PyTree, key: Key
    ) -> tuple[Particle, PyTree]:
        return sampler.draw(f, points, state, key)


class Truncated(AbstractGradient):
    """Stop at the draws: only f's value there is differentiated, and time is not gone back.

    So it is for f. A sampler that learns from the same draw does see all of its own steps.
    """

    def moved(
        self, sampler: AbstractSampler, f: Potential, points: Points, state: PyTree, key: Key
    ) -> tuple[Particle, PyTree]:
        return sampler.draw(_still(f), points, state, key)


class Detached(AbstractGradient):
    """As `Truncated`, and the score is a push of its own, whatever the point that felt it.

    Nothing is ever differentiated twice: a step of the dynamics costs no more than its score, for
    the sampler too. (The paper's released code learns from pictures so.)
    """

    def moved(
        self, sampler: AbstractSampler, f: Potential, points: Points, state: PyTree, key: Key
    ) -> tuple[Particle, PyTree]:
        return sampler.draw(Straight(_still(f)), points, state, key)


class Straight(eqx.Module):
    """f as its own tangent: the value and the score are f's, the curvature is none."""

    potential: Potential

    def __call__(self, x: Point) -> Scalar:
        here = lax.stop_gradient(x)
        value, score = jax.value_and_grad(self.potential)(here)
        return value + score @ (x - here)


def _still(f: Potential) -> Potential:
    arrays, static = eqx.partition(f, eqx.is_array)
    return eqx.combine(lax.stop_gradient(arrays), static)


def valued(particles: Particle, values: Array) -> Particle:
    """The particles with these values of f, as f's gradient sees them."""
    return eqx.tree_at(lambda p: p.f, particles, values)
