"""Where a run stands, and how it is."""

from typing import NamedTuple

import equinox as eqx
import jax.numpy as jnp
import optax

from fenchel.parameters import learnt, split
from fenchel.samplers import AbstractSampler
from fenchel.shapes import Array, Key, PyTree, Scalar
from fenchel.train.guard import GuardState, Outcome, keep_if


class TrainState(NamedTuple):
    """Everything that a run needs to go on from here, bit for bit."""

    potential: PyTree
    sampler: AbstractSampler
    averages: PyTree  # moving averages of what is learnt in both
    potential_memory: PyTree  # the optimisers' states
    sampler_memory: PyTree
    sampler_state: PyTree
    estimator_state: PyTree  # a classical estimator's chains, or the noise that it was fitted with
    potential_guard: GuardState
    sampler_guard: GuardState
    iteration: Array
    key: Key

    def averaged(self) -> tuple[PyTree, AbstractSampler]:
        """The potential and the sampler at their moving averages: what a run hands out."""
        _, static = split((self.potential, self.sampler))
        return eqx.combine(self.averages, static)

    def advanced(self, good: Array, decay: float) -> "TrainState":
        """One iteration on; the averages follow if f's step was good."""
        now = learnt((self.potential, self.sampler))
        moved = optax.incremental_update(now, self.averages, 1 - decay)
        averages = keep_if(good, moved, self.averages)
        return self._replace(averages=averages, iteration=self.iteration + 1)


class Info(NamedTuple):
    """The health of one iteration."""

    loss: Scalar  # what f descends
    log_likelihood: Scalar  # of the batch, with log Z by the bound that is trained on
    log_partition: Scalar  # the many-sample bound
    log_partition_lower: Scalar  # the paper's bound
    ess: Scalar  # effective sample size of the importance weights, as a fraction
    potential_grad_norm: Scalar
    sampler_grad_norm: Scalar
    potential_rate: Scalar  # the guards' factors on the learning rates
    sampler_rate: Scalar
    lag: Scalar  # how far the sampler is behind, in nats
    trust: Scalar  # the factor on the potential's step that follows from it
    acceptance: Scalar  # of Metropolis proposals; NaN where there are none
    strain: Scalar  # of the flows, at its largest; from 1 on their steps are shortened
    shortened: Array  # whether they were
    dropped_potential: Array  # how many steps the guard dropped in this iteration
    dropped_sampler: Array
    potential_streak: Array  # how many in a row by now
    sampler_streak: Array

    @classmethod
    def of_loss(
        cls,
        loss: Scalar,
        outcome: Outcome,
        guard: GuardState,
        lag: Scalar,
        trust: Scalar,
        acceptance: Scalar,
    ) -> "Info":
        """Of an iteration without a learnt sampler: what is about one is not a number, or none."""
        unknown, none = jnp.full_like(loss, jnp.nan), jnp.zeros((), jnp.int32)
        zero, one = jnp.zeros_like(loss), jnp.ones_like(loss)
        return cls(
            loss=loss,
            log_likelihood=unknown,
            log_partition=unknown,
            log_partition_lower=unknown,
            ess=unknown,
            potential_grad_norm=outcome.grad_norm,
            sampler_grad_norm=zero,
            potential_rate=guard.rate,
            sampler_rate=one,
            lag=lag,
            trust=trust,
            acceptance=acceptance,
            strain=zero,
            shortened=none,
            dropped_potential=outcome.dropped.astype(jnp.int32),
            dropped_sampler=none,
            potential_streak=guard.streak,
            sampler_streak=none,
        )
