"""Many runs of one method, trained at once and written down on the way.

After every block (an epoch: a hundredth of the run) each run's health is recorded, and whatever
`look` says of the state; every few blocks the stacked state is checkpointed. A call that is cut
short goes on from there, and ends with what it would have ended with.
"""

import time
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import jax
import numpy as np

from fenchel.bench.folder import BenchFolder
from fenchel.bench.progress import Progressing
from fenchel.bench.spread import gathered, spread
from fenchel.build import Parts, noise_floor
from fenchel.config import Config
from fenchel.evaluate import lost_from
from fenchel.shapes import Points
from fenchel.stacking import stack
from fenchel.train import AbstractLearner, Batches, Info, TrainState, checkpoint, run_many

EPOCHS = 100
CHECKPOINT_EVERY = 10  # blocks

Look = Callable[[TrainState], tuple[TrainState, dict[str, Any]]]
"""Of the state after a block: the state to keep, and what to record, a value a run."""


class Together(NamedTuple):
    """Stacked runs, and what learns them."""

    learner: AbstractLearner
    state: TrainState
    batches: Batches
    jobs: int


class Entry(NamedTuple):
    """One run of several: its settings, its data as f sees them, and its parts."""

    config: Config
    points: Points
    parts: Parts


def stacked(entries: Sequence[Entry]) -> Together:
    """All of them as one; what they learn by is the same."""
    config, (potential, _, learner) = entries[0].config, entries[0].parts
    states = [
        learner.init(
            each.parts.potential, each.parts.sampler, each.points, jax.random.key(each.config.seed)
        )
        for each in entries
    ]
    floor = noise_floor(config, potential, learner)
    batches = [Batches(e.points, config.training.batch, floor) for e in entries]
    return Together(learner, stack(states), stack(batches), len(entries))


class Trained(NamedTuple):
    """The stacked state at the end, and the record of all blocks."""

    state: TrainState
    blocks: list[dict[str, Any]]

    @property
    def seconds(self) -> float | None:
        """Of the whole training, by the blocks that did not begin with compiling."""
        warm = [block for block in self.blocks if not block["compiled"]]
        if not warm:
            return None
        rate = sum(block["seconds"] for block in warm) / sum(block["length"] for block in warm)
        return rate * sum(block["length"] for block in self.blocks)

    def of_run(self, name: str, index: int) -> list[Any]:
        """What was recorded of one run, block by block."""
        return [block[name][index] for block in self.blocks]

    def health(self, index: int, patience: int, dim: int) -> dict[str, Any]:
        """How a run went; the last word on whether it diverged."""
        lag = self.of_run("lag", index)[-1]
        gave_up = max(self.of_run("streak", index)) >= patience
        return {
            "dropped_steps": sum(self.of_run("dropped", index)),
            "shortened": sum(self.of_run("shortened", index)),
            "lag": lag,
            "diverged": bool(gave_up or lag is None or lag >= lost_from(dim)),
        }


def train(
    runs: Together,
    steps: int,
    folder: BenchFolder,
    progress: Progressing,
    look: Look | None = None,
) -> Trained:
    """Until iteration `steps`, from where the folder's newest checkpoint is."""
    state, blocks = _where_it_stands(runs.state, folder)
    state, batches = spread((state, runs.batches), runs.jobs)
    compiled: set[int] = set()
    length = max(1, steps // EPOCHS)
    progress.reach(int(state.iteration[0]))
    while (iteration := int(state.iteration[0])) < steps:
        began = time.perf_counter()
        target = min(iteration + length, steps)
        (block,) = run_many(runs.learner, state, batches, target, length)
        state, row = block.state, _health(block.info)
        row |= {"iteration": target, "length": target - iteration}
        row |= {"seconds": time.perf_counter() - began, "compiled": row["length"] not in compiled}
        compiled.add(row["length"])
        if look is not None:
            state, seen = look(state)
            row |= seen
        blocks.append(row)
        if len(blocks) % CHECKPOINT_EVERY == 0 or target == steps:
            # The record first: one that is ahead of its checkpoint is cut back to it.
            folder.write("blocks", blocks)
            checkpoint.save(folder.path / "checkpoints", state)
        progress.reach(target)
    return Trained(gathered(state), blocks)


def _where_it_stands(
    state: TrainState, folder: BenchFolder
) -> tuple[TrainState, list[dict[str, Any]]]:
    iteration = checkpoint.latest(folder.path / "checkpoints")
    if iteration is None:
        return state, []
    restored = checkpoint.restore(folder.path / "checkpoints", iteration, state)
    blocks = folder.read("blocks") or []
    return restored, [block for block in blocks if block["iteration"] <= iteration]


def _health(info: Info) -> dict[str, Any]:
    """Of a block, a value a run."""
    streak = np.maximum(info.potential_streak, info.sampler_streak)
    return {
        "dropped": (info.dropped_potential + info.dropped_sampler).sum(1).tolist(),
        "shortened": info.shortened.sum(1).tolist(),
        "streak": streak.max(1).tolist(),
        "lag": finite(np.mean(info.lag, 1)),
    }


def finite(values: Sequence[float] | np.ndarray) -> list[float | None]:
    """What is not finite becomes None: JSON has no other word for it."""
    return [float(value) if np.isfinite(value) else None for value in values]
