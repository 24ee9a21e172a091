"""The top of the page: the run's name, one verdict, and the numbers that one looks for first."""

from typing import Any

from fenchel.data import Samples
from fenchel.report.lines import Evaluation
from fenchel.report.page.axes import MINUS
from fenchel.report.page.markup import Markup, tag
from fenchel.report.page.verdicts import verdict_line
from fenchel.result import Fit

PARTS = {
    "verdicts": "Verdicts",
    "fit": "Data and model",
    "trajectories": "Trajectories",
    "energies": "Energies",
    "training": "Training",
    "settings": "Settings",
    "reproduce": "Reproduce",
}


def head(fit: Fit, samples: Samples, rows: list[dict[str, Any]], evaluation: Evaluation) -> Markup:
    links = [tag("li", tag("a", title, href=f"#{name}")) for name, title in PARTS.items()]
    numbers = [
        tag("div", tag("dt", name), tag("dd", value), class_="number")
        for name, value in _numbers(fit, samples, rows).items()
    ]
    return tag(
        "header",
        tag("p", "Fenchel report", class_="kicker"),
        tag("h1", fit.name),
        verdict_line(evaluation.verdict),
        tag("dl", *numbers, class_="numbers"),
        tag("nav", tag("ul", *links), aria_label="Parts of this report"),
    )


def _numbers(fit: Fit, samples: Samples, rows: list[dict[str, Any]]) -> dict[str, str]:
    columns = "1 column" if fit.dim == 1 else f"{fit.dim} columns"
    numbers = {"Data": f"{len(samples.x):,} × {columns}", "Method": _method(fit)}
    if rows:
        numbers["Iterations"] = f"{rows[-1].get('iteration', len(rows)):,}"
    if fit.has_log_partition:
        z = fit.log_partition()
        error = f" ± {z.standard_error:.1g}" if z.standard_error else ""
        numbers["log Z"] = f"{z.estimate:.3f}{error}".replace("-", MINUS)
        if fit.sampler.exact:
            numbers["Effective sample size"] = f"{z.ess:.1%}"
    return numbers


def _method(fit: Fit) -> str:
    config = fit.config
    return f"{config.method}, {config.dynamics.kind}" if config.method == "ade" else config.method
