"""The damped step of the paper's pictures: a momentum that fades, pushed by a clipped score."""

from collections.abc import Callable

import equinox as eqx
import jax.numpy as jnp

from fenchel.dynamics.clip import cut, no_clip
from fenchel.dynamics.particle import AbstractDynamics, Particle
from fenchel.errors import InputError
from fenchel.shapes import Array, Key, Point, Potential


class Damped(AbstractDynamics):
    """v' = γ v + η ⊙ clip(∇f(x)), then x' = x + v', clipped to a box where one is given.

    A generalized leapfrog with S_v = log γ, S_x = 0 and both halves of the kick in one. The
    log-determinant is that of γ, once for each dimension. A box breaks the density, as `Box` says.
    """

    step_size: Array
    damping: Array
    clip: Callable[[Point], Point] = no_clip
    box: tuple[float, float] | None = eqx.field(static=True, default=None)

    def __check_init__(self) -> None:
        if self.box is not None and not self.box[0] < self.box[1]:
            low, high = self.box
            raise InputError(f"The box [{low}, {high}] is empty: give low < high.")

    @property
    def exact(self) -> bool:
        return self.box is None

    def __call__(self, f: Potential, particle: Particle, key: Key) -> Particle:
        v = self.damping * particle.v + self.step_size * self.clip(particle.score)
        x = particle.x + v
        x = x if self.box is None else cut(x, *self.box)
        particle = particle.kicked(v, v.size * jnp.log(self.damping))
        return particle.moved(f, x, jnp.zeros_like(particle.f))
