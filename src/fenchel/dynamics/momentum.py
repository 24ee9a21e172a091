"""Momenta: how they are drawn, and how an old one gives way to a new."""

import equinox as eqx
import jax
import jax.numpy as jnp

from fenchel.dynamics.particle import AbstractDynamics, Particle
from fenchel.parameters import fixed, positive
from fenchel.shapes import Array, Key, Momentum, Potential, Scalar


class CentredNormal(eqx.Module):
    """N(0, diag scale²); the scales are learnt, from the model's own 1/sqrt(λ)."""

    scale: Array

    def __init__(self, dim: int, precision: float = 1.0):
        self.scale = positive(precision**-0.5, (dim,))

    def draw(self, key: Key) -> tuple[Momentum, Scalar]:
        """One draw with its log density."""
        noise = jax.random.normal(key, self.scale.shape, self.scale.dtype)
        log_q = -0.5 * jnp.sum(noise**2 + jnp.log(2 * jnp.pi)) - jnp.sum(jnp.log(self.scale))
        return self.scale * noise, log_q


class Refresh(AbstractDynamics):
    """Retire the momentum, at the price of its λ, and draw a new one.

    Nothing is marginalised: the old momentum stays a variable of the augmented model (one λ_i a
    momentum), so the joint density remains exact. The new one may have another dimension.
    """

    momentum: CentredNormal
    precision: Array  # λ of the momentum that is retired; given, not learnt

    def __init__(self, dim: int, precision: float = 1.0, retired: float | None = None):
        """A new momentum of this dimension and λ; `retired` is the old one's λ, if another."""
        self.momentum = CentredNormal(dim, precision)
        self.precision = fixed(precision if retired is None else retired)

    @property
    def exact(self) -> bool:
        return True

    def __call__(self, f: Potential, particle: Particle, key: Key) -> Particle:
        v, log_q = self.momentum.draw(key)
        retired = particle.retired(self.precision)
        return eqx.tree_at(lambda p: (p.v, p.log_q), retired, (v, retired.log_q + log_q))
