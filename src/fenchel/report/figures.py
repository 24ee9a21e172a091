"""Figures of data, samples, densities and training, drawn without pyplot and its global state.

Limits follow the bulk of the data. What falls outside them is not hidden: a caption counts it.
"""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import matplotlib as mpl
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from fenchel.errors import InputError
from fenchel.report import style

LogDensity = Callable[[np.ndarray], Any]
"""A vectorised log density, `(m, d) -> (m,)`."""

CORNER_COLUMNS = 5
GRID = 250


class Panel(NamedTuple):
    """A panel of `training_figure`: metrics in one unit, each with its name and colour."""

    title: str
    curves: dict[str, tuple[str, str]]
    settings: dict[str, Any]


class Moments(NamedTuple):
    """Of data and of samples, one a column or pair, with their difference's standard error."""

    title: str
    data: np.ndarray
    samples: np.ndarray
    error: np.ndarray


TRAINING_PANELS = (
    Panel(
        "Nats",
        {
            "log_partition": ("log Z", style.DATA),
            "log_partition_lower": ("lower bound on log Z", style.THIRD),
            "log_likelihood": ("log likelihood", style.SAMPLES),
        },
        {},
    ),
    Panel("Loss", {"loss": ("loss", style.DATA)}, {}),
    Panel(
        "Mean of f",
        {
            "potential_data": ("data", style.DATA),
            "potential_draws": ("draws", style.SAMPLES),
        },
        {},
    ),
    Panel(
        "Effective sample size / batch size", {"ess": ("sampler", style.DATA)}, {"ylim": (0, 1.05)}
    ),
    Panel(
        "Gradient norm",
        {
            "potential_grad_norm": ("potential", style.DATA),
            "sampler_grad_norm": ("sampler", style.SAMPLES),
        },
        {"yscale": "log"},
    ),
)


def samples_figure(
    data: np.ndarray, samples: np.ndarray, *, names: Sequence[str] | None = None, title: str
) -> Figure:
    """Data against samples: histograms in 1-D, two panels in 2-D, else a corner of 5 columns."""
    data, samples = _points(data, "data"), _points(samples, "samples")
    d = data.shape[1]
    if samples.shape[1] != d:
        raise InputError(
            f"The data have {d} columns and the samples {samples.shape[1]}: "
            "give both the same columns."
        )
    draw = {1: _overlaid, 2: _side_by_side}.get(d, _corner)
    with style.new_figure(title) as figure:
        draw(figure, data, samples, _column_names(names, d))
    return figure


def moments_figure(data: np.ndarray, samples: np.ndarray, *, title: str) -> Figure:
    """Discrete data against samples: each column's mean, and each pair's covariance.

    Points of discrete data lie on one another; their moments do not. The bars are two standard
    errors: of a perfect sampler's, 95 in 100 meet the line.
    """
    both = compared_moments(_points(data, "data"), _points(samples, "samples"))
    with style.new_figure(title, (8.4, 4.2)) as figure:
        for axes, moments in zip(figure.subplots(1, 2), both, strict=True):
            _against(axes, moments)
    return figure


def compared_moments(data: np.ndarray, samples: np.ndarray) -> tuple[Moments, Moments]:
    """The means of the columns, and the covariances of the pairs."""
    upper = np.triu_indices(data.shape[1], 1)
    mine, theirs = (_products(points)[:, *upper] for points in (data, samples))
    return (
        _moments("Mean of each column", data, samples),
        _moments("Covariance of each pair", mine, theirs),
    )


def _moments(title: str, data: np.ndarray, samples: np.ndarray) -> Moments:
    error = data.std(axis=0) * (1 / len(data) + 1 / len(samples)) ** 0.5
    return Moments(title, data.mean(axis=0), samples.mean(axis=0), error)


def _products(points: np.ndarray) -> np.ndarray:
    """(row, column, column): the products of deviations, whose means are covariances."""
    deviations = points - points.mean(axis=0)
    return deviations[:, :, None] * deviations[:, None, :]


def _against(axes: Axes, moments: Moments) -> None:
    title, data, samples, error = moments
    both = np.concatenate([data, samples]) if data.size else np.zeros(1)
    ends = np.array([both.min(), both.max()]) + 0.05 * max(np.ptp(both), 1e-6) * np.array([-1, 1])
    axes.plot(ends, ends, color=style.DATA, lw=1)
    axes.errorbar(
        data, samples, yerr=2 * error, fmt="o", ms=4, color=style.SAMPLES, ecolor=style.DATA, lw=0.8
    )
    axes.set(xlabel="data", ylabel="samples", title=title)


def density_figure(
    log_density: LogDensity,
    data: np.ndarray,
    *,
    samples: np.ndarray | None = None,
    names: Sequence[str] | None = None,
    title: str,
) -> Figure:
    """The learnt density: a curve in 1-D, a heat map in 2-D, else how the log density spreads.

    Beyond two dimensions `samples`, where given, are scored beside the data: those of a good
    sampler have the same histogram.
    """
    data = _points(data, "data")
    d = data.shape[1]
    with style.new_figure(title) as figure:
        if d == 1:
            _density_curve(figure, log_density, data, _column_names(names, d)[0])
        elif d == 2:
            _density_map(figure, log_density, data, _column_names(names, d))
        else:
            _density_scores(figure, log_density, data, samples)
    return figure


def training_figure(metrics: list[dict[str, Any]], *, title: str = "Training") -> Figure:
    """The health of a run, by iteration: bounds and likelihood, sample size, gradient norms.

    Metrics that were not recorded are left out. Red lines mark iterations with skipped steps.
    """
    recorded = {key for row in metrics for key, value in row.items() if value is not None}
    panels = [panel for panel in TRAINING_PANELS if recorded & panel.curves.keys()]
    if not panels:
        raise InputError("There are no metrics to draw: train for at least one iteration first.")
    iterations = np.array([row.get("iteration", index) for index, row in enumerate(metrics)])
    skipped = iterations[[row.get("skipped", 0) > 0 for row in metrics]]
    with style.new_figure(title, (7.0, 0.7 + 1.6 * len(panels))) as figure:
        column = figure.subplots(len(panels), 1, sharex=True, squeeze=False)[:, 0]
        for axes, panel in zip(column, panels, strict=True):
            _curves(axes, panel, metrics, iterations)
            axes.vlines(
                skipped, 0, 1, style.ALARM, alpha=0.35, lw=0.8, transform=axes.get_xaxis_transform()
            )
        column[-1].set(xlabel="iteration", xmargin=0.01)
    return figure


def save(figure: Figure, path: str | Path) -> None:
    """Write `figure` as a PNG file at 150 dots per inch."""
    with mpl.rc_context(style.RC):
        figure.savefig(path, format="png", dpi=150, bbox_inches="tight", pad_inches=0.15)


def _overlaid(figure: Figure, data: np.ndarray, samples: np.ndarray, names: list[str]) -> None:
    axes = figure.subplots()
    limits = style.bulk_limits(data)
    style.histograms(axes, _captioned(data, samples, [limits], 0), limits)
    axes.set(xlabel=names[0], ylabel="density")
    style.legend_above(axes)


def _side_by_side(figure: Figure, data: np.ndarray, samples: np.ndarray, names: list[str]) -> None:
    x_limits, y_limits = limits = style.bulk_limits(data[:, 0]), style.bulk_limits(data[:, 1])
    slope = float(np.clip(np.ptp(y_limits) / np.ptp(x_limits), 0.4, 1.5))
    figure.set_size_inches(8.4, 3.75 * slope + 1.2)
    left, right = figure.subplots(1, 2, sharey=True)
    for axes, name, points, colour in (
        (left, "Data", data, style.DATA),
        (right, "Samples", samples, style.SAMPLES),
    ):
        style.dots(axes, {colour: points})
        style.frame(axes, limits, names)
        axes.set_aspect("equal")
        axes.set_title(style.caption(name, points, limits))
    right.set_ylabel("")


def _corner(figure: Figure, data: np.ndarray, samples: np.ndarray, names: list[str]) -> None:
    size = min(data.shape[1], CORNER_COLUMNS)
    data, samples = data[:, :size], samples[:, :size]
    limits = [style.bulk_limits(column) for column in data.T]
    figure.set_size_inches(1.7 * size, 1.7 * size + 0.4)
    grid = figure.subplots(size, size, sharex="col")
    for (row, column), axes in np.ndenumerate(grid):
        if row < column:
            axes.remove()
        elif row == column:
            style.histograms(axes, _captioned(data, samples, limits, row), limits[row])
            axes.set(yticks=[], xlabel=names[row])
            axes.spines["left"].set_visible(False)
        else:
            pair = [column, row]
            clouds = {style.DATA: data[:, pair], style.SAMPLES: samples[:, pair]}
            style.dots(axes, clouds, size=3.0)
            style.frame(axes, (limits[column], limits[row]), [names[column], names[row]])
        axes.label_outer()
    figure.legend(*grid[0, 0].get_legend_handles_labels(), loc="upper right")


def _captioned(
    data: np.ndarray, samples: np.ndarray, limits: Sequence[style.Limits], column: int
) -> dict[str, np.ndarray]:
    clouds = (("Data", data), ("Samples", samples))
    return {style.caption(name, cloud, limits): cloud[:, column] for name, cloud in clouds}


def _density_curve(figure: Figure, log_density: LogDensity, data: np.ndarray, name: str) -> None:
    axes = figure.subplots()
    limits = style.bulk_limits(data)
    style.histograms(axes, {"Data": data[:, 0]}, limits)
    line = np.linspace(*limits, 4 * GRID)
    axes.plot(line, np.exp(_scores(log_density, line[:, None])), color=style.SAMPLES, label="Model")
    axes.set(xlabel=name, ylabel="density")
    style.legend_above(axes)


def _density_map(
    figure: Figure, log_density: LogDensity, data: np.ndarray, names: list[str]
) -> None:
    figure.set_size_inches(5.6, 5.0)
    axes = figure.subplots()
    limits = style.bulk_limits(data[:, 0]), style.bulk_limits(data[:, 1])
    x, y = np.meshgrid(*(np.linspace(*interval, GRID) for interval in limits))
    density = np.exp(_scores(log_density, np.column_stack([x.ravel(), y.ravel()])))
    image = axes.pcolormesh(
        x, y, density.reshape(x.shape), cmap=style.DENSITY_MAP, vmin=0.0, rasterized=True
    )
    some_x, some_y = style.every_few(data, 400).T
    axes.scatter(some_x, some_y, s=4.0, color="white", alpha=0.5, linewidths=0)
    style.frame(axes, limits, names)
    axes.set_aspect("equal")
    figure.colorbar(image, label="density", shrink=0.8, aspect=30).outline.set_visible(False)


def _density_scores(
    figure: Figure, log_density: LogDensity, data: np.ndarray, samples: np.ndarray | None
) -> None:
    axes = figure.subplots()
    series = {"Data": _scores(log_density, data)}
    if samples is not None:
        series["Samples"] = _scores(log_density, _points(samples, "samples"))
    style.histograms(axes, series, style.bulk_limits(np.concatenate(list(series.values()))))
    axes.set(xlabel="log density (nats)", ylabel="share per nat")
    style.legend_above(axes)


def _curves(
    axes: Axes, panel: Panel, metrics: list[dict[str, Any]], iterations: np.ndarray
) -> None:
    for key, (name, colour) in panel.curves.items():
        # A metric that was not recorded, or had no meaning in this run (None), is a gap.
        values = np.array([row.get(key) for row in metrics], dtype=np.float64)
        present = np.isfinite(values)
        if present.any():
            axes.plot(iterations[present], values[present], color=colour, label=name)
    axes.set_title(panel.title)
    axes.set(**panel.settings)
    if len(axes.lines) > 1:
        style.legend_above(axes)


def _scores(log_density: LogDensity, points: np.ndarray) -> np.ndarray:
    return np.asarray(log_density(points), dtype=np.float64)


def _column_names(names: Sequence[str] | None, d: int) -> list[str]:
    if names is None:
        return [f"$x_{{{column + 1}}}$" for column in range(d)]
    if len(names) != d:
        raise InputError(f"There are {len(names)} names for {d} columns: give one for each.")
    return list(names)


def _points(points: np.ndarray, name: str) -> np.ndarray:
    points = np.asarray(points, dtype=np.float64)
    points = points[:, None] if points.ndim == 1 else points
    if points.ndim != 2:
        raise InputError(f"The {name} have shape {points.shape}: give an (n, d) array.")
    # A sampler that went astray may still be looked at, by the points that can be drawn.
    points = points[np.isfinite(points).all(axis=1)]
    if len(points) == 0:
        raise InputError(f"The {name} have no finite points, so there is nothing to draw.")
    return points
