"""The command line: a file for each few commands, put together here.

What a command needs is imported when it runs, since JAX takes a second to import and `--help`
should not wait for it.
"""

from typing import Annotated

import typer

from fenchel.cli import bench
from fenchel.cli.console import plain_errors
from fenchel.cli.draw import complete, sample
from fenchel.cli.fit import fit
from fenchel.cli.judge import evaluate, report
from fenchel.cli.listings import datasets, methods
from fenchel.cli.score import score
from fenchel.version import __version__

app = typer.Typer(
    help="Fit unnormalised models p(x) ∝ exp f(x), and learn their sampler with them.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
)
for command in (fit, sample, score, complete, report, evaluate, datasets, methods):
    app.command()(command)
app.add_typer(bench.app, name="bench")


def main() -> None:
    """Run the command line; what the user got wrong ends in one sentence and exit code 2."""
    with plain_errors():
        app()


def _version(asked: bool) -> None:
    if asked:
        typer.echo(f"fenchel {__version__}")
        raise typer.Exit


@app.callback()
def _options(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Print the version.")
    ] = False,
) -> None:
    pass
