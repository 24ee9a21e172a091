"""Axes as SVG: from numbers to places, with ticks and names."""

from typing import NamedTuple

import numpy as np
from matplotlib.ticker import LogLocator, MaxNLocator

from fenchel.report.page.markup import Markup, joined, tag

LEFT, RIGHT, TOP, BOTTOM = 46, 14, 10, 38  # around the plot, for ticks and names
MINUS = "\N{MINUS SIGN}"


class Scale(NamedTuple):
    """An interval of numbers, to be laid out on [0, 1]."""

    low: float
    high: float
    log: bool = False

    def unit(self, values: np.ndarray) -> np.ndarray:
        ends = np.array([self.low, self.high], dtype=np.float64)
        values = np.asarray(values, dtype=np.float64)
        if self.log:
            ends, values = np.log(ends), np.log(values)
        return (values - ends[0]) / (ends[1] - ends[0])

    def ticks(self, most: int) -> list[float]:
        # Powers of ten, where there are enough of them.
        decades = self.log and self.high / self.low > 100
        locator = LogLocator() if decades else MaxNLocator(most, steps=[1, 2, 5, 10])
        values = locator.tick_values(self.low, self.high)
        return [float(value) for value in values if self.low <= value <= self.high]


class Axes(NamedTuple):
    """A plot of this size, in the units of its SVG, without what is around it."""

    x: Scale
    y: Scale
    x_name: str
    y_name: str
    width: float = 300.0
    height: float = 180.0
    x_ticks: bool = True
    y_ticks: bool = True

    @property
    def size(self) -> tuple[float, float]:
        return LEFT + self.width + RIGHT, TOP + self.height + BOTTOM

    @property
    def area(self) -> list[float]:
        """Left, top, width and height of the plot as fractions of the whole."""
        width, height = self.size
        return [LEFT / width, TOP / height, self.width / width, self.height / height]

    def place(self, x: np.ndarray, y: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Within the plot, downwards from its upper left corner."""
        return self.width * self.x.unit(x), self.height * (1 - self.y.unit(y))

    def drawn(self, *marks: Markup, x: float = 0.0, y: float = 0.0) -> Markup:
        """The marks, clipped to the plot, within ticks and names; at a place in a larger SVG."""
        clipped = tag(
            "svg", *marks, x=LEFT, y=TOP, width=f"{self.width:g}", height=f"{self.height:g}"
        )
        names = [
            tag(
                "text",
                self.x_name,
                class_="name",
                x=f"{LEFT + self.width / 2:g}",
                y=f"{TOP + self.height + 33:g}",
                text_anchor="middle",
            ),
            tag(
                "text",
                self.y_name,
                class_="name",
                text_anchor="middle",
                transform=f"translate(9 {TOP + self.height / 2:g}) rotate(-90)",
            ),
        ]
        parts = [*self._grid(), clipped, *names]
        return tag("g", *parts, transform=f"translate({x:g} {y:g})" if x or y else None)

    def svg(self, label: str, *marks: Markup) -> Markup:
        """A picture by itself; the label is what those hear who do not see it."""
        return picture(self.size, label, self.drawn(*marks))

    def _grid(self) -> list[Markup]:
        across, down = LEFT + self.width, TOP + self.height
        parts = []
        for value in self.x.ticks(max(2, round(self.width / 60))):
            x = f"{LEFT + self.width * float(self.x.unit(np.array(value))):.1f}"
            parts.append(tag("line", class_="grid-line", x1=x, x2=x, y1=TOP, y2=f"{down:g}"))
            if self.x_ticks:
                parts.append(
                    tag("text", number(value), x=x, y=f"{down + 15:g}", text_anchor="middle")
                )
        for value in self.y.ticks(max(2, round(self.height / 45))):
            height = self.height * (1 - float(self.y.unit(np.array(value))))
            y = f"{TOP + height:.1f}"
            parts.append(tag("line", class_="grid-line", x1=LEFT, x2=f"{across:g}", y1=y, y2=y))
            if self.y_ticks:
                parts.append(
                    tag("text", number(value), x=LEFT - 6, y=y, dy="0.32em", text_anchor="end")
                )
        return parts


def picture(size: tuple[float, float], label: str, *parts: Markup, **attributes: str) -> Markup:
    """An SVG of this size that says what it shows."""
    return tag(
        "svg",
        joined(parts),
        viewBox=f"0 0 {size[0]:g} {size[1]:g}",
        role="img",
        aria_label=label,
        **attributes,
    )


def number(value: float, digits: int = 4) -> str:
    """A number as people write it."""
    return f"{value:.{digits}g}".replace("-", MINUS)
