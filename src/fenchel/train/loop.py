"""The training loop: blocks of iterations compiled as one program, and a Python loop over them."""

from collections.abc import Generator
from typing import NamedTuple

import equinox as eqx
import jax
import numpy as np
from jax import lax

from fenchel.errors import DivergenceError
from fenchel.train.batches import AbstractBatches
from fenchel.train.compiling import carried_out, compiled
from fenchel.train.learner import AbstractLearner
from fenchel.train.state import Info, TrainState


class Block(NamedTuple):
    """Where the run stands after a block, and the health of each iteration in it."""

    state: TrainState
    info: Info  # of NumPy arrays, an entry an iteration
    iteration: int


def run_block(
    learner: AbstractLearner, state: TrainState, batches: AbstractBatches, length: int
) -> tuple[TrainState, Info]:
    """`length` iterations under one `lax.scan`; may be `vmap`ped over states and data."""
    arrays, static = eqx.partition(state, eqx.is_array)

    def iteration(arrays, _):
        state = eqx.combine(arrays, static)
        # Every iteration has a key of its own, so that a resumed run draws what it would have.
        batch_key, step_key = jax.random.split(jax.random.fold_in(state.key, state.iteration))
        batch = batches.draw(learner.batches, batch_key)
        state, info = learner.step(state, batch, step_key)
        return eqx.filter(state, eqx.is_array), info

    arrays, info = lax.scan(iteration, arrays, length=length)
    return eqx.combine(arrays, static), info


def run(
    learner: AbstractLearner,
    state: TrainState,
    batches: AbstractBatches,
    steps: int,
    block: int = 100,
) -> Generator[Block, None, None]:
    """Train until iteration `steps`, handing out each block as it ends.

    Raises a `DivergenceError` when a guard's patience is over; the state last handed out is good.
    """
    iteration = int(state.iteration)
    while iteration < steps:
        length = min(block - iteration % block, steps - iteration)
        state, info = carried_out(compiled(run_block), learner, state, batches, length)
        info = jax.tree.map(np.asarray, info)
        iteration += length
        yield Block(state, info, iteration)  # before the check: what happened is to be recorded
        check_health(learner, info, iteration)


def check_health(learner: AbstractLearner, info: Info, iteration: int) -> None:
    """Stop a run whose steps are no longer finite."""
    who = stuck(learner, info)
    if who is None:
        return
    worst = int(np.max(getattr(info, f"{who}_streak")))
    rate = float(getattr(info, f"{who}_rate")[-1])
    raise DivergenceError(
        f"Training stopped at iteration {iteration}: {worst} steps of the {who} in a row were not "
        f"finite, though its learning rate was backed off to {rate:.1e} of what was asked. None of "
        "them was applied. Try smaller learning rates, a smaller dynamics step size, or a tighter "
        "clip on the score; if f is your own, check that it is finite and smooth wherever samples "
        "may go."
    )


def stuck(learner: AbstractLearner, info: Info) -> str | None:
    """Which of the two has exhausted its guard's patience, if any."""
    for who in ("potential", "sampler"):
        if np.max(getattr(info, f"{who}_streak")) >= learner.patience:
            return who
    return None
