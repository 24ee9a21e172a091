"""A corner: each column's histograms, and a cloud of points for each pair of columns."""

from fenchel.report import style
from fenchel.report.figures import CORNER_COLUMNS
from fenchel.report.page import marks
from fenchel.report.page.axes import BOTTOM, LEFT, TOP, Axes, Scale, picture
from fenchel.report.page.draws import Draws
from fenchel.report.page.elements import Key, figure
from fenchel.report.page.histograms import histograms
from fenchel.report.page.markup import Markup, tag
from fenchel.result import Fit

SIDE, GAP = 118.0, 12.0
DOTS = 400
LONGEST_NAME = 18  # characters that fit beside a panel


def corner(fit: Fit, draws: Draws) -> Markup:
    size = min(fit.dim, CORNER_COLUMNS)
    limits = [style.bulk_limits(column) for column in draws.data.T[:size]]
    label = f"Histograms of {shown_columns(fit)}, and a cloud of points for each pair of them."
    panels = [
        _histograms(fit, draws, limits, row)
        if row == column
        else _pair(fit, draws, limits, row, column)
        for row in range(size)
        for column in range(row + 1)
    ]
    whole = LEFT + size * (SIDE + GAP), TOP + size * (SIDE + GAP) + BOTTOM
    scroll = tag(
        "div",
        picture(whole, label, *panels),
        class_="scroll",
        tabindex="0",
        role="group",
        aria_label="Corner plot; scrolls sideways on a narrow screen",
    )
    legend = [Key("data", "fill data"), Key(draws.kind, "line samples")]
    caption = f"{len(draws.data):,} points of the data, {len(draws.samples):,} {draws.kind}."
    return figure(scroll, caption, legend, "wide")


def shown_columns(fit: Fit) -> str:
    if fit.dim <= CORNER_COLUMNS:
        return "all columns"
    return f"the first {CORNER_COLUMNS} of {fit.dim} columns"


def _histograms(fit: Fit, draws: Draws, limits: list[style.Limits], row: int) -> Markup:
    series = {
        Key("data", "fill data"): draws.data[:, row],
        Key("samples", "line samples"): draws.samples[:, row],
    }
    last = row == len(limits) - 1
    axes, drawn = histograms(
        series,
        limits[row],
        x_name=_short(fit.columns[row]) if last else "",
        y_name="",
        width=SIDE,
        height=SIDE,
        x_ticks=last,
        y_ticks=False,
    )
    return _placed(axes, drawn, row, row)


def _pair(fit: Fit, draws: Draws, limits: list[style.Limits], row: int, column: int) -> Markup:
    last, first = row == len(limits) - 1, column == 0
    axes = Axes(
        Scale(*limits[column]),
        Scale(*limits[row]),
        x_name=_short(fit.columns[column]) if last else "",
        y_name=_short(fit.columns[row]) if first else "",
        width=SIDE,
        height=SIDE,
        x_ticks=last,
        y_ticks=first,
    )
    clouds = {"data": draws.data, "samples": draws.samples}
    drawn = [
        marks.dots(axes, points[:, [column, row]], f"dots small {kind}", DOTS)
        for kind, points in clouds.items()
    ]
    return _placed(axes, drawn, row, column)


def _placed(axes: Axes, drawn: list[Markup], row: int, column: int) -> Markup:
    return axes.drawn(*drawn, x=column * (SIDE + GAP), y=row * (SIDE + GAP))


def _short(name: str) -> str:
    return name if len(name) <= LONGEST_NAME else name[: LONGEST_NAME - 1] + "…"
