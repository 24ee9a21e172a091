"""`fenchel evaluate` and `fenchel report`."""

from pathlib import Path
from typing import Annotated, Any

import typer
from rich.table import Table

from fenchel.cli.console import escaped, out, print_json, spoken
from fenchel.cli.options import Counts, Json, Networks, Run, counts

_MARKS = {
    "good": "[green]✓ good[/]",
    "caution": "[yellow]! caution[/]",
    "bad": "[red]✗ bad[/]",
    "": "",
}


def evaluate(
    run: Run,
    data: Annotated[
        str | None,
        typer.Argument(
            help="Data to judge by, best held out; a toy's are drawn afresh. Pictures in two "
            "parts, train and test."
        ),
    ] = None,
    images: Annotated[
        bool, typer.Option("--images", help="The run is one of pictures; refuse any other.")
    ] = False,
    networks: Networks = None,
    n: Counts = None,
    as_json: Json = False,
) -> None:
    """How good a fit is: training, log Z, likelihood, samples and sampler, with verdicts.

    Of pictures: FID, energies, neighbours and what the dynamics move, with figures in the run.
    """
    from fenchel.report.pictures.opened import holds_pictures

    if images or networks is not None or n is not None or holds_pictures(run):
        title, found = _judge_pictures(run, data, networks, n)
    else:
        title, found = _judge_table(run, data)
    if as_json:
        lines = [line._asdict() for line in found.lines]
        verdict = found.verdict._asdict()
        print_json({"run": str(run), "verdict": verdict, "lines": lines, "values": found.values})
        return
    out.print(_verdicts(title, found.lines))
    out.print(f"{_MARKS[found.verdict.verdict]} {escaped(found.verdict.meaning)}")
    for figure in found.values.get("figures", {}).values():
        out.print(f"Figure: [bold]{escaped(figure)}[/]", soft_wrap=True)


def _judge_table(run: Path, data: str | None) -> tuple[str, Any]:
    from fenchel.report.evaluation import evaluate as judge
    from fenchel.report.opened import open_run

    opened = open_run(run, data, "evaluate")
    with spoken() as say:
        found = judge(opened.fit, opened.judges, opened.rows, opened.whose, say)
    return f"{opened.fit.name}, judged by {opened.whose}", found


def _judge_pictures(
    run: Path, data: str | None, networks: Path | None, n: str | None
) -> tuple[str, Any]:
    from fenchel.report.pictures.evaluation import open_and_evaluate

    with spoken() as say:
        opened, found = open_and_evaluate(run, data, networks, counts(n), say, "evaluate")
    return f"{opened.fit.name}, judged by pictures of {opened.train.name}", found


def _verdicts(title: str, lines: list[Any]) -> Table:
    table = Table(title=title, title_justify="left")
    table.add_column("verdict", no_wrap=True)
    table.add_column("what", ratio=1)
    table.add_column("found", ratio=2)
    for line in lines:
        name, value, meaning = (escaped(text) for text in (line.name, line.value, line.meaning))
        table.add_row(_MARKS[line.verdict], name, f"{value}\n[dim]{meaning}[/]")
    return table


def report(
    run: Run,
    data: Annotated[
        str | None, typer.Argument(help="The data of the fit; a toy need not be given again.")
    ] = None,
    out_file: Annotated[
        Path | None, typer.Option("--out", help="The file; report.html in the run by default.")
    ] = None,
    networks: Networks = None,
    n: Counts = None,
    as_json: Json = False,
) -> None:
    """Write a run as one HTML page, which any browser shows without a network."""
    from fenchel.report.writing import write_report

    with spoken() as say:
        path = write_report(run, data, out_file, say, networks=networks, counts=counts(n))
    if as_json:
        print_json({"report": str(path), "bytes": path.stat().st_size})
        return
    out.print(f"Report in [bold]{escaped(str(path))}[/].", soft_wrap=True)
