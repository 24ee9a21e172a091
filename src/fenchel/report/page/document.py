"""The whole page: one file with its style, its script and its numbers, and no need of a network."""

import base64
import hashlib
from importlib.resources import files
from string import Template
from typing import Any

from fenchel.data import Samples
from fenchel.report import style
from fenchel.report.lines import Evaluation
from fenchel.report.page.axes import MINUS
from fenchel.report.page.clouds import clouds_section
from fenchel.report.page.commands import commands_section
from fenchel.report.page.draws import draw
from fenchel.report.page.energies import energies_section
from fenchel.report.page.head import head, method
from fenchel.report.page.markup import Markup, joined, json_for_script, tag
from fenchel.report.page.plane import density_map, plane_axes
from fenchel.report.page.settings import settings_section
from fenchel.report.page.training import training_section
from fenchel.report.page.trajectories import trajectories
from fenchel.report.page.verdicts import verdicts_section
from fenchel.result import Fit
from fenchel.runs import same_data
from fenchel.version import __version__

PARTS = {
    "verdicts": "Verdicts",
    "fit": "Data and model",
    "trajectories": "Trajectories",
    "energies": "Energies",
    "training": "Training",
    "settings": "Settings",
    "reproduce": "Reproduce",
}
COLOURS = ("DATA", "SAMPLES", "THIRD", "ALARM", "INK")


def html_report(
    fit: Fit,
    samples: Samples,
    record: dict[str, Any],
    rows: list[dict[str, Any]],
    evaluation: Evaluation,
    *,
    source: str | None = None,
) -> str:
    """A run as one HTML page.

    **Arguments:**

    - `fit`, `samples`: the model, and data to hold it against.
    - `record`, `rows`: what the run's folder says of its making (`RunFolder.read_record`) and its
      training (`RunFolder.read_metrics`).
    - `evaluation`: the verdicts.
    - `source`: the data as the command line would name them; by default by their name.
    """
    draws = draw(fit, samples)
    flat = fit.dim == 2 and not fit.standardiser.counting
    plane = density_map(fit, plane_axes(draws.data, fit.columns)) if flat else None
    moving = trajectories(fit, draws, plane)
    body = [
        verdicts_section(evaluation),
        clouds_section(fit, draws, plane),
        moving.section,
        energies_section(fit, draws),
        training_section(rows),
        settings_section(record, same_data(record, samples)),
        commands_section(record, source or samples.name),
    ]
    numbers = {"map": plane.numbers() if plane else None, "trajectories": moving.numbers}
    top = head(fit.name, PARTS, facts(fit, samples, rows), evaluation)
    return page(fit.name, top, joined(body), numbers)


def facts(fit: Fit, samples: Samples, rows: list[dict[str, Any]]) -> dict[str, str]:
    """The numbers that one looks for first."""
    columns = "1 column" if fit.dim == 1 else f"{fit.dim} columns"
    numbers = {"Data": f"{len(samples.x):,} × {columns}", "Method": method(fit)}
    if rows:
        numbers["Iterations"] = f"{rows[-1].get('iteration', len(rows)):,}"
    if fit.has_log_partition:
        z = fit.log_partition()
        error = f" ± {z.standard_error:.1g}" if z.standard_error > 0 else ""
        numbers["log Z"] = f"{z.estimate:.3f}{error}".replace("-", MINUS)
        if fit.sampler.exact:
            numbers["Effective sample size"] = f"{z.ess:.1%}"
    return numbers


def page(name: str, top: Markup, body: Markup, numbers: dict[str, Any]) -> str:
    """The file; `numbers` are what its script moves things by."""
    sheet = Template(_file("page.css")).substitute(_colours())
    script = _file("page.js")
    return Template(_file("page.html")).substitute(
        # Only this very script and this very sheet may run: whatever else got in stays text.
        policy=(
            f"default-src 'none'; img-src data:; style-src {_hash(sheet)}; "
            f"script-src {_hash(script)}; base-uri 'none'; form-action 'none'"
        ),
        title=tag("title", f"{name} – Fenchel report"),
        sheet=sheet,
        head=top,
        body=body,
        version=__version__,
        numbers=json_for_script(numbers),
        script=script,
    )


def _colours() -> dict[str, str]:
    light = {name.lower(): getattr(style, name) for name in COLOURS}
    return light | {f"dark_{name.lower()}": style.DARK[name] for name in COLOURS}


def _hash(text: str) -> str:
    digest = hashlib.sha256(text.encode()).digest()
    return f"'sha256-{base64.b64encode(digest).decode('ascii')}'"


def _file(name: str) -> str:
    return files("fenchel.report.page").joinpath(name).read_text(encoding="utf-8")
