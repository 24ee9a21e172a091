"""Data and samples beside the learnt density: for each kind of data its pictures."""

from typing import Any

import numpy as np

from fenchel.report import style
from fenchel.report.page import marks
from fenchel.report.page.axes import Axes
from fenchel.report.page.corner import corner, shown_columns
from fenchel.report.page.draws import Draws
from fenchel.report.page.elements import Key, figure, section
from fenchel.report.page.histograms import histograms
from fenchel.report.page.markup import Markup, joined, tag
from fenchel.report.page.moments import moments
from fenchel.report.page.plane import DensityMap
from fenchel.result import Fit

DATA_DOTS, SAMPLE_DOTS = 2_000, 600
CURVE = 500  # points of a density along a line


def clouds_section(fit: Fit, draws: Draws, plane: DensityMap | None) -> Markup:
    if fit.standardiser.counting:
        lead = "Discrete points lie on one another; their moments do not."
        body = moments(draws)
    elif fit.dim == 1:
        lead = "Where the fit is good, the curve and both histograms agree."
        axes, drawn, legend = density_line(fit, draws)
        names = ", ".join(key.name for key in legend)
        picture = axes.svg(f"Densities of {names}.", *drawn)
        body = figure(picture, counted(draws), legend, "single")
    elif plane is not None:
        lead = "Where the fit is good, the samples fill the same regions as the data."
        body = _plane(draws, plane)
    else:
        lead = (
            f"Every pair of {shown_columns(fit)}. Where the fit is good, the two colours cannot be "
            "told apart."
        )
        body = corner(fit, draws)
    return section("fit", "Data and model", lead, body)


def density_line(fit: Fit, draws: Draws) -> tuple[Axes, list[Markup], list[Key]]:
    """In one dimension: both histograms, and the model's curve where it is normalised."""
    limits = style.bulk_limits(draws.data)
    series = {
        Key("data", "fill data"): draws.data[:, 0],
        Key(draws.kind, "line samples"): draws.samples[:, 0],
    }
    layout: dict[str, Any] = {"x_name": fit.columns[0], "y_name": "density"}
    if not fit.has_log_partition:
        return *histograms(series, limits, **layout), list(series)
    x = np.linspace(*limits, CURVE)
    density = np.exp(fit.log_density(x[:, None]))
    axes, drawn = histograms(series, limits, float(density.max()), **layout)
    drawn.append(marks.line(axes, x, density, "line model"))
    return axes, drawn, [*series, Key("model", "line model")]


def counted(draws: Draws) -> str:
    return f"{len(draws.data):,} points of the data, {len(draws.samples):,} {draws.kind}."


def _plane(draws: Draws, plane: DensityMap) -> Markup:
    axes = plane.axes
    data = axes.svg(
        "The data as a cloud of points.", marks.dots(axes, draws.data, "dots data", DATA_DOTS)
    )
    model = axes.svg(
        "The learnt density as a shaded map, with samples as points on it.",
        plane.shading(),
        marks.dots(axes, draws.samples, "dots samples", SAMPLE_DOTS),
    )
    shown = len(style.every_few(draws.samples, SAMPLE_DOTS))
    readout = tag("output", id="map-readout", aria_live="off")
    caption = joined([f"The model: its density, and {shown:,} {draws.kind}.", readout])
    legend = [Key(plane.name, "fill shade"), Key(draws.kind, "dots samples")]
    return tag(
        "div",
        figure(data, f"The data: {_outside(draws.data, axes)}", [Key("data", "dots data")]),
        figure(tag("div", model, id="map", class_="stage"), caption, legend),
        class_="pair",
    )


def _outside(points: np.ndarray, axes: Axes) -> str:
    low, high = np.array([axes.x[:2], axes.y[:2]]).T
    share = float(np.mean(((points < low) | (points > high)).any(axis=1)))
    text = f"{len(points):,} points"
    return f"{text}, {share:.1%} of them outside the frame." if share else f"{text}."
