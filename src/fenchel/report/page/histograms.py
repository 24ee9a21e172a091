"""Histograms of several series in one picture, told apart by fill, dash and colour."""

from collections.abc import Mapping
from typing import Any

import numpy as np

from fenchel.report import style
from fenchel.report.page import marks
from fenchel.report.page.axes import Axes, Scale
from fenchel.report.page.elements import Key
from fenchel.report.page.markup import Markup

Series = Mapping[Key, np.ndarray]


def histograms(
    series: Series, limits: style.Limits, top: float = 0.0, **layout: Any
) -> tuple[Axes, list[Markup]]:
    """Axes that hold them all, and something as high as `top` too; and their marks."""
    edges, heights = style.binned(list(series.values()), limits)
    highest = max(top, *(float(each.max()) for each in heights)) or 1.0
    axes = Axes(Scale(*limits), Scale(0.0, 1.06 * highest), **layout)
    pairs = zip(series, heights, strict=True)
    return axes, [marks.stairs(axes, edges, each, key.mark) for key, each in pairs]
