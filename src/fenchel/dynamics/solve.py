"""How an ordinary differential equation is solved, and differentiated: through Diffrax."""

from collections.abc import Callable

import diffrax
import equinox as eqx
import jax
import jax.numpy as jnp

from fenchel.errors import InputError
from fenchel.shapes import PyTree, Scalar


class Solve(eqx.Module):
    """A solver, a rule for its step sizes, and a way back for gradients.

    `adaptive` and `fixed` make the usual ones. The adjoint is Diffrax's: by default
    back-propagation through the solver with recursive checkpoints, exact for what was computed;
    `diffrax.BacksolveAdjoint()` solves the adjoint equation instead, in constant memory, and is
    right up to the solver's tolerance.
    """

    solver: diffrax.AbstractSolver
    controller: diffrax.AbstractStepSizeController
    adjoint: diffrax.AbstractAdjoint
    first_step: float | None = eqx.field(static=True)  # a fraction of the way; None: found
    max_steps: int = eqx.field(static=True)

    def __call__(
        self, field: Callable, y: PyTree, args: PyTree, begin: float, end: float
    ) -> tuple[PyTree, Scalar]:
        """(y at the end, 1 if the solver gave up, else 0); what it gave up on is not a number."""
        step = None if self.first_step is None else self.first_step * (end - begin)
        solution = diffrax.diffeqsolve(
            diffrax.ODETerm(field),
            self.solver,
            begin,
            end,
            step,
            y,
            args,
            stepsize_controller=self.controller,
            adjoint=self.adjoint,
            max_steps=self.max_steps,
            throw=False,
        )
        failed = solution.result != diffrax.RESULTS.successful
        y = jax.tree.map(lambda leaf: jnp.where(failed, jnp.nan, leaf[-1]), solution.ys)
        return y, failed.astype(jnp.result_type(float))


def adaptive(
    tolerance: float = 1e-4,
    max_steps: int = 256,
    adjoint: diffrax.AbstractAdjoint | None = None,
) -> Solve:
    """Tsit5 with steps as long as this relative tolerance allows (a tenth of it absolute)."""
    if not tolerance > 0:
        raise InputError(f"The solver's tolerance is {tolerance}: it must be positive.")
    controller = diffrax.PIDController(rtol=tolerance, atol=0.1 * tolerance)
    adjoint = adjoint or diffrax.RecursiveCheckpointAdjoint()
    return Solve(diffrax.Tsit5(), controller, adjoint, None, max_steps)


def fixed(
    steps: int = 8,
    solver: diffrax.AbstractSolver | None = None,
    adjoint: diffrax.AbstractAdjoint | None = None,
) -> Solve:
    """So many equal steps, by default of Tsit5: quick, and right only where f is not too steep."""
    if steps < 1:
        raise InputError(f"{steps} solver steps were asked for: give at least one.")
    adjoint = adjoint or diffrax.RecursiveCheckpointAdjoint()
    controller = diffrax.ConstantStepSize()
    # One to spare: rounding may leave a last, tiny step.
    return Solve(solver or diffrax.Tsit5(), controller, adjoint, 1 / steps, steps + 1)
