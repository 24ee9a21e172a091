"""How an ordinary differential equation is solved, and differentiated: through Diffrax."""

from collections.abc import Callable
from typing import Any

import diffrax
import equinox as eqx
import jax
import jax.numpy as jnp

from fenchel.errors import InputError
from fenchel.shapes import Array, PyTree, Scalar


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
    first_step: float = eqx.field(static=True)  # as a fraction of the way
    comfortable: int = eqx.field(static=True)  # so many steps strain nothing
    max_steps: int = eqx.field(static=True)

    def __call__(
        self, field: Callable, y: PyTree, args: PyTree, begin: float, end: float
    ) -> tuple[PyTree, Scalar, Array]:
        """(y at the end, steps taken over comfortable ones, whether the solver gave up)."""
        solution = self._solution(field, y, args, begin, end, diffrax.SaveAt(t1=True))
        strain = solution.stats["num_steps"] / self.comfortable
        failed = solution.result != diffrax.RESULTS.successful
        return jax.tree.map(lambda leaf: leaf[-1], solution.ys), strain, failed

    def along(
        self, field: Callable, y: PyTree, args: PyTree, begin: float, end: float, count: int
    ) -> PyTree:
        """y at so many equal times along the same way, the last of them the end."""
        times = jnp.linspace(begin, end, count + 1)[1:-1]
        save = diffrax.SaveAt(ts=times, t1=True)
        return self._solution(field, y, args, begin, end, save).ys

    def _solution(
        self,
        field: Callable,
        y: PyTree,
        args: PyTree,
        begin: float,
        end: float,
        save: diffrax.SaveAt,
    ) -> Any:
        return diffrax.diffeqsolve(
            diffrax.ODETerm(field),
            self.solver,
            begin,
            end,
            self.first_step * (end - begin),
            y,
            args,
            saveat=save,
            stepsize_controller=self.controller,
            adjoint=self.adjoint,
            max_steps=self.max_steps,
            throw=False,
        )


def adaptive(
    tolerance: float = 1e-4,
    max_steps: int = 32,
    adjoint: diffrax.AbstractAdjoint | None = None,
) -> Solve:
    """Tsit5 with steps as long as this relative tolerance allows (a tenth of it absolute).

    It tries to go the whole way in one step. From half of `max_steps` on a flow is strained; at
    `max_steps` the solver gives up.
    """
    if not tolerance > 0:
        raise InputError(f"The solver's tolerance is {tolerance}: it must be positive.")
    controller = diffrax.PIDController(rtol=tolerance, atol=0.1 * tolerance)
    adjoint = adjoint or diffrax.RecursiveCheckpointAdjoint()
    return Solve(diffrax.Tsit5(), controller, adjoint, 1.0, -(-max_steps // 2), max_steps)


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
    return Solve(solver or diffrax.Tsit5(), controller, adjoint, 1 / steps, steps + 2, steps + 1)
