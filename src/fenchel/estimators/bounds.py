"""The one objective: max over f, min over q of E_D[f] - E_q[f - kinetic - log q].

Written once, here, with estimates of log Z from a sampler's particles; or a contrast with them in
f's place. Who ascends and who descends is decided in `train.maxmin`.

With log w = f(x) - kinetic - log q(x, v), both estimates here are lower bounds on log Z in
expectation, and both are exact when q is the model.
"""

from abc import abstractmethod

import equinox as eqx
import jax
import jax.numpy as jnp
from jax import lax

from fenchel.dynamics import Particle
from fenchel.shapes import Array, Scalar

HALVINGS = 12  # in search of a power
NOTHING = -1e8  # log weights from here down are of particles that count for nothing


class AbstractCriterion(eqx.Module):
    """What f ascends, from its values at the data and a batch of particles."""

    @property
    @abstractmethod
    def needs_density(self) -> bool:
        """Whether it means anything for a sampler without an exact density."""

    @abstractmethod
    def value(self, at_data: Array, particles: Particle) -> Scalar:
        """The criterion."""


class AbstractBound(AbstractCriterion):
    """The mean log likelihood of the data, with log Z from a batch of particles."""

    def value(self, at_data: Array, particles: Particle) -> Scalar:
        return jnp.mean(at_data) - self.log_partition(particles)

    @abstractmethod
    def log_partition(self, particles: Particle) -> Scalar:
        """The estimate."""


class FenchelBound(AbstractBound):
    """The paper's: E_q[f - kinetic - log q], the Fenchel dual evaluated at q.

    The coefficients weigh the entropy and the momenta; at 1 this is a bound on log Z. A sampler
    that learns by it with an entropy coefficient of c is one of exp f/c.
    """

    entropy: float = eqx.field(static=True, default=1.0)
    momentum: float = eqx.field(static=True, default=1.0)

    @property
    def needs_density(self) -> bool:
        return False

    def log_partition(self, particles: Particle) -> Scalar:
        return jnp.mean(
            particles.f - self.momentum * particles.kinetic - self.entropy * particles.log_q
        )


class WeightedBound(AbstractBound):
    """Many samples in one: log E_q[w], tighter, with a self-normalised and consistent gradient.

    Its gradient is that of log w averaged under the normalised weights. When few particles hold
    all the weight (in high dimension, or while the sampler is behind) that average is one
    particle's noise; the weights are then raised to the largest power β <= 1 that leaves an
    effective sample size of `min_ess` of the batch. β = 1 is the bound itself, β = 0 the paper's.
    """

    min_ess: float = eqx.field(static=True, default=0.1)

    @property
    def needs_density(self) -> bool:
        return True

    def log_partition(self, particles: Particle) -> Scalar:
        log_w = particles.log_weight
        weights = jax.nn.softmax(self.temper(lax.stop_gradient(log_w)))
        value = lax.stop_gradient(log_mean_exp(log_w))
        surrogate = jnp.sum(weights * log_w)
        return value + surrogate - lax.stop_gradient(surrogate)

    def temper(self, log_w: Array) -> Array:
        """log w times the largest power that leaves the effective sample size wanted."""

        def bisect(_, bracket):
            low, high = bracket
            middle = 0.5 * (low + high)
            enough = effective_sample_size(middle * log_w) >= self.min_ess
            return jnp.where(enough, middle, low), jnp.where(enough, high, middle)

        one = jnp.ones((), log_w.dtype)
        low, _ = lax.fori_loop(0, HALVINGS, bisect, (0 * one, one))
        enough = effective_sample_size(log_w) >= self.min_ess
        # No power, and not 0 either, makes particles count that are not meant to.
        return jnp.where(log_w > NOTHING, jnp.where(enough, one, low) * log_w, log_w)


class Pairs(AbstractCriterion):
    """Tell a datum from a draw: E log σ(f(x) - f(x')), for as many pairs as there are data.

    No bound on a likelihood, but bounded itself. Where the two cannot be told apart, its gradient
    is half of that of the paper's objective; where they can, there is none, and f has no reason to
    grow any further. A large net with a sampler that is behind would otherwise grow for ever.
    """

    @property
    def needs_density(self) -> bool:
        return False

    def value(self, at_data: Array, particles: Particle) -> Scalar:
        return jnp.mean(jax.nn.log_sigmoid(at_data - particles.f))


def log_mean_exp(log_w: Array) -> Scalar:
    return jax.nn.logsumexp(log_w) - jnp.log(log_w.size)


def effective_sample_size(log_w: Array) -> Scalar:
    """As a fraction of the sample: 1 for equal weights, 1/n when one particle holds them all."""
    twice = 2 * jax.nn.logsumexp(log_w) - jax.nn.logsumexp(2 * log_w)
    return jnp.exp(twice) / log_w.size
