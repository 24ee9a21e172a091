"""Both at once: f and its sampler learn from the same draws."""

import equinox as eqx
import jax
import jax.numpy as jnp

from fenchel.errors import InputError
from fenchel.estimators import AbstractBound, AbstractCriterion, FenchelBound
from fenchel.parameters import split
from fenchel.samplers import AbstractSampler
from fenchel.shapes import Array, Key, PyTree
from fenchel.train.maxmin import Health, MaxMin
from fenchel.train.state import Info, TrainState


class Simultaneous(MaxMin):
    """One draw an iteration, and one pass back through it for both.

    The paper's objective is one function of f and of the sampler, which the one ascends and the
    other descends. Where a draw is dear (thirty steps through a large net), another one for each of
    the two would double the price of an iteration. A criterion of f's own, such as `Pairs`, is
    ascended on the same draw, by a second pass that ends there.
    """

    bound: AbstractCriterion = FenchelBound()
    anchor: float = eqx.field(static=True, default=0.0)

    @property
    def batches(self) -> int:
        return 1

    def check(self, sampler: AbstractSampler) -> None:
        super().check(sampler)
        if self.anchor or (isinstance(self.bound, AbstractBound) and self.bound != self.dual):
            raise InputError(
                "Learning both at once is for the paper's objective, which is the same for f and "
                "for its sampler, or for pairs: use the FenchelBound for both, and no anchor."
            )

    def step(self, state: TrainState, batches: Array, key: Key) -> tuple[TrainState, Info]:
        """One iteration on one batch."""
        batch = batches[0]
        f_params, f_static = split(state.potential)
        sampler_params, sampler_static = split(state.sampler)

        def of_both(f_params: PyTree, sampler_params: PyTree):
            f = eqx.combine(f_params, f_static)
            sampler = eqx.combine(sampler_params, sampler_static)
            total, (seen, memory) = self.objective(f, sampler, batch, state.sampler_state, key)
            return (total, seen.log_likelihood), (seen, memory)

        (total, _), pull, (seen, memory) = jax.vjp(of_both, f_params, sampler_params, has_aux=True)
        particles, at_data, value = seen
        one, zero = jnp.ones_like(total), jnp.zeros_like(total)
        ascent, descent = pull((one, zero))
        if self.bound != self.dual:
            _, descent = pull((zero, one))
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
