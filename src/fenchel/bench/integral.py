"""log Z of a potential in the plane, over a window around its data.

The grid must resolve the noise floor of data on a curve, a half to one per cent of a standard
deviation.
"""

from typing import NamedTuple

import jax.numpy as jnp
import numpy as np

from fenchel.evidence import integrated
from fenchel.result import Fit

MARGIN = 2.0  # standard deviations beyond the outermost data point


class Window(NamedTuple):
    """Where exp f is integrated, in the units that f sees."""

    low: np.ndarray
    high: np.ndarray

    @classmethod
    def around(cls, points: np.ndarray) -> "Window":
        margin = MARGIN * points.std(axis=0)
        return cls(points.min(axis=0) - margin, points.max(axis=0) + margin)


def log_density(fit: Fit, x: np.ndarray, window: Window) -> np.ndarray:
    """The log density at each row of x, with the model taken to be zero outside of the window.

    A net without a base measure may have no finite integral; within a window every one has.
    """
    return fit.potential(x) - log_partition(fit, window)


def log_partition(fit: Fit, window: Window) -> float:
    """log of the integral of exp f over the window, in the data's units."""
    low, high = (jnp.asarray(end, jnp.result_type(float)) for end in window)
    return integrated(fit.f, low, high).moved(fit.standardiser.log_scale).estimate
