"""One particle in phase space, and what it carries along."""

from abc import abstractmethod

import equinox as eqx
import jax
import jax.numpy as jnp

from fenchel.shapes import Array, Key, Momentum, Point, Potential, Scalar


class Particle(eqx.Module):
    """A point with its momentum, and the bookkeeping of where it came from.

    `f` and `score` are cached at the present `x`, so that no gradient is computed twice.
    `log_q` is the exact log density of all that was drawn so far: x, v and the retired momenta.
    `kinetic` is what the retired momenta cost: the sum of -log N(v_i; 0, 1/λ_i).
    `accepted` out of `proposed` Metropolis proposals were taken.
    `strain` is how near the flows came to what they can bear: from 1 on, one may have folded.
    """

    x: Point
    v: Momentum
    f: Scalar
    score: Point
    log_q: Scalar
    kinetic: Scalar
    accepted: Scalar
    proposed: Scalar
    strain: Scalar

    def moved(self, f: Potential, x: Point, log_det: Scalar) -> "Particle":
        """At a new x, reached by a map of this log-determinant."""
        value, score = jax.value_and_grad(f)(x)
        return eqx.tree_at(
            lambda p: (p.x, p.f, p.score, p.log_q),
            self,
            (x, value, score, self.log_q - log_det),
        )

    def kicked(self, v: Momentum, log_det: Scalar) -> "Particle":
        """With a new v, reached by a map of this log-determinant."""
        return eqx.tree_at(lambda p: (p.v, p.log_q), self, (v, self.log_q - log_det))

    def retired(self, precision: Array | float) -> "Particle":
        """The present momentum moved into `kinetic`; v itself stays for whoever looks at it."""
        cost = kinetic_energy(self.v, precision)
        return eqx.tree_at(lambda p: p.kinetic, self, self.kinetic + cost)

    def strained(self, strain: Scalar) -> "Particle":
        """After a flow with this strain."""
        return eqx.tree_at(lambda p: p.strain, self, jnp.maximum(self.strain, strain))

    @property
    def log_weight(self) -> Scalar:
        """log of the importance weight for Z, once every momentum is retired."""
        return self.f - self.kinetic - self.log_q


def particle_at(f: Potential, x: Point, v: Momentum, log_q: Scalar) -> Particle:
    """A fresh particle."""
    value, score = jax.value_and_grad(f)(x)
    zero = jnp.zeros_like(value)
    return Particle(x, v, value, score, jnp.asarray(log_q, value.dtype), zero, zero, zero, zero)


def acceptance(particles: Particle) -> Scalar:
    """Of a batch: what part of its Metropolis proposals was taken; NaN where there were none."""
    return jnp.sum(particles.accepted) / jnp.sum(particles.proposed)


def kinetic_energy(v: Momentum, precision: Array | float) -> Scalar:
    """-log N(v; 0, I/λ).

    The paper leaves out the constant; with it, the augmented model has the partition function of
    the model itself. (The covariance is 1/λ; the paper prints λ^(-1/2).)
    """
    return 0.5 * precision * jnp.sum(v**2) + 0.5 * v.size * jnp.log(2 * jnp.pi / precision)


class AbstractDynamics(eqx.Module):
    """A map of phase space that knows what it does to the density.

    `exact` says whether `log_q` is still the particle's density afterwards. Where it is not, the
    importance weights, and with them the bounds on log Z, are only approximations.
    """

    @property
    @abstractmethod
    def exact(self) -> bool:
        """Whether `log_q` is the exact log density of what was drawn."""

    @abstractmethod
    def __call__(self, f: Potential, particle: Particle, key: Key) -> Particle:
        """Move one particle."""
