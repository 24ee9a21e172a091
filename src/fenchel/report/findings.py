"""What an evaluation has found so far, and what all of it comes to."""

from collections.abc import Callable
from typing import Any

import numpy as np

from fenchel.errors import InputError
from fenchel.report.lines import Evaluation, Line

Say = Callable[[str], None]
"""Is told what is being computed."""


def silent(doing: str) -> None:
    """Tells nobody."""


class Findings:
    """Lines for people and numbers for machines, as they come in; the first is the training's."""

    def __init__(self, say: Say):
        self.lines: list[Line] = []
        self.values: dict[str, Any] = {}
        self.say = say

    def add(self, line: Line, **numbers: Any) -> None:
        self.lines.append(line)
        self.values |= {name: _plain(number) for name, number in numbers.items()}

    def attempt(self, name: str, judge: Callable[[], None]) -> None:
        """What cannot be judged is a fault of its own, and no reason to say nothing of the rest."""
        try:
            judge()
        except InputError as error:
            self.add(Line(name, "not known", "bad", str(error)))

    def evaluation(self, whose: str) -> Evaluation:
        """All of it; `whose` data the fit was judged by."""
        return Evaluation(self._summed_up(whose), self.lines, self.values)

    def _summed_up(self, whose: str) -> Line:
        """The verdict on all: as good as the worst of its lines."""
        named = {
            verdict: [line.name for line in self.lines if line.verdict == verdict]
            for verdict in ("bad", "caution")
        }
        training = self.lines[0]
        if named["bad"]:
            words = f"Not a good fit: see {'; '.join(named['bad'])}."
            return Line("verdict", training.value, "bad", words)
        if named["caution"]:
            words = f"Usable with care: see {'; '.join(named['caution'])}."
            return Line("verdict", training.value, "caution", words)
        return Line(
            "verdict", training.value, "good", f"No fault was found in this fit, judged by {whose}."
        )


def sentence(words: str) -> str:
    return words[:1].upper() + words[1:] + "."


def _plain(number: Any) -> Any:
    """A number that JSON can hold."""
    if isinstance(number, int | float | np.number) and not isinstance(number, bool):
        number = float(number) if not isinstance(number, int) else number
        return number if np.isfinite(number) else None
    return number
