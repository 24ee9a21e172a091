"""The one objective: max over f, min over q of E_D[f] - E_q[f - kinetic - log q].

Written once, here. Who ascends and who descends is decided in `train.maxmin`.
"""

import jax
import jax.numpy as jnp

from fenchel.dynamics import Particle
from fenchel.estimators.bounds import AbstractBound
from fenchel.shapes import Points, Potential, Scalar
from fenchel.starts import AbstractDensityStart


def log_likelihood(f: Potential, data: Points, particles: Particle, bound: AbstractBound) -> Scalar:
    """The mean log likelihood of the data, with log Z replaced by its bound from the particles."""
    return mean_potential(f, data) - bound.log_partition(particles)


def mean_potential(f: Potential, points: Points) -> Scalar:
    return jnp.mean(jax.vmap(f)(points))


def anchor(start: AbstractDensityStart, data: Points) -> Scalar:
    """The start's own mean log likelihood of the data.

    The sampler's objective is a reverse divergence, which does not mind losing a mode; this one
    is the forward divergence, which minds nothing more.
    """
    return jnp.mean(jax.vmap(start.log_density)(data))


def gradient_penalty(f: Potential, points: Points) -> Scalar:
    """E |∇f|², which keeps the potential from growing steep."""
    return jnp.mean(jnp.sum(jax.vmap(jax.grad(f))(points) ** 2, axis=-1))
