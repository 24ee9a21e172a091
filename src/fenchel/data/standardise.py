"""Moving data to mean 0 and standard deviation 1 in each column, and back."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from fenchel.data.checks import as_samples
from fenchel.errors import InputError


@dataclass(frozen=True, eq=False)
class Standardiser:
    """The affine map `z = (x - mean) / scale`, column by column, in float64."""

    mean: NDArray[np.float64]
    scale: NDArray[np.float64]

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

    def forward(self, x: ArrayLike) -> NDArray[np.float64]:
        """From data to standard units; the last axis holds the columns."""
        return (self._columns_of(x) - self.mean) / self.scale

    def inverse(self, z: ArrayLike) -> NDArray[np.float64]:
        """From standard units back to data."""
        return self._columns_of(z) * self.scale + self.mean

    @property
    def log_scale(self) -> float:
        """Log |det| of `inverse`: log p(x) = log p(z) - log_scale."""
        return float(np.log(self.scale).sum())

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
