"""The top of the page: the run's name, one verdict, and the numbers that one looks for first."""

from collections.abc import Mapping

from fenchel.report.lines import Evaluation
from fenchel.report.page.markup import Markup, tag
from fenchel.report.page.verdicts import verdict_line
from fenchel.result import Fit


def head(
    name: str, parts: Mapping[str, str], facts: Mapping[str, str], evaluation: Evaluation
) -> Markup:
    """`parts` are the page's own, by their `id` and their title."""
    links = [tag("li", tag("a", title, href=f"#{part}")) for part, title in parts.items()]
    numbers = [
        tag("div", tag("dt", fact), tag("dd", value), class_="number")
        for fact, value in facts.items()
    ]
    return tag(
        "header",
        tag("p", "Fenchel report", class_="kicker"),
        tag("h1", name),
        verdict_line(evaluation.verdict),
        tag("dl", *numbers, class_="numbers"),
        tag("nav", tag("ul", *links), aria_label="Parts of this report"),
    )


def method(fit: Fit) -> str:
    config = fit.config
    return f"{config.method}, {config.dynamics.kind}" if config.method == "ade" else config.method
