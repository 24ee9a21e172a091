"""A plane with a density in it: its axes, its shading, and the numbers behind them."""

from typing import Any, NamedTuple

import numpy as np

from fenchel.report import style
from fenchel.report.page import marks
from fenchel.report.page.axes import Axes, Scale
from fenchel.report.page.markup import Markup
from fenchel.result import Fit

GRID = 160
WIDTH = 300.0
FLATTEST, STEEPEST = 0.5, 1.0  # of height to width; within them a unit is as long either way
LOWEST = 25.5  # nats below the highest density, in steps of a tenth, which a byte can count


class DensityMap(NamedTuple):
    """The model's density at the middles of a grid's cells."""

    axes: Axes
    log_density: np.ndarray  # (GRID, GRID), rows upwards
    normalised: bool

    @property
    def highest(self) -> float:
        """Of all cells; 0 where none has a density at all."""
        highest = float(self.log_density.max())
        return highest if np.isfinite(highest) else 0.0

    @property
    def name(self) -> str:
        return "density" if self.normalised else "density, up to a constant"

    def shading(self) -> Markup:
        """As dark as the square root of the density, so that tails are seen too."""
        return marks.shade(self.axes, np.exp(0.5 * (self.log_density - self.highest)))

    def numbers(self) -> dict[str, Any]:
        """What a browser needs to tell the density at the pointer."""
        below = np.clip(self.highest - self.log_density, 0, LOWEST)
        return {
            "size": GRID,
            "highest": self.highest,
            "below": marks.encoded(np.round(10 * below).astype(np.uint8).tobytes()),
            "x": self.axes.x[:2],
            "y": self.axes.y[:2],
            "area": self.axes.area,
            "names": [self.axes.x_name, self.axes.y_name, self.name],
        }


def plane_axes(points: np.ndarray, names: tuple[str, ...]) -> Axes:
    """Around the bulk of points (n, 2)."""
    x, y = (Scale(*style.bulk_limits(column)) for column in points.T)
    slope = float(np.clip((y.high - y.low) / (x.high - x.low), FLATTEST, STEEPEST))
    return Axes(x, y, names[0], names[1], WIDTH, WIDTH * slope)


def density_map(fit: Fit, axes: Axes) -> DensityMap:
    x, y = (_middles(scale) for scale in (axes.x, axes.y))
    grid = np.stack(np.meshgrid(x, y), axis=-1).reshape(-1, 2)
    normalised = fit.has_log_partition
    values = fit.log_density(grid) if normalised else fit.potential(grid)
    values = values if normalised or np.isnan(values).all() else values - np.nanmax(values)
    finite = np.where(np.isfinite(values), values, -np.inf)
    return DensityMap(axes, finite.reshape(GRID, GRID), normalised)


def _middles(scale: Scale) -> np.ndarray:
    edges = np.linspace(scale.low, scale.high, GRID + 1)
    return 0.5 * (edges[:-1] + edges[1:])
