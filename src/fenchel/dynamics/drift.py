"""The drift: the point changes by a function of the momentum."""

from collections.abc import Callable

import equinox as eqx
import jax.numpy as jnp

from fenchel.dynamics.particle import Particle
from fenchel.shapes import Array, Momentum, Point, Potential

MomentumMap = Callable[[Momentum], Point]


class Drift(eqx.Module):
    """x' = x ⊙ exp S_x(v) + η g_x(v), with log-determinant sum S_x.

    **Arguments:**

    - `scale`: S_x; None for no rescaling.
    - `velocity`: g_x; None for the momentum itself, as in plain HMC.
    """

    scale: MomentumMap | None = None
    velocity: MomentumMap | None = None

    def __call__(self, f: Potential, particle: Particle, step_size: Array) -> Particle:
        x, v = particle.x, particle.v
        velocity = v if self.velocity is None else self.velocity(v)
        if self.scale is None:
            return particle.moved(f, x + step_size * velocity, jnp.zeros_like(particle.f))
        scale = jnp.broadcast_to(self.scale(v), x.shape)
        return particle.moved(f, x * jnp.exp(scale) + step_size * velocity, jnp.sum(scale))
