"""The guard: a non-finite step is never applied and never hidden.

Every optimiser step of the library goes through `Guard.step`. It looks at the loss, the gradients,
and what the step would make of parameters and optimiser state. If anything is not finite the step
is dropped, which leaves the last good state in place (by induction every state is good), the
learning rates are backed off, and the event is counted; the training loop prints it. Good steps let
the learning rates recover, slowly.
"""

from collections.abc import Callable
from typing import NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import optax
from jax import lax

from fenchel.shapes import Array, PyTree, Scalar


class GuardState(NamedTuple):
    rate: Scalar  # what the learning rates are multiplied by, in (0, 1]
    streak: Array  # how many steps in a row were dropped


class Outcome(NamedTuple):
    """What came of one step."""

    dropped: Array
    grad_norm: Scalar


class Guard(eqx.Module):
    """`backoff` multiplies the learning rates at a bad step, `recovery` at a good one (up to 1).

    `patience` is how many bad steps in a row the loop bears before it stops the run.
    """

    backoff: float = eqx.field(static=True, default=0.5)
    recovery: float = eqx.field(static=True, default=1.001)
    patience: int = eqx.field(static=True, default=20)

    def init(self) -> GuardState:
        return GuardState(jnp.ones((), jnp.result_type(float)), jnp.zeros((), jnp.int32))

    def step(
        self,
        state: GuardState,
        optimiser: optax.GradientTransformation,
        loss: Scalar,
        grads: PyTree,
        params: PyTree,
        memory: PyTree,
        trust: Scalar | float = 1.0,
    ) -> tuple[PyTree, PyTree, GuardState, Outcome]:
        """(parameters, optimiser state, guard state, outcome) after one guarded step.

        `trust` shortens this one step, beside the guard's own factor.
        """
        updates, new_memory = optimiser.update(grads, memory, params)
        rate = state.rate * trust
        updates = jax.tree.map(lambda u: u * rate.astype(u.dtype), updates)
        new_params = optax.apply_updates(params, updates)
        grad_norm = jnp.sqrt(total(jnp.square, grads))
        good = jnp.isfinite(loss) & jnp.isfinite(grad_norm) & all_finite((new_params, new_memory))
        params, memory = keep_if(good, (new_params, new_memory), (params, memory))
        return params, memory, self._after(good, state), Outcome(~good, grad_norm)

    def _after(self, good: Array, state: GuardState) -> GuardState:
        recovered = jnp.minimum(state.rate * self.recovery, 1.0)
        rate = jnp.where(good, recovered, state.rate * self.backoff)
        return GuardState(rate, jnp.where(good, 0, state.streak + 1))


def all_finite(tree: PyTree) -> Array:
    """Whether every number in the tree is finite."""
    # A sum is finite only if its terms are, and costs one pass; that a sum of finite terms may
    # overflow is no loss: such parameters are as lost as infinite ones.
    return jnp.isfinite(total(jnp.abs, tree))


def total(function: Callable[[Array], Array], tree: PyTree) -> Scalar:
    """The sum of `function`, which takes numbers one by one, over all but whole ones of a tree.

    Arrays of one shape are added up before they are summed, and the sums of all rows by one sum in
    the end: many small sums take a GPU longer than all the additions.
    """
    by_shape: dict[tuple[int, ...], Array] = {}
    for leaf in filter(eqx.is_inexact_array, jax.tree.leaves(tree)):
        value = function(leaf.astype(jnp.promote_types(leaf.dtype, jnp.float32)))
        before = by_shape.get(leaf.shape)
        by_shape[leaf.shape] = value if before is None else before + value
    rows = [jnp.sum(value, axis=-1) if value.ndim > 1 else value for value in by_shape.values()]
    together = jnp.concatenate([jnp.zeros(0), *(row.ravel() for row in rows)])
    return jnp.sum(lax.optimization_barrier(together))  # or else it becomes many sums again


def keep_if(condition: Array, new: PyTree, old: PyTree) -> PyTree:
    """`new` where the condition holds, else `old`; what is not an array is the same in both."""

    def choose(a, b):
        return jnp.where(condition, a, b) if eqx.is_array(a) else a

    return jax.tree.map(choose, new, old)
