"""The run by iteration: curves of its metrics, with its events marked and told."""

from typing import Any

import numpy as np

from fenchel.report import style
from fenchel.report.figures import TRAINING_PANELS, Panel
from fenchel.report.page import marks
from fenchel.report.page.axes import Axes, Scale
from fenchel.report.page.elements import Key, figure, section
from fenchel.report.page.markup import Markup, tag
from fenchel.report.progress import describe_event

KINDS = {style.DATA: "data", style.SAMPLES: "samples", style.THIRD: "third"}
FEW = 12  # blocks, up to which each is marked by a dot
MOST_EVENTS = 50

Curve = tuple[Key, np.ndarray, np.ndarray]


def training_section(rows: list[dict[str, Any]]) -> Markup:
    events = [event for row in rows for event in row.get("events", [])]
    figures = [_panel(panel, rows, events) for panel in TRAINING_PANELS]
    if not any(figures):
        lead = "No metrics were recorded, so there are no curves."
        return section("training", "Training", lead)
    lead = f"Means over each block of iterations. {_count(len(events))}"
    grid = tag("div", *figures, class_="grid")
    return section("training", "Training", lead, grid, _told(events))


def _panel(panel: Panel, rows: list[dict[str, Any]], events: list[dict[str, Any]]) -> Markup | None:
    curves = _curves(panel, rows)
    if not curves:
        return None
    axes = _axes(panel, curves)
    drawn = [marks.rule(axes, event["iteration"], describe_event(event)) for event in events]
    for key, x, y in curves:
        drawn.append(marks.line(axes, x, y, key.mark))
        if len(x) <= FEW:
            kind = key.mark.replace("line", "dots marker")
            drawn.append(marks.dots(axes, np.column_stack([x, y]), kind, FEW))
    names = ", ".join(key.name for key, _, _ in curves)
    picture = axes.svg(f"{panel.title} against iteration: {names}.", *drawn)
    legend = [key for key, _, _ in curves] if len(curves) > 1 else []
    return figure(picture, panel.title, legend, "titled")


def _curves(panel: Panel, rows: list[dict[str, Any]]) -> list[Curve]:
    """Those that were recorded, each with its own iterations."""
    iterations = np.array([row.get("iteration", index) for index, row in enumerate(rows)], float)
    found = []
    for metric, (name, colour) in panel.curves.items():
        values = np.array([row.get(metric) for row in rows], dtype=np.float64)
        present = np.isfinite(values) & ((values > 0) | (not _is_log(panel)))
        if present.any():
            mark = f"line {KINDS.get(colour, 'data')}"
            found.append((Key(name, mark), iterations[present], values[present]))
    return found


def _axes(panel: Panel, curves: list[Curve]) -> Axes:
    x = np.concatenate([x for _, x, _ in curves])
    y = np.concatenate([y for _, _, y in curves])
    across = Scale(min(0.0, x.min()), max(x.max(), 1.0))
    if "ylim" in panel.settings:
        upward = Scale(*panel.settings["ylim"])
    elif _is_log(panel):
        upward = Scale(y.min() / 1.3, y.max() * 1.3, log=True)
    else:
        # A run may begin far off; what it settled to is what one wants to see.
        low, high = np.quantile(y, 0.02), np.quantile(y, 0.98)
        margin = 0.1 * (high - low) or 0.5
        upward = Scale(low - margin, high + margin)
    return Axes(across, upward, "iteration", "", height=150.0)


def _is_log(panel: Panel) -> bool:
    return panel.settings.get("yscale") == "log"


def _count(events: int) -> str:
    if events == 0:
        return "Nothing had to be mended on the way."
    what = "event is" if events == 1 else "events are"
    return f"{events} {what} marked by upright lines, and told below."


def _told(events: list[dict[str, Any]]) -> Markup | None:
    if not events:
        return None
    told = [tag("li", describe_event(event)) for event in events[:MOST_EVENTS]]
    if len(events) > MOST_EVENTS:
        told.append(tag("li", f"and {len(events) - MOST_EVENTS} more"))
    count = f"{len(events)} event{'' if len(events) == 1 else 's'}"
    return tag("details", tag("summary", count), tag("ul", *told, class_="events"))
