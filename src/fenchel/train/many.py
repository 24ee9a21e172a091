"""Many runs at once: seeds, or data sets of one shape, under one `vmap`."""

from collections.abc import Generator

import equinox as eqx
import jax
import numpy as np

from fenchel.train.batches import AbstractBatches
from fenchel.train.compiling import carried_out, compiled
from fenchel.train.learner import AbstractLearner
from fenchel.train.loop import Block, run_block
from fenchel.train.state import Info, TrainState


def run_many(
    learner: AbstractLearner,
    states: TrainState,
    batches: AbstractBatches,
    steps: int,
    block: int = 100,
) -> Generator[Block, None, None]:
    """As `run`, for stacked states and stacked data; `info` has the runs as its first axis.

    A run whose steps are no longer finite does not stop the others: its guard holds it at its last
    good state, and its streak tells.
    """
    iteration = int(states.iteration[0])
    while iteration < steps:
        length = min(block - iteration % block, steps - iteration)
        states, info = carried_out(compiled(_many), learner, states, batches, length)
        iteration += length
        yield Block(states, jax.tree.map(np.asarray, info), iteration)


def _many(
    learner: AbstractLearner, states: TrainState, batches: AbstractBatches, length: int
) -> tuple[TrainState, Info]:
    one = lambda state, data: run_block(learner, state, data, length)  # noqa: E731
    return eqx.filter_vmap(one)(states, batches)
