"""Training: Algorithm 1, its guard, and the loop around it."""

from fenchel.train.batches import Batches
from fenchel.train.guard import Guard, GuardState
from fenchel.train.loop import Block, run, run_block, stuck
from fenchel.train.many import run_many
from fenchel.train.maxmin import MaxMin
from fenchel.train.state import Info, TrainState
from fenchel.train.wait import Wait

__all__ = [
    "Batches",
    "Block",
    "Guard",
    "GuardState",
    "Info",
    "MaxMin",
    "TrainState",
    "Wait",
    "run",
    "run_block",
    "run_many",
    "stuck",
]
