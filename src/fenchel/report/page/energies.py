"""f of data and of samples: those of a good sampler have the data's histogram."""

import numpy as np

from fenchel.report import style
from fenchel.report.page.axes import MINUS, number
from fenchel.report.page.draws import Draws
from fenchel.report.page.elements import figure, section, table
from fenchel.report.page.histograms import histograms
from fenchel.report.page.markup import Markup, tag
from fenchel.result import Fit


def energies_section(fit: Fit, draws: Draws) -> Markup:
    scores = {key: _finite(fit.potential(points)) for key, points in draws.named().items()}
    scores = {key: values for key, values in scores.items() if values.size}
    limits = style.bulk_limits(np.concatenate(list(scores.values())))
    axes, drawn = histograms(scores, limits, x_name="f, in nats", y_name="share a nat")
    names = ", ".join(key.name for key in scores)
    picture = axes.svg(f"Histograms of f of {names}.", *drawn)
    caption = (
        f"f, the unnormalised log density; an energy is {MINUS}f. Samples to the left of the data "
        "lie where the model has less density: the sampler is spread too wide."
    )
    rows = [
        (key.name, number(float(values.mean())), number(float(values.std())), f"{values.size:,}")
        for key, values in scores.items()
    ]
    numbers = table(("f of", "mean", "deviation", "points"), rows, "numbers-table")
    return section(
        "energies",
        "Energies",
        "Where the sampler is right, its samples have the same values of f as the data.",
        tag("div", figure(picture, caption, list(scores)), numbers, class_="beside"),
    )


def _finite(values: np.ndarray) -> np.ndarray:
    return values[np.isfinite(values)]
