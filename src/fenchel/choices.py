"""Things by name, and what to say of a name that is not known."""

from difflib import get_close_matches
from typing import TypeVar

from fenchel.errors import InputError

T = TypeVar("T")


def nearest(name: str, known: list[str]) -> str:
    """' (did you mean ...?)' where something known is close, else nothing."""
    by_lower_case = {entry.lower(): entry for entry in known}
    close = get_close_matches(name.lower(), by_lower_case, n=1)
    return f" (did you mean {by_lower_case[close[0]]}?)" if close else ""


def choose(table: dict[str, T], name: str, what: str) -> T:
    """An entry of a table of named things, or an error with the nearest name."""
    if name not in table:
        raise InputError(
            f"There is no {what} called {name!r}{nearest(name, list(table))}: "
            f"choose from {', '.join(table)}."
        )
    return table[name]
