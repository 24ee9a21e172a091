"""What all commands say, and how: tables, JSON, a status line, errors in one sentence."""

import json
import math
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, NoReturn

import typer
from rich.console import Console
from rich.table import Table

from fenchel.errors import DivergenceError, FenchelError

out = Console()
err = Console(stderr=True)


@contextmanager
def plain_errors() -> Iterator[None]:
    try:
        yield
    except DivergenceError as error:
        fail(str(error), 1)
    except FenchelError as error:
        fail(str(error), 2)
    except OSError as error:
        where = error.filename or "A file"
        reason = error.strerror or error
        fail(f"{where} cannot be read or written ({reason}): choose another place.", 2)


def fail(message: str, code: int) -> NoReturn:
    err.print(f"[bold red]Error:[/] {escaped(message)}", soft_wrap=True)
    sys.exit(code)


def escaped(text: str) -> str:
    return text.replace("[", "\\[")


@contextmanager
def spoken() -> Iterator[Callable[[str], None]]:
    """A line on the error stream that says what is being computed."""
    with err.status("Reading the run") as status:
        yield lambda doing: status.update(f"Computing {doing}")


def pairs_table(title: str, rows: list[tuple[str, str]]) -> Table:
    table = Table(title=title, show_header=False, title_justify="left")
    for name, value in rows:
        table.add_row(name, value)
    return table


def print_json(value: Any) -> None:
    """What is not finite becomes null: JSON has no other word for it."""
    typer.echo(json.dumps(_without_infinities(value), indent=2, allow_nan=False))


def _without_infinities(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: _without_infinities(entry) for name, entry in value.items()}
    if isinstance(value, list | tuple):
        return [_without_infinities(entry) for entry in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value
