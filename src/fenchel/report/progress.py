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
        # No more than fits on 80 columns.
        names = _told(row)
        known = {name: row[key] for key, name in names.items() if row[key] is not None}
        health = "  ".join(f"{name} {value:.3g}" for name, value in known.items())
        self._progress.update(
            self._task,
            description="training",
            completed=row["iteration"],
            rate=f"{row['iterations_per_second']:.0f} it/s",
            health=health,
        )
        for event in row["events"]:
            self._progress.console.print(f"[yellow]{describe_event(event)}")


def _told(row: dict[str, Any]) -> dict[str, str]:
    """What says most of how the run goes: bounds where there are any, else f here and there."""
    if row["log_partition_lower"] is not None:
        return {"log_partition_lower": "log Z ≥", "ess": "ESS"}
    if row["acceptance"] is None and row["potential_draws"] is not None:
        return {"potential_data": "f real", "potential_draws": "drawn", "step_size": "step"}
    return {"loss": "loss", "acceptance": "accepted"}


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
