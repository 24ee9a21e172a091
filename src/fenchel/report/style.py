"""The look that all figures share: colours, type, and how dots, histograms and frames are drawn."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import matplotlib as mpl
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

DATA = "#2f6690"
SAMPLES = "#d9622b"
THIRD = "#688c6c"
ALARM = "#b3261e"
INK = "#2b2d33"
FAINT_INK = "#868a94"
DENSITY_MAP = "viridis"

# The same on dark paper.
DARK = {
    "DATA": "#7fb3d9",
    "SAMPLES": "#f0925f",
    "THIRD": "#9cc4a0",
    "ALARM": "#f2857d",
    "INK": "#e8e9ec",
}

# Any, for matplotlib's type of the keys names each of them and changes with its version.
RC: Any = {
    "figure.facecolor": "white",
    "savefig.facecolor": "white",
    "font.family": "sans-serif",
    "font.sans-serif": ["DejaVu Sans"],
    "font.size": 9.0,
    "text.color": INK,
    "figure.titlesize": 12.0,
    "figure.titleweight": "bold",
    "axes.facecolor": "white",
    "axes.edgecolor": FAINT_INK,
    "axes.labelcolor": INK,
    "axes.linewidth": 0.7,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.titlesize": 9.5,
    "axes.titlelocation": "left",
    "axes.formatter.limits": (-3, 5),
    "xtick.color": FAINT_INK,
    "ytick.color": FAINT_INK,
    "xtick.labelcolor": INK,
    "ytick.labelcolor": INK,
    "xtick.labelsize": 8.0,
    "ytick.labelsize": 8.0,
    "xtick.major.width": 0.7,
    "ytick.major.width": 0.7,
    "lines.linewidth": 1.4,
    "legend.frameon": False,
}

Limits = tuple[float, float]

MOST_DOTS = 4_000


@contextmanager
def new_figure(title: str, size: tuple[float, float] = (6.0, 4.0)) -> Iterator[Figure]:
    """An empty figure with its title; what is drawn inside the context takes the shared look."""
    with mpl.rc_context(RC):
        figure = Figure(figsize=size, layout="compressed")
        figure.suptitle(title, x=0.01, horizontalalignment="left")
        yield figure


def bulk_limits(values: np.ndarray) -> Limits:
    """An interval around the central 99 % of `values`, which one wild value cannot widen."""
    # Rounding inwards drops at least the outermost value on either side, however few there are.
    low = float(np.quantile(values, 0.005, method="higher"))
    high = float(np.quantile(values, 0.995, method="lower"))
    if low >= high:
        low, high = low - 0.5, high + 0.5
    margin = 0.12 * (high - low)
    return low - margin, high + margin


def caption(name: str, points: np.ndarray, limits: Sequence[Limits]) -> str:
    """The name of a cloud, how many points it has, and what share of them the frame leaves out."""
    low, high = np.transpose(limits)
    outside = np.mean(((points < low) | (points > high)).any(axis=1))
    count = f"n = {len(points):,}"
    return f"{name}  ({count}, {outside:.1%} outside)" if outside > 0.0 else f"{name}  ({count})"


def frame(axes: Axes, limits: tuple[Limits, Limits], names: Sequence[str]) -> None:
    """Fix the limits and name both axes, with a handful of ticks."""
    axes.set(xlim=limits[0], ylim=limits[1], xlabel=names[0], ylabel=names[1])
    axes.xaxis.set_major_locator(MaxNLocator(5))
    axes.yaxis.set_major_locator(MaxNLocator(5))


def dots(axes: Axes, clouds: dict[str, np.ndarray], *, size: float = 5.0) -> None:
    """Clouds of (n, 2) points by their colour; of very many, an evenly spaced choice."""
    thinned = {colour: every_few(points, MOST_DOTS) for colour, points in clouds.items()}
    points = np.concatenate(list(thinned.values()))
    colours = np.repeat(list(thinned), [len(cloud) for cloud in thinned.values()])
    # In a mixed order neither cloud hides the other.
    order = np.random.default_rng(0).permutation(len(points))
    opacity = float(np.clip(25.0 / np.sqrt(len(points)), 0.15, 0.8))
    x, y = points[order].T
    axes.scatter(x, y, s=size, c=colours[order], alpha=opacity, linewidths=0, rasterized=True)


def every_few(points: np.ndarray, most: int) -> np.ndarray:
    """At most `most` of the points, evenly spaced in their order."""
    return points[:: -(-len(points) // most)]


def histograms(axes: Axes, series: dict[str, np.ndarray], limits: Limits) -> None:
    """Overlaid densities of one or two series: the first is filled, the second an outline."""
    edges, heights = binned(list(series.values()), limits)
    looks: tuple[dict[str, Any], ...] = (
        {"fill": True, "color": DATA, "alpha": 0.4},
        {"color": SAMPLES, "linewidth": 1.6},
    )
    for name, height, look in zip(series, heights, looks, strict=False):
        axes.stairs(height, edges, label=name, **look)
    axes.set_xlim(limits)
    axes.set_ylim(bottom=0.0)


def binned(series: Sequence[np.ndarray], limits: Limits) -> tuple[np.ndarray, list[np.ndarray]]:
    """The edges of bins that suit all series, and each one's densities in them."""
    fewest = min(len(values) for values in series)
    edges = np.linspace(*limits, int(np.clip(2.5 * np.cbrt(fewest), 12, 60)) + 1)
    # Values outside the frame count too: the area that is missing is a share that was lost.
    return edges, [np.histogram(v, edges)[0] / (len(v) * np.diff(edges)) for v in series]


def legend_above(axes: Axes) -> None:
    """A one-line legend over the panel's right end, where it covers no curve."""
    columns = len(axes.get_legend_handles_labels()[1])
    axes.legend(loc="lower right", bbox_to_anchor=(1.0, 0.98), ncols=columns)
