"""A fitted model of pictures in a few numbers and two figures."""

from pathlib import Path
from typing import Any

import numpy as np

from fenchel.dynamics import step_sizes
from fenchel.evaluate import contest_health
from fenchel.report.figures import save, training_figure
from fenchel.report.pictures.grid import grid, save_picture
from fenchel.report.summary import Summary
from fenchel.result import Fit
from fenchel.runs import RunFolder

SHOWN = 64


def summarise(fit: Fit, folder: Path) -> Summary:
    """What is known without a network to judge by: `fenchel evaluate --images` says more."""
    rows = RunFolder(folder).read_metrics()
    last = rows[-1]
    health = contest_health(rows, fit.config.training.steps)
    sizes = step_sizes(fit.sampler)
    values: dict[str, Any] = {
        "iteration": last["iteration"],
        "training": health.word,
        "potential_data": last["potential_data"],
        "potential_draws": last["potential_draws"],
        "step_size": float(np.median(sizes)) if sizes.size else None,
    }
    height, width, channels = fit.shape or (0, 0, 0)
    shown = [
        ("pictures", f"{height} x {width}, {channels} channel(s)"),
        ("training", f"{health.word}: {health.evidence}"),
        ("f, real and drawn", f"{last['potential_data']:.4g} and {last['potential_draws']:.4g}"),
    ]
    if sizes.size:
        shown.append(("step size, median", f"{np.median(sizes):.4g}"))
    return Summary(values, shown)


def write_figures(fit: Fit, folder: Path) -> None:
    """Samples, and the training."""
    run = RunFolder(folder)
    run.figures.mkdir(exist_ok=True)
    drawn = fit.pictures(SHOWN, seed=fit.config.seed)
    save_picture(grid(drawn), run.figures / "samples.png")
    save(training_figure(run.read_metrics()), run.figures / "training.png")
