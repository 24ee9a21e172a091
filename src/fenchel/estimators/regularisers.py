"""What stands beside the objective: the mean of f, the start's anchor, a penalty on steepness."""

import jax
import jax.numpy as jnp

from fenchel.shapes import Points, Potential, Scalar
from fenchel.starts import AbstractDensityStart


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
