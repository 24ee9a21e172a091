"""Undoing x' = x + g(x): the fixed point of x = x' - g(x), by iteration where g is contractive."""

import jax.numpy as jnp
import optimistix as optx

from fenchel.dynamics.log_det import Residual
from fenchel.shapes import Point, Scalar

MAX_ITERATIONS = 500


def step_back(g: Residual, target: Point) -> tuple[Point, Scalar]:
    """(x, by how much x + g(x) misses the target); gradients are by the implicit function theorem.

    Where g is not contractive the iteration need not arrive, and the miss says so.
    """
    tolerance = 8 * float(jnp.finfo(target.dtype).eps)
    solver: optx.FixedPointIteration = optx.FixedPointIteration(rtol=tolerance, atol=tolerance)
    solution: optx.Solution = optx.fixed_point(
        lambda x, _: target - g(x), solver, target, max_steps=MAX_ITERATIONS, throw=False
    )
    x = solution.value
    return x, jnp.max(jnp.abs(x + g(x) - target))
