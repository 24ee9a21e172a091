"""A run of pictures as one HTML page, for people who would rather look than read."""

import base64
import re
from pathlib import Path

import numpy as np

from fenchel.report.lines import Evaluation
from fenchel.report.page.commands import commands_section
from fenchel.report.page.document import page
from fenchel.report.page.elements import figure, section
from fenchel.report.page.head import head, method
from fenchel.report.page.markup import Markup, joined, tag
from fenchel.report.page.settings import settings_section
from fenchel.report.page.training import training_section
from fenchel.report.page.trajectories import trace
from fenchel.report.page.verdicts import verdicts_section
from fenchel.report.pictures.grid import grid, picture_bytes, strip
from fenchel.report.pictures.neighbours import EACH, SPACES
from fenchel.report.pictures.opened import PictureRun
from fenchel.result import Fit
from fenchel.samplers import Embedding

SHOWN = 64
FOLLOWED, FRAMES = 6, 9  # pictures that are followed through the dynamics, and steps that are shown
MID_GREY = 128
TINY = 0.01  # grey levels: a change of less is not made to look like one
PARTS = {
    "verdicts": "Verdicts",
    "samples": "Samples",
    "dynamics": "Dynamics",
    "energies": "Energies",
    "neighbours": "Neighbours",
    "training": "Training",
    "settings": "Settings",
    "reproduce": "Reproduce",
}


def picture_report(run: PictureRun, evaluation: Evaluation, source: str) -> str:
    """The page.

    **Arguments:**

    - `run`: from `open_picture_run`.
    - `evaluation`: from `evaluate_pictures`, whose figures are shown.
    - `source`: the pictures as the command line would name them.
    """
    figures = {name: Path(path) for name, path in evaluation.values["figures"].items()}
    body = [
        verdicts_section(evaluation),
        _samples(run, figures["samples"]),
        _dynamics(run),
        _energies(figures["energies"]),
        _neighbours(figures["neighbours"], evaluation),
        training_section(run.rows),
        settings_section(run.record, run.own),
        commands_section(run.record, source),
    ]
    name = run.fit.name
    top = head(name, PARTS, _facts(run, evaluation), evaluation)
    return page(name, top, joined(body), {"map": None, "trajectories": None})


def _facts(run: PictureRun, evaluation: Evaluation) -> dict[str, str]:
    height, width, channels = run.shape
    colours = "grey" if channels == 1 else "in colour"
    facts = {
        "Data": f"{len(run.train):,} pictures, {height} × {width}, {colours}",
        "Method": method(run.fit),
    }
    if run.rows:
        facts["Iterations"] = f"{run.rows[-1]['iteration']:,}"
    fids = [value for name, value in evaluation.values.items() if re.fullmatch(r"fid_\d+", name)]
    if fids:
        facts["FID"] = f"{fids[-1]:.2f}"
    return facts


def _samples(run: PictureRun, path: Path) -> Markup:
    real = _image(picture_bytes(grid(run.train.x[:SHOWN])), "A grid of real pictures.")
    drawn = _image(path.read_bytes(), "A grid of samples of the model.")
    return section(
        "samples",
        "Samples",
        "What the sampler draws, beside what it learnt from. No sample was picked.",
        tag(
            "div",
            figure(drawn, "Samples.", kind="titled"),
            figure(real, "Training pictures.", kind="titled"),
            class_="beside",
        ),
    )


def _dynamics(run: PictureRun) -> Markup:
    """Some pictures on their way, and what became of them."""
    lead = "From the start's picture, on the left, through the steps of the dynamics."
    frames = _frames(run.fit)
    if frames is None:
        return section("dynamics", "Dynamics", "This sampler has none: its start is all of it.")
    magnified, factor = _magnified(frames[-1] - frames[0])
    rows = strip(np.stack([run.fit.as_pictures(each) for each in (*frames, magnified)]))
    caption = (
        f"{frames.shape[1]} pictures, a row each, at {len(frames)} of their steps. The last column "
        f"is the whole change around grey, {factor:.0f} times as large as it is."
    )
    shown = _image(picture_bytes(rows), "Pictures as the dynamics change them.")
    return section("dynamics", "Dynamics", lead, figure(shown, caption, kind="single"))


def _magnified(change: np.ndarray) -> tuple[np.ndarray, float]:
    """A change of grey levels, however small, around grey; and how much larger than it is."""
    factor = max(1.0, MID_GREY / max(TINY, float(np.abs(change).max())))
    return MID_GREY + factor * change, factor


def _frames(fit: Fit) -> np.ndarray | None:
    """(steps, n, d) in grey levels, not rounded; the first and the last step are among them."""
    if not isinstance(fit.sampler, Embedding):
        return None
    frames = trace(fit, FOLLOWED, fit.config.seed, FRAMES)
    return frames if len(frames) > 1 else None


def _energies(path: Path) -> Markup:
    lead = "Where the sampler is right, its samples have the same values of f as real pictures."
    histogram = _image(path.read_bytes(), "Histograms of f of real and drawn pictures.")
    caption = "f, the unnormalised log density, of training and held-out pictures and of samples."
    return section("energies", "Energies", lead, figure(histogram, caption, kind="single"))


def _neighbours(path: Path, evaluation: Evaluation) -> Markup:
    lead = "A model that knows its training pictures by heart would show them again."
    pairs = _image(path.read_bytes(), "Samples with the training pictures nearest to them.")
    by = [name for name in SPACES if f"nearest_{name}" in evaluation.values]
    groups = " and, after another, those ".join(f"nearest to it by {name}" for name in by)
    caption = f"A row for each sample, then after a gap the {EACH} training pictures {groups}."
    return section("neighbours", "Neighbours", lead, figure(pairs, caption, kind="single"))


def _image(png: bytes, what: str) -> Markup:
    text = base64.b64encode(png).decode("ascii")
    return tag("img", src=f"data:image/png;base64,{text}", alt=what)
