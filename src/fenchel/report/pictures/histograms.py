"""How f spreads over real, held-out and generated examples, as histograms over one another."""

from pathlib import Path

import numpy as np
from matplotlib.figure import Figure
from numpy.typing import ArrayLike, NDArray

from fenchel.errors import InputError
from fenchel.files import refuse_unwritable, written_whole
from fenchel.report import style
from fenchel.report.figures import save

MOST = 4


def energies_figure(series: dict[str, ArrayLike], *, title: str = "Energies") -> Figure:
    """Histograms of f by name: the first what was fitted to, the last what the model draws.

    Where the sampler is right its draws have the histogram of data that the model never saw.
    """
    if not 1 <= len(series) <= MOST:
        raise InputError(f"There are {len(series)} series of energies; give 1 to {MOST}.")
    finite = dict(_finite(name, values) for name, values in series.items())
    limits = _limits(list(finite.values()))
    edges, heights = style.binned(list(finite.values()), limits)
    with style.new_figure(title) as figure:
        axes = figure.subplots()
        for (name, values), height, look in zip(
            finite.items(), heights, _looks(len(finite)), strict=True
        ):
            label = style.caption(name, values[:, None], [limits])
            axes.stairs(height, edges, label=label, **look)
        axes.set(xlim=limits, xlabel="f(x), up to a constant", ylabel="share per unit of f")
        axes.set_ylim(bottom=0.0)
        figure.legend(loc="outside lower left", ncols=2)
    return figure


def save_energies(
    series: dict[str, ArrayLike], path: str | Path, *, title: str = "Energies"
) -> None:
    """Write `energies_figure` as a PNG file."""
    figure = energies_figure(series, title=title)
    refuse_unwritable(Path(path))
    with written_whole(Path(path)) as partial:
        save(figure, partial)


def _looks(count: int) -> list[dict]:
    """The data's fill, dashed lines in between, and the samples' line."""
    filled = {"fill": True, "color": style.DATA, "alpha": 0.4}
    between = [
        {"color": colour, "linewidth": 1.4, "linestyle": "--"}
        for colour in (style.THIRD, style.INK)
    ]
    drawn = {"color": style.SAMPLES, "linewidth": 1.6}
    return [filled, *between[: max(count - 2, 0)], drawn][:count]


def _limits(series: list[NDArray]) -> style.Limits:
    """Around the bulk of each: of all together, a few draws far away would be left out."""
    lows, highs = zip(*map(style.bulk_limits, series), strict=True)
    return min(lows), max(highs)


def _finite(name: str, values: ArrayLike) -> tuple[str, NDArray[np.float64]]:
    """The finite values; the name says how many were not."""
    numbers = np.asarray(values, dtype=np.float64).ravel()
    finite = numbers[np.isfinite(numbers)]
    if finite.size == 0:
        raise InputError(f"The energies called {name!r} have no finite value to draw.")
    lost = numbers.size - finite.size
    return (f"{name}, {lost:,} not finite" if lost else name), finite
