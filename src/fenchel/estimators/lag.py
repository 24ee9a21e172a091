"""How far a sampler is behind f, in nats, as its particles tell."""

import jax.numpy as jnp

from fenchel.dynamics import Particle
from fenchel.estimators.bounds import log_mean_exp
from fenchel.shapes import Scalar


def weight_lag(particles: Particle) -> Scalar:
    """For samplers with an exact density: how far apart the two bounds on log Z are."""
    return log_mean_exp(particles.log_weight) - jnp.mean(particles.log_weight)


def energy_lag(at_data: Scalar, particles: Particle) -> Scalar:
    """For the others: how far apart data and draws are in mean f, which a good sampler equals."""
    return jnp.abs(at_data - jnp.mean(particles.f))
