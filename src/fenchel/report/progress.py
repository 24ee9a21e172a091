"""What a person sees while a run goes on."""

from types import TracebackType
from typing import Any, Protocol

from rich.console import Console
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    TextColumn,
    TimeRemainingColumn,
)


class Watcher(Protocol):
    """Anything that is told how a run goes; used as a context."""

    def __enter__(self) -> "Watcher": ...

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None: ...

    def begin(self, steps: int, done: int) -> None:
        """Before the first block, which takes longest: it is compiled."""

    def block(self, row: dict[str, Any]) -> None:
        """After each block, with its row of metrics."""


class Silent:
    """Sees nothing, says nothing."""

    def __enter__(self) -> "Silent":
        return self

    def __exit__(self, *_: object) -> None:
        return None

    def begin(self, steps: int, done: int) -> None:
        return None

    def block(self, row: dict[str, Any]) -> None:
        return None


class Bar:
    """A progress bar with rate, time left, bound and effective sample size; events above it."""

    def __init__(self, console: Console | None = None):
        self._progress = Progress(
            TextColumn("[bold]{task.description}"),
            BarColumn(bar_width=10),
            MofNCompleteColumn(),
            TextColumn("{task.fields[rate]}"),
            TimeRemainingColumn(),
            TextColumn("{task.fields[health]}"),
            console=console or Console(stderr=True),
        )

    def __enter__(self) -> "Bar":
        self._progress.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._progress.stop()

    def begin(self, steps: int, done: int) -> None:
        self._task = self._progress.add_task(
            "compiling", total=steps, completed=done, rate="", health=""
        )

    def block(self, row: dict[str, Any]) -> None:
        health = "  ".join(told(row))
        self._progress.update(
            self._task,
            description="training",
            completed=row["iteration"],
            rate=pace(row["iterations_per_second"]),
            health=health,
        )
        for event in row["events"]:
            self._progress.console.print(f"[yellow]{describe_event(event)}")


def pace(iterations_per_second: float) -> str:
    """The way round that has digits."""
    if iterations_per_second < 1:
        return f"{1 / iterations_per_second:.1f} s/it"
    return f"{iterations_per_second:.{0 if iterations_per_second >= 10 else 1}f} it/s"


def told(row: dict[str, Any]) -> list[str]:
    """What says most of how the run goes, no longer than fits on 80 columns with the bar."""
    if row["log_partition_lower"] is not None:
        return _known(row, {"log_partition_lower": "bound", "ess": "ESS"})
    if row["acceptance"] is None and row["potential_draws"] is not None:
        # Without a density: the bound as far as it is known, f of real and of drawn points.
        both = f"f {row['potential_data']:.2g} | {row['potential_draws']:.2g}"
        bound, step = {"objective": "bound"}, {"step_size": "step"}
        return [*_known(row, bound, 2), both, *_known(row, step, 2)]
    return _known(row, {"loss": "loss", "acceptance": "accepted"})


def _known(row: dict[str, Any], names: dict[str, str], digits: int = 3) -> list[str]:
    present = {name: row[key] for key, name in names.items() if row[key] is not None}
    return [f"{name} {value:.{digits}g}" for name, value in present.items()]


def describe_event(event: dict[str, Any]) -> str:
    """An event in words."""
    if event["who"] == "flow":
        return (
            f"iteration {event['iteration']}: the flow along the score was at "
            f"{event['strain']:.2g} of what it can bear (from 1 on it may fold, or its solver give "
            "up), so it was shortened by half"
        )
    return (
        f"iteration {event['iteration']}: {event['dropped']} non-finite step(s) of the "
        f"{event['who']} dropped, last good state kept, its learning rate now at "
        f"{event['learning_rate']:.3g} of what was asked"
    )
