"""Figures of the benchmarks: many small panels, one look."""

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from fenchel.report import style

COLUMNS = 8  # at most; rows are of one length as far as can be
GRID = 120
DOTS = 1_500
CELL = 1.5  # inches
LINES = (style.DATA, style.SAMPLES, style.THIRD, style.INK, style.ALARM)


class Learnt(NamedTuple):
    """A set in the plane as it is, as it is drawn, and as it is scored."""

    name: str
    data: np.ndarray
    samples: np.ndarray
    log_density: Callable[[np.ndarray], np.ndarray]


def landscape_figure(entries: Sequence[Learnt], *, title: str) -> Figure:
    """For each set, from top to bottom: data, samples, and the learnt density."""
    rows = -(-len(entries) // COLUMNS)
    columns = -(-len(entries) // rows)
    size = (CELL * columns + 0.3, (3 * CELL + 0.25) * rows + 0.4)
    with style.new_figure(title, size) as figure:
        grid = figure.subplots(3 * rows, columns, squeeze=False)
        for axes in grid.flat:
            axes.set_axis_off()
        for index, entry in enumerate(entries):
            row, column = divmod(index, columns)
            _learnt(grid[3 * row : 3 * row + 3, column], entry, named=column == 0)
    return figure


def stages_figure(stages: dict[str, list[np.ndarray]], data: dict[str, np.ndarray]) -> Figure:
    """Samples after 0, 1, 2, ... steps of the dynamics, a row a set, beside the data."""
    steps = max(map(len, stages.values()))
    size = (CELL * 1.25 * (steps + 1), CELL * 1.25 * len(stages) + 0.5)
    with style.new_figure("From the start to the samples", size) as figure:
        grid = figure.subplots(len(stages), steps + 1, squeeze=False)
        for row, (name, clouds) in zip(grid, stages.items(), strict=True):
            for axes, cloud in zip(row, clouds, strict=False):
                _cloud(axes, cloud, data[name], style.SAMPLES)
            _cloud(row[-1], data[name], data[name], style.DATA)
            _label(row[0], name)
        for axes, heading in zip(grid[0], [*map(_after, range(steps)), "data"], strict=True):
            axes.set_title(heading)
    return figure


def error_figure(
    dims: Sequence[int], curves: dict[str, dict[str, list[float]]], *, title: str
) -> Figure:
    """Errors by dimension: a panel a parameter, a line a method."""
    with style.new_figure(title, (8.4, 3.6)) as figure:
        panels = figure.subplots(1, len(curves), sharey=True, squeeze=False)[0]
        for axes, (name, methods) in zip(panels, curves.items(), strict=True):
            for colour, (method, errors) in zip(LINES, methods.items(), strict=False):
                axes.plot(dims, errors, color=colour, marker="o", ms=3.5, label=method)
            axes.set(xscale="log", yscale="log", xlabel="dimension", title=name)
            axes.set_xticks(dims, labels=[str(dim) for dim in dims])
            axes.minorticks_off()
        panels[0].set_ylabel("root mean square error")
        panels[-1].legend(loc="best")
    return figure


def _after(steps: int) -> str:
    return "start" if steps == 0 else f"{steps} step{'s' if steps > 1 else ''}"


def _learnt(column: np.ndarray, entry: Learnt, named: bool) -> None:
    data, samples, density = column
    data.set_title(entry.name)
    _cloud(data, entry.data, entry.data, style.DATA)
    _cloud(samples, entry.samples, entry.data, style.SAMPLES)
    limits = _limits(entry.data)
    x, y = np.meshgrid(*(np.linspace(*interval, GRID) for interval in limits))
    values = np.asarray(entry.log_density(np.column_stack([x.ravel(), y.ravel()])))
    # The square root of the density: on a linear scale a thin set is one bright thread.
    heights = np.exp(0.5 * (values - values.max())).reshape(x.shape)
    extent: Any = (*limits[0], *limits[1])
    density.imshow(heights, origin="lower", extent=extent, cmap=style.DENSITY_MAP, aspect="auto")
    for axes, name in zip(column, ("data", "samples", "√ density"), strict=True):
        if named:
            _label(axes, name)


def _cloud(axes: Axes, points: np.ndarray, data: np.ndarray, colour: str) -> None:
    horizontal, vertical = _limits(data)
    finite = points[np.isfinite(points).all(axis=1)][:DOTS]
    x, y = finite.T
    axes.scatter(x, y, s=1.2, color=colour, alpha=0.5, linewidths=0, rasterized=True)
    axes.set(xlim=horizontal, ylim=vertical, xticks=[], yticks=[])
    axes.set_axis_off()


def _limits(data: np.ndarray) -> tuple[style.Limits, style.Limits]:
    return style.bulk_limits(data[:, 0]), style.bulk_limits(data[:, 1])


def _label(axes: Axes, text: str) -> None:
    """To the left of a panel without axes."""
    axes.text(
        -0.04, 0.5, text, transform=axes.transAxes, rotation=90, ha="right", va="center", size=8.5
    )
