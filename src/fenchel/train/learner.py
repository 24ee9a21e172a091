"""What the training loop needs of whoever learns."""

from abc import abstractmethod

import equinox as eqx

from fenchel.samplers import AbstractSampler
from fenchel.shapes import Array, Key, Points, Potential
from fenchel.train.state import Info, TrainState


class AbstractLearner(eqx.Module):
    """One iteration at a time."""

    @property
    @abstractmethod
    def batches(self) -> int:
        """How many batches of data an iteration sees."""

    @property
    @abstractmethod
    def patience(self) -> int:
        """How many steps in a row may fail before the run is stopped."""

    @property
    @abstractmethod
    def noise_floor(self) -> float:
        """How much noise the data need on them, in standard deviations, unless a run says."""

    @abstractmethod
    def init(
        self, potential: Potential, sampler: AbstractSampler, data: Points, key: Key
    ) -> TrainState:
        """The state of a run that has not begun."""

    @abstractmethod
    def step(self, state: TrainState, batches: Array, key: Key) -> tuple[TrainState, Info]:
        """One iteration."""
