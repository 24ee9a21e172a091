"""Deterministic Langevin: one step along the score, and no noise."""

import equinox as eqx
import jax
import jax.numpy as jnp

from fenchel.dynamics.fixed_point import step_back
from fenchel.dynamics.flow import AbstractFlow, Undone
from fenchel.dynamics.log_det import AbstractLogDet, ExactLogDet
from fenchel.dynamics.particle import Particle
from fenchel.parameters import times
from fenchel.shapes import Array, Key, Point, Potential, Scalar


class GradientStep(AbstractFlow):
    """x' = x + η ∇f(x), with log|det(I + η H)| by an object that can be exchanged.

    In the coordinates y = x / sqrt(η) it is a step of length 1 along the gradient of f(sqrt(η) y):
    the Jacobian sqrt(η) H sqrt(η) is symmetric whatever the step sizes of the dimensions are, and
    has the same determinant. The score is not clipped: a clipped score is no gradient.
    """

    step_size: Array
    log_det: AbstractLogDet = ExactLogDet()

    @property
    def exact(self) -> bool:
        return self.log_det.exact

    def __call__(self, f: Potential, particle: Particle, key: Key) -> Particle:
        scale = self._scale(particle.x)
        step = self._step(f, particle.x / scale, key)
        x = particle.x + scale * step.value
        return particle.moved(f, x, step.log_det).strained(step.radius)

    def inverse(self, f: Potential, x: Point, key: Key) -> Undone:
        scale = self._scale(x)
        before, miss = step_back(self._field(f, scale), x / scale)
        log_det = self._step(f, before, key).log_det
        return Undone(scale * before, log_det, jnp.max(scale) * miss)

    def shortened(self, factor: Scalar | float) -> "GradientStep":
        return eqx.tree_at(lambda s: s.step_size, self, times(self.step_size, factor))

    def _scale(self, x: Point) -> Point:
        return jnp.broadcast_to(jnp.sqrt(self.step_size), x.shape)

    def _field(self, f: Potential, scale: Point):
        return lambda y: scale * jax.grad(f)(scale * y)

    def _step(self, f: Potential, y: Point, key: Key):
        scale = self._scale(y)
        return self.log_det(self._field(f, scale), y, jnp.max(self.step_size), key)
