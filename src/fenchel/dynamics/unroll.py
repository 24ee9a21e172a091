"""A stack taken apart into single steps, to see where a particle goes on its way."""

import jax.numpy as jnp

from fenchel.dynamics.gradient_flow import GradientFlow
from fenchel.dynamics.momentum import Refresh
from fenchel.dynamics.particle import AbstractDynamics, Particle
from fenchel.dynamics.stack import AbstractStack
from fenchel.shapes import Key, Points, Potential

WAYPOINTS = 12  # of a flow in continuous time


def unroll(dynamics: AbstractDynamics, key: Key) -> list[tuple[AbstractDynamics, Key]]:
    """The single steps within, each with the key that it gets when the whole gets this one."""
    if not isinstance(dynamics, AbstractStack):
        return [(dynamics, key)]
    pairs = zip(dynamics.in_order(), dynamics.keys(key), strict=True)
    return [single for pair in pairs for single in unroll(*pair)]


def follow(
    step: AbstractDynamics, f: Potential, particle: Particle, key: Key
) -> tuple[Particle, Points]:
    """The particle after a single step, and the points it came through: the last is where it is.

    A new momentum moves nothing, and a flow in continuous time has no steps but many points.
    """
    moved = step(f, particle, key)
    if isinstance(step, Refresh):
        return moved, jnp.empty((0, particle.x.size), particle.x.dtype)
    if isinstance(step, GradientFlow):
        return moved, step.waypoints(f, particle.x, key, WAYPOINTS)
    return moved, moved.x[None]
