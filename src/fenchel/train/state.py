"""Where a run stands, and how it is."""

from typing import NamedTuple

import equinox as eqx
import jax.numpy as jnp
import optax

from fenchel.parameters import learnt, split
from fenchel.samplers import AbstractSampler, Embedding
from fenchel.shapes import Array, Key, PyTree, Scalar
from fenchel.train.guard import GuardState, Outcome, keep_if
from fenchel.weights import renewed

SETTLING = 20  # power iterations, after which a spectral norm fits its averaged weight


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

    def handed_out(self, key: Key) -> tuple[PyTree, AbstractSampler]:
        """As `averaged`, with what follows the parameters (norms, batch statistics) brought up to
        these averages."""
        f, sampler = self.averaged()
        f, sampler = renewed((f, sampler), SETTLING)
        return f, sampler.settled(key) if isinstance(sampler, Embedding) else sampler

    def advanced(self, good: Array, decay: float) -> "TrainState":
        """One iteration on; the averages follow if f's step was good."""
        now = learnt((self.potential, self.sampler))
        moved = optax.incremental_update(now, self.averages, 1 - decay)
        return self._replace(
            # Spectral norms move on between iterations, and never within one.
            potential=renewed(self.potential),
            sampler=renewed(self.sampler),
            averages=keep_if(good, moved, self.averages),
            iteration=self.iteration + 1,
        )


class Info(NamedTuple):
    """The health of one iteration."""

    loss: Scalar  # what f descends
    log_likelihood: Scalar  # of the batch, with log Z by the bound that is trained on
    potential_data: Scalar  # the mean of f over the data, and over the draws
    potential_draws: Scalar
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
            potential_data=unknown,
            potential_draws=unknown,
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
