"""HTML and SVG as text. What is not marked as markup is escaped, wherever it comes from."""

import json
from collections.abc import Iterable
from html import escape
from typing import Any

VOID = frozenset({"input", "meta", "link", "br", "img"})


class Markup(str):
    """Markup already: it is not escaped again."""

    __slots__ = ()


def tag(name: str, *children: Any, **attributes: Any) -> Markup:
    """An element; `class_` and `aria_label` mean `class` and `aria-label`.

    An attribute that is None or False is left out, and one that is True has no value.
    """
    opening = "".join([name, *(_attribute(key, value) for key, value in attributes.items())])
    if name in VOID:
        return Markup(f"<{opening}>")
    return Markup(f"<{opening}>{joined(children)}</{name}>")


def joined(children: Iterable[Any]) -> Markup:
    """One after the other; None and False are nothing."""
    present = (child for child in children if child is not None and child is not False)
    return Markup("".join(_escaped(child) for child in present))


def json_for_script(value: Any) -> Markup:
    """JSON that stays within its script element, whatever its strings hold."""
    text = json.dumps(value, allow_nan=False, separators=(",", ":"))
    for character in "<>&":
        text = text.replace(character, f"\\u{ord(character):04x}")
    return Markup(text)


def _attribute(key: str, value: Any) -> str:
    key = key.removesuffix("_").replace("_", "-")
    if value is None or value is False:
        return ""
    return f" {key}" if value is True else f' {key}="{escape(str(value))}"'


def _escaped(child: Any) -> str:
    return child if isinstance(child, Markup) else escape(str(child))
