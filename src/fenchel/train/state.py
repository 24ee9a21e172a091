"""Where a run stands, and how it is."""

from typing import NamedTuple

import equinox as eqx

from fenchel.parameters import split
from fenchel.samplers import AbstractSampler
from fenchel.shapes import Array, Key, PyTree, Scalar
from fenchel.train.guard import GuardState


class TrainState(NamedTuple):
    """Everything that a run needs to go on from here, bit for bit."""

    potential: PyTree
    sampler: AbstractSampler
    averages: PyTree  # moving averages of what is learnt in both
    potential_memory: PyTree  # the optimisers' states
    sampler_memory: PyTree
    sampler_state: PyTree
    potential_guard: GuardState
    sampler_guard: GuardState
    iteration: Array
    key: Key

    def averaged(self) -> tuple[PyTree, AbstractSampler]:
        """The potential and the sampler at their moving averages: what a run hands out."""
        _, static = split((self.potential, self.sampler))
        return eqx.combine(self.averages, static)


class Info(NamedTuple):
    """The health of one iteration."""

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
