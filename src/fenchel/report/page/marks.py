"""What is drawn into axes: dots, lines, histograms, images.

How each looks is said by its classes (`kind`), and by the style sheet, which knows light and dark.
"""

import base64
import io

import numpy as np
from matplotlib.colors import to_rgb
from matplotlib.image import imsave

from fenchel.report import style
from fenchel.report.page.axes import Axes
from fenchel.report.page.markup import Markup, tag


def dots(axes: Axes, points: np.ndarray, kind: str, most: int) -> Markup:
    """Points (n, 2) as one path of round caps: a tenth of the size that circles have."""
    x, y = axes.place(*style.every_few(points, most).T)
    steps = (f"M{a:.1f} {b:.1f}h0" for a, b in zip(x, y, strict=True))
    return tag("path", class_=kind, d="".join(steps))


def line(axes: Axes, x: np.ndarray, y: np.ndarray, kind: str) -> Markup:
    return tag("path", class_=kind, d=_polyline(*axes.place(x, y)))


def stairs(axes: Axes, edges: np.ndarray, heights: np.ndarray, kind: str) -> Markup:
    """A histogram, from the floor up to the steps and back to it."""
    floor = np.full(1, axes.y.low)
    x = np.repeat(edges, 2)
    y = np.concatenate([floor, np.repeat(heights, 2), floor])
    return tag("path", class_=kind, d=_polyline(*axes.place(x, y)))


def bars(axes: Axes, x: np.ndarray, middle: np.ndarray, half: np.ndarray, kind: str) -> Markup:
    """Upright error bars."""
    low, high = (axes.place(x, middle + sign * half)[1] for sign in (-1, 1))
    across = axes.place(x, middle)[0]
    steps = (f"M{a:.1f} {b:.1f}V{c:.1f}" for a, b, c in zip(across, low, high, strict=True))
    return tag("path", class_=kind, d="".join(steps))


def rule(axes: Axes, x: float, meaning: str) -> Markup:
    """An upright line that says what happened there."""
    across = axes.place(np.array([x]), np.array([axes.y.high]))[0][0]
    return tag(
        "line",
        tag("title", meaning),
        class_="event",
        x1=f"{across:.1f}",
        x2=f"{across:.1f}",
        y1=0,
        y2=f"{axes.height:g}",
    )


def shade(axes: Axes, values: np.ndarray) -> Markup:
    """A grid of values from 0 to 1, its rows upwards, as an image that is clear where they are 0.

    Clear, not white: the same image then serves on light and on dark paper.
    """
    pixels = np.empty((*values.shape, 4), np.uint8)
    pixels[..., :3] = np.round(255 * np.array(to_rgb(style.DATA)))
    pixels[..., 3] = np.round(255 * np.clip(values, 0, 1))
    file = io.BytesIO()
    imsave(file, pixels[::-1], format="png")
    source = f"data:image/png;base64,{encoded(file.getvalue())}"
    return tag(
        "image",
        class_="shade",
        href=source,
        width=f"{axes.width:g}",
        height=f"{axes.height:g}",
        preserveAspectRatio="none",
    )


def encoded(raw: bytes) -> str:
    return base64.b64encode(raw).decode("ascii")


def _polyline(x: np.ndarray, y: np.ndarray) -> str:
    """A path through the places; one that is not a number is a gap."""
    steps, pen = [], "M"
    for a, b in zip(x, y, strict=True):
        whole = bool(np.isfinite(a) and np.isfinite(b))
        if whole:
            steps.append(f"{pen}{a:.1f} {b:.1f}")
        pen = "L" if whole else "M"
    return "".join(steps)
