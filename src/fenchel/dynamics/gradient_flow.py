"""Langevin in continuous time: x flows along the score, its density by the trace along the way."""

from collections.abc import Callable

import equinox as eqx
import jax
import jax.numpy as jnp

from fenchel.dynamics.flow import AbstractFlow, Undone
from fenchel.dynamics.particle import Particle
from fenchel.dynamics.probes import AbstractProbes, Basis, trace
from fenchel.dynamics.solve import Solve, adaptive
from fenchel.parameters import times
from fenchel.shapes import Array, Key, Point, Points, Potential, Scalar

Velocity = Callable[[Point, Scalar, Point], Point]  # h(∇f, f, x)


def along_score(score: Point, value: Scalar, x: Point) -> Point:
    """h = ∇f: plain Langevin without noise."""
    return score


class GradientFlow(AbstractFlow):
    """dx/dt = h(∇f, f, x) and d log q/dt = -tr ∂h/∂x, for a learnt time.

    With the default h the trace is the Laplacian of f. Probes are drawn once a solve and held along
    it, so that the estimated log q is that of one smooth flow. The time is a factor on the field,
    over a unit of solver time, so that both adjoints differentiate it like any other parameter.

    **Arguments:**

    - `time`: how long to flow.
    - `velocity`: h; any smooth function.
    - `probes`: `Basis()` for the exact trace, `Rademacher(n)` for Hutchinson's estimate.
    - `solve`: how; see `fenchel.dynamics.adaptive` and `fixed`.
    """

    time: Array
    velocity: Velocity = along_score
    probes: AbstractProbes = Basis()
    solve: Solve = adaptive()

    @property
    def exact(self) -> bool:
        """Up to the solver's tolerance."""
        return self.probes.exact

    def __call__(self, f: Potential, particle: Particle, key: Key) -> Particle:
        x, log_det, strain, failed = self._integrate(f, particle.x, key, 0.0, 1.0)
        # A particle that the solver gave up on stays where it was, and has no density any more.
        x, log_det = jnp.where(failed, particle.x, x), jnp.where(failed, jnp.nan, log_det)
        return particle.moved(f, x, log_det).strained(strain)

    def inverse(self, f: Potential, x: Point, key: Key) -> Undone:
        before, log_det, _, failed = self._integrate(f, x, key, 1.0, 0.0)
        return Undone(before, -log_det, jnp.where(failed, jnp.inf, 0.0))

    def shortened(self, factor: Scalar | float) -> "GradientFlow":
        return eqx.tree_at(lambda s: s.time, self, times(self.time, factor))

    def waypoints(self, f: Potential, x: Point, key: Key, count: int) -> Points:
        """Where x is at `count` equal times of the flow, the last of them its end."""
        y, args = self._equation(f, x, key)
        points, _ = self.solve.along(_with_trace, y, args, 0.0, 1.0, count)
        # Where the solver gave up the particle stays where it was.
        return jnp.where(jnp.all(jnp.isfinite(points)), points, x)

    def _integrate(self, f: Potential, x: Point, key: Key, begin: float, end: float):
        y, args = self._equation(f, x, key)
        (x, log_det), strain, failed = self.solve(_with_trace, y, args, begin, end)
        return x, log_det, strain, failed

    def _equation(self, f: Potential, x: Point, key: Key):
        """Its first value, and what `_with_trace` needs beside it."""

        def field(x: Point) -> Point:
            value, score = jax.value_and_grad(f)(x)
            return self.time * self.velocity(score, value, x)

        # The adjoint equation needs every number that the field depends on as an argument.
        field = eqx.filter_closure_convert(field, x)
        return (x, jnp.zeros((), x.dtype)), (field, self.probes.draw(key, x))


def _with_trace(_, y: tuple[Point, Scalar], args: tuple[Callable, Array]) -> tuple[Point, Scalar]:
    field, probes = args
    value, product = jax.linearize(field, y[0])
    return value, trace(product, probes)
