"""Both at once: f and its sampler learn from the same draws."""

import equinox as eqx
import jax
import jax.numpy as jnp

from fenchel.errors import InputError
from fenchel.estimators import (
    AbstractBound,
    FenchelBound,
)
from fenchel.parameters import split
from fenchel.samplers import AbstractSampler
from fenchel.shapes import Array, Key, PyTree
from fenchel.train.maxmin import Health, MaxMin
from fenchel.train.state import Info, TrainState


class Simultaneous(MaxMin):
    """One draw an iteration, and one pass back through it for both.

    The paper's objective is one function of f and of the sampler, which the one ascends and the
    other descends. Where a draw is dear (thirty steps through a large net), another one for each of
    the two would double the price of an iteration.
    """

    bound: AbstractBound = FenchelBound()
    anchor: float = eqx.field(static=True, default=0.0)

    @property
    def batches(self) -> int:
        return 1

    def check(self, sampler: AbstractSampler) -> None:
        super().check(sampler)
        if self.bound != self.dual or self.anchor:
            raise InputError(
                "Learning both at once is for the paper's objective, which is the same for f and "
                "for its sampler: use the FenchelBound for both, and no anchor."
            )

    def step(self, state: TrainState, batches: Array, key: Key) -> tuple[TrainState, Info]:
        """One iteration on one batch."""
        batch = batches[0]
        f_params, f_static = split(state.potential)
        sampler_params, sampler_static = split(state.sampler)

        def of_both(f_params: PyTree, sampler_params: PyTree):
            f = eqx.combine(f_params, f_static)
            sampler = eqx.combine(sampler_params, sampler_static)
            return self.objective(f, sampler, batch, state.sampler_state, key)

        (total, (seen, memory)), (ascent, descent) = jax.value_and_grad(
            of_both, argnums=(0, 1), has_aux=True
        )(f_params, sampler_params)
        particles, at_data, value = seen
        lag = self.lag(state, at_data, particles)
        trust = self.wait.trust(lag, batch.shape[-1])
        f_params, f_memory, f_guard, f_outcome = self.guard.step(
            state.potential_guard,
            self.potential_optimiser,
            -total,
            jax.tree.map(jnp.negative, ascent),
            f_params,
            state.potential_memory,
            trust,
        )
        sampler_params, sampler_memory, sampler_guard, sampler_outcome = self.guard.step(
            state.sampler_guard,
            self.sampler_optimiser(),
            value,
            descent,
            sampler_params,
            state.sampler_memory,
        )
        state = state._replace(
            potential=eqx.combine(f_params, f_static),
            sampler=eqx.combine(sampler_params, sampler_static),
            potential_memory=f_memory,
            sampler_memory=sampler_memory,
            sampler_state=memory,
            potential_guard=f_guard,
            sampler_guard=sampler_guard,
        )
        health = Health(particles, at_data, -total, value, lag, trust)
        return self.concluded(state, health, f_outcome, sampler_outcome)
