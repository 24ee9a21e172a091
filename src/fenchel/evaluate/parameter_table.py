"""Parameters with their standard errors, as a statistician expects them."""

import html
import textwrap
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy import stats

WIDTH = 78
COLUMN = 10  # characters of a number


@dataclass(frozen=True, eq=False)
class ParameterTable:
    """Estimates, standard errors, z, p-values and confidence intervals, and what they rest on.

    `distance` is how many standard errors the estimate that is farthest from its optimum is away
    from it: where it is not small, training has not ended. `str` makes a table of all this.
    """

    title: str
    facts: Sequence[tuple[str, str]]  # about the fit, in the head of the table
    names: tuple[str, ...]
    estimates: np.ndarray
    covariance: np.ndarray
    notes: Sequence[str] = ()
    distance: float = 0.0
    level: float = 0.95

    @property
    def standard_errors(self) -> np.ndarray:
        return np.sqrt(np.diagonal(self.covariance))

    @property
    def z(self) -> np.ndarray:
        """Estimates in standard errors from 0."""
        return self.estimates / self.standard_errors

    @property
    def p_values(self) -> np.ndarray:
        """Of a true value of 0, two-sided."""
        return 2 * stats.norm.sf(np.abs(self.z))

    @property
    def intervals(self) -> np.ndarray:
        """(p, 2): confidence intervals at `level`."""
        reach = stats.norm.ppf(0.5 + self.level / 2) * self.standard_errors
        return np.stack([self.estimates - reach, self.estimates + reach], axis=1)

    def __str__(self) -> str:
        double, single = "=" * self._width, "-" * self._width
        body = [self._line(name, cells) for name, cells in self._rows]
        return "\n".join(
            [
                self.title.center(self._width).rstrip(),
                double,
                *self._head(),
                double,
                self._line("", self._heads),
                single,
                *body,
                double,
                *self._notes(),
            ]
        )

    def _repr_html_(self) -> str:
        """For notebooks."""
        row = lambda tag, cells: "".join(f"<{tag}>{html.escape(c)}</{tag}>" for c in cells)  # noqa: E731
        lines = [f"<tr>{row('th', ['', *self._heads])}</tr>"]
        lines += [f"<tr>{row('td', [name, *cells])}</tr>" for name, cells in self._rows]
        facts = "<br>".join(html.escape(f"{name}: {value}") for name, value in self.facts)
        notes = "".join(f"<li>{html.escape(note)}</li>" for note in self.notes)
        caption = f"<caption><b>{html.escape(self.title)}</b><br>{facts}</caption>"
        return f"<table>{caption}{''.join(lines)}</table><ol>{notes}</ol>"

    @property
    def _heads(self) -> list[str]:
        low, high = 0.5 - self.level / 2, 0.5 + self.level / 2
        return ["estimate", "std err", "z", "P>|z|", f"[{low:.4g}", f"{high:.4g}]"]

    @property
    def _rows(self) -> list[tuple[str, list[str]]]:
        columns = zip(
            self.names,
            self.estimates,
            self.standard_errors,
            self.z,
            self.p_values,
            self.intervals,
            strict=True,
        )
        return [
            (name, [f"{w:.4g}", f"{se:.3g}", f"{z:.2f}", f"{p:.3f}", *(f"{e:.4g}" for e in ends)])
            for name, w, se, z, p, ends in columns
        ]

    @property
    def _width(self) -> int:
        return max(WIDTH, self._name_width + len(self._heads) * (COLUMN + 1))

    @property
    def _name_width(self) -> int:
        return max(map(len, self.names), default=0)

    def _line(self, name: str, cells: Sequence[str]) -> str:
        space = self._width - len(cells) * (COLUMN + 1)
        return name.ljust(space) + "".join(f" {cell:>{COLUMN}}" for cell in cells)

    def _head(self) -> list[str]:
        """The facts, two a line where they are short."""
        half = self._width // 2 - 1
        texts = [f"{name + ':':<16} {value}" for name, value in self.facts]
        short = [text for text in texts if len(text) <= half]
        pairs = [short[i : i + 2] for i in range(0, len(short), 2)]
        lines = ["  ".join(text.ljust(half) for text in pair).rstrip() for pair in pairs]
        return lines + [text for text in texts if len(text) > half]

    def _notes(self) -> list[str]:
        lines = []
        for number, note in enumerate(self.notes, 1):
            mark = f"[{number}] "
            lines += textwrap.wrap(mark + note, self._width, subsequent_indent=" " * len(mark))
        return lines
