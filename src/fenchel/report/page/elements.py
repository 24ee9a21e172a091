"""The pieces that all sections are made of."""

from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

from fenchel.report.page.markup import Markup, tag


class Key(NamedTuple):
    """An entry of a legend: what is drawn so, and how (the class of its mark)."""

    name: str
    mark: str


def section(name: str, title: str, lead: str, *children: Any) -> Markup:
    """A part of the page, reached by `#name`."""
    heading = tag("h2", title, id=f"{name}-title")
    return tag(
        "section",
        heading,
        tag("p", lead, class_="lead"),
        *children,
        id=name,
        aria_labelledby=f"{name}-title",
    )


def figure(picture: Markup, caption: Any, legend: Sequence[Key] = (), kind: str = "") -> Markup:
    return tag("figure", keys(legend), picture, tag("figcaption", caption), class_=kind or None)


def keys(legend: Sequence[Key]) -> Markup | None:
    """Each name with a swatch that is drawn as its mark is."""
    if not legend:
        return None
    return tag("ul", *(tag("li", _swatch(key.mark), key.name) for key in legend), class_="legend")


def table(head: Sequence[str], rows: Iterable[Sequence[Any]], kind: str = "") -> Markup:
    """With the first cell of each row as its heading."""
    top = tag("tr", *(tag("th", name, scope="col") for name in head))
    body = [
        tag(
            "tr",
            tag("th", first, scope="row"),
            *(tag("td", cell) for cell in cells),
        )
        for first, *cells in rows
    ]
    return tag("table", tag("thead", top), tag("tbody", *body), class_=kind or None)


def _swatch(mark: str) -> Markup:
    if mark.startswith("dots"):
        shape = tag("path", class_=mark, d="M4 6h0M11 4h0M18 7h0")
    elif mark.startswith("fill"):
        shape = tag("path", class_=mark, d="M1 11V3H21V11Z")
    else:
        shape = tag("path", class_=mark, d="M0 6H22")
    return tag("svg", shape, class_="swatch", viewBox="0 0 22 12", aria_hidden="true")
