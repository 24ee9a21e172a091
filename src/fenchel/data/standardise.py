"""Moving data to mean 0 and standard deviation 1 in each column, and back."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from fenchel.data.checks import as_samples
from fenchel.errors import InputError


@dataclass(frozen=True, eq=False)
class Standardiser:
    """The affine map `z = (x - mean) / scale`, column by column, in float64.

    `counting` says that the data are discrete: probabilities then have no unit, and no Jacobian.
    """

    mean: NDArray[np.float64]
    scale: NDArray[np.float64]
    counting: bool = False

    @classmethod
    def of(cls, x: ArrayLike) -> "Standardiser":
        """The map that standardises `x`.

        Sums of raw values or of their squares lose the spread when the mean is far larger, and
        overflow or underflow at extreme scales. So the columns are first moved by their mid-range
        (a subtraction of near equals, hence exact where it matters) and divided by their largest
        deviation; mean and deviation are taken of what is left, which lies within [-1, 1].
        """
        samples = as_samples(x)
        middle = samples.min(axis=0) / 2 + samples.max(axis=0) / 2
        deviation = samples - middle
        reach = np.abs(deviation).max(axis=0)
        unit = deviation / reach
        return cls(mean=middle + reach * unit.mean(axis=0), scale=reach * unit.std(axis=0))

    @classmethod
    def of_levels(cls, columns: int, width: float) -> "Standardiser":
        """The map from grey levels, each spread over a cell of this width, to [-1, 1]."""
        half = np.full(columns, (255 + width) / 2)
        return cls(mean=half, scale=half)

    @classmethod
    def coding(cls, x: ArrayLike, states: tuple[float, ...]) -> "Standardiser":
        """The map from discrete data to a model's states, in order.

        Data for two states have two values, whatever they are; for more they are whole numbers.
        """
        samples = as_samples(x)
        values = np.unique(samples)
        first, last = values[0], values[-1]
        columns = np.ones(samples.shape[1])
        if len(states) == 2 and len(values) <= 2:
            scale = (last - first) / (states[1] - states[0])
            return cls((first - scale * states[0]) * columns, scale * columns, counting=True)
        if np.any(values != np.round(values)):
            raise InputError(
                f"The data have {len(values)} values that are not all whole numbers: recode them "
                f"as 0 to {len(values) - 1}, or fit a continuous model."
            )
        if last - first + 1 > len(states):
            raise InputError(
                f"The model's variables have {len(states)} states and the data run from {first:g} "
                f"to {last:g}: use a potts model, or recode the data."
            )
        return cls((first - states[0]) * columns, columns, counting=True)

    def forward(self, x: ArrayLike) -> NDArray[np.float64]:
        """From data to standard units; the last axis holds the columns."""
        return (self._columns_of(x) - self.mean) / self.scale

    def inverse(self, z: ArrayLike) -> NDArray[np.float64]:
        """From standard units back to data."""
        return self._columns_of(z) * self.scale + self.mean

    @property
    def log_scale(self) -> float:
        """Log |det| of `inverse`: log p(x) = log p(z) - log_scale."""
        return 0.0 if self.counting else float(np.log(self.scale).sum())

    def check_dimension(self, x: ArrayLike) -> None:
        """Raise an InputError unless the last axis of `x` has the columns of the fit."""
        fitted, given = len(self.mean), (np.shape(x) or (0,))[-1]
        if given != fitted:
            raise InputError(
                f"The model was fitted to {_columns(fitted)} and this data has {given}: "
                "give it the same columns, in the same order."
            )

    def _columns_of(self, x: ArrayLike) -> NDArray[np.float64]:
        # Broadcasting would let a single column pass for any number of them.
        self.check_dimension(x)
        return np.asarray(x, dtype=np.float64)


def _columns(count: int) -> str:
    return f"{count} column{'' if count == 1 else 's'}"
