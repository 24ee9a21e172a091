"""What a person sees of a benchmark: the method, how far it is, and the time left."""

from types import TracebackType

from rich.console import Console
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    TextColumn,
    TimeRemainingColumn,
)


class Progressing:
    """One line at a time; used as a context. Without a console it says nothing."""

    def __init__(self, console: Console | None = None):
        self._progress = Progress(
            TextColumn("[bold]{task.description}"),
            BarColumn(bar_width=20),
            MofNCompleteColumn(),
            TimeRemainingColumn(),
            console=console,
            disable=console is None,
        )

    def __enter__(self) -> "Progressing":
        self._progress.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._progress.stop()

    def begin(self, what: str, total: int, done: int = 0) -> None:
        """A new line: of training in iterations, of scoring in runs."""
        self._task = self._progress.add_task(what, total=total, completed=done)

    def reach(self, done: int) -> None:
        """So much of it is done."""
        self._progress.update(self._task, completed=done)
