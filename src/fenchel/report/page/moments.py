"""Discrete data: the samples' means and covariances against the data's."""

import numpy as np

from fenchel.report.figures import Moments, compared_moments
from fenchel.report.page import marks
from fenchel.report.page.axes import Axes, Scale
from fenchel.report.page.draws import Draws
from fenchel.report.page.elements import figure
from fenchel.report.page.markup import Markup, tag

MOST = 1_000  # of many pairs, an evenly spaced choice


def moments(draws: Draws) -> Markup:
    both = compared_moments(draws.data, draws.samples)
    return tag("div", *(_picture(each) for each in both if each.data.size), class_="pair")


def _picture(moment: Moments) -> Markup:
    every = slice(None, None, -(-moment.data.size // MOST))
    data, samples, error = (part[every] for part in moment[1:])
    every_end = np.concatenate([data, samples - 2 * error, samples + 2 * error])
    margin = 0.05 * max(float(np.ptp(every_end)), 1e-6)
    scale = Scale(float(every_end.min()) - margin, float(every_end.max()) + margin)
    ends = np.array(scale[:2])
    axes = Axes(scale, scale, "data", "samples", height=260.0)
    drawn = (
        marks.line(axes, ends, ends, "line thin model"),
        marks.bars(axes, data, samples, 2 * error, "line thin data"),
        marks.dots(axes, np.column_stack([data, samples]), "dots marker samples", MOST),
    )
    label = f"{moment.title}: that of the samples against that of the data."
    caption = (
        f"{moment.title}. Bars are two standard errors: of a perfect sampler's, 95 in 100 meet "
        "the line."
    )
    return figure(axes.svg(label, *drawn), caption)
