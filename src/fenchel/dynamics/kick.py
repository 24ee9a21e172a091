"""The kick: momentum changes by a function of the point and its score."""

from collections.abc import Callable

import equinox as eqx
import jax.numpy as jnp

from fenchel.dynamics.clip import no_clip
from fenchel.dynamics.particle import Particle
from fenchel.shapes import Array, Momentum, Point

ScoreMap = Callable[[Point, Point], Momentum]  # of the score and the point


class Kick(eqx.Module):
    """v' = v ⊙ exp S_v(∇f, x) + η g_v(∇f, x), with log-determinant sum S_v.

    **Arguments:**

    - `scale`: S_v; None for no rescaling.
    - `force`: g_v; None for the score itself, as in plain HMC.
    - `clip`: bounds the score before anything sees it.
    """

    scale: ScoreMap | None = None
    force: ScoreMap | None = None
    clip: Callable[[Point], Point] = no_clip

    def __call__(self, particle: Particle, step_size: Array) -> Particle:
        x, score = particle.x, self.clip(particle.score)
        force = score if self.force is None else self.force(score, x)
        if self.scale is None:
            return particle.kicked(particle.v + step_size * force, jnp.zeros_like(particle.f))
        scale = jnp.broadcast_to(self.scale(score, x), particle.v.shape)
        return particle.kicked(particle.v * jnp.exp(scale) + step_size * force, jnp.sum(scale))
