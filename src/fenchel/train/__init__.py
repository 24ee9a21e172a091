"""Training: Algorithm 1, its guard, and the loop around it."""

from fenchel.train.batches import Batches
from fenchel.train.guard import Guard, GuardState
from fenchel.train.loop import Block, run, run_block
from fenchel.train.maxmin import Info, MaxMin, TrainState

__all__ = [
    "Batches",
    "Block",
    "Guard",
    "GuardState",
    "Info",
    "MaxMin",
    "TrainState",
    "run",
    "run_block",
]
