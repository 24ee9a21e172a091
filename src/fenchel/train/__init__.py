"""Training: Algorithm 1, the classical estimators, the guard, and the loop around them."""

from fenchel.train.batches import AbstractBatches, Batches
from fenchel.train.guard import Guard, GuardState
from fenchel.train.learner import AbstractLearner
from fenchel.train.loop import Block, run, run_block, stuck
from fenchel.train.many import run_many
from fenchel.train.maxmin import MaxMin
from fenchel.train.metrics import metrics_row
from fenchel.train.minimise import Minimise
from fenchel.train.picture_batches import PictureBatches
from fenchel.train.simultaneous import Simultaneous
from fenchel.train.state import Info, TrainState
from fenchel.train.wait import Wait

__all__ = [
    "AbstractBatches",
    "AbstractLearner",
    "Batches",
    "Block",
    "Guard",
    "GuardState",
    "Info",
    "MaxMin",
    "Minimise",
    "PictureBatches",
    "Simultaneous",
    "TrainState",
    "Wait",
    "metrics_row",
    "run",
    "run_block",
    "run_many",
    "stuck",
]
