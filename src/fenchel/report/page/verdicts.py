"""The verdicts, as a line at the top and as a table; a sign and a word carry what colour says."""

from fenchel.report.lines import Evaluation, Line
from fenchel.report.page.elements import section, table
from fenchel.report.page.markup import Markup, tag

SIGNS = {"good": "✓", "caution": "!", "bad": "✕"}


def verdict_line(line: Line) -> Markup:
    """The one that sums all up."""
    return tag("p", badge(line.verdict), " ", line.meaning, class_="verdict")


def verdicts_section(evaluation: Evaluation) -> Markup:
    rows = [(line.name, line.value, badge(line.verdict), line.meaning) for line in evaluation.lines]
    lead = "What was looked at, and what it says of this fit."
    head = ("Looked at", "Value", "Verdict", "What it means")
    return section("verdicts", "Verdicts", lead, table(head, rows, "verdicts"))


def badge(verdict: str) -> Markup:
    if verdict not in SIGNS:
        return tag("span", "–", class_="badge none", title="no verdict")
    sign = tag("span", SIGNS[verdict], class_="sign", aria_hidden="true")
    return tag("span", sign, " ", verdict, class_=f"badge {verdict}")
