"""From a run's folder to its report in a file."""

from pathlib import Path

from fenchel.errors import InputError
from fenchel.files import refuse_unwritable, replace_text
from fenchel.report.evaluation import evaluate
from fenchel.report.findings import Say, silent
from fenchel.report.opened import open_run
from fenchel.report.page import html_report
from fenchel.report.pictures.opened import holds_pictures
from fenchel.runs import RunFolder

NAME = "report.html"


def write_report(
    run: str | Path,
    data: str | None = None,
    out: str | Path | None = None,
    say: Say = silent,
) -> Path:
    """Write the report of a run, and say where.

    **Arguments:**

    - `run`: the folder that `fit` made.
    - `data`: the data of the fit, a file or a toy's name; a toy need not be given again.
    - `out`: the file; by default report.html in the run's folder.
    - `say`: is told what is being computed.
    """
    path = RunFolder(Path(run)).path / NAME if out is None else Path(out)
    refuse_unwritable(path)
    if holds_pictures(run):
        raise InputError(
            f"{run} is a model of pictures, which the page does not show: use fenchel evaluate, "
            "which writes its figures into the run."
        )
    opened = open_run(run, data, "report")
    evaluation = evaluate(opened.fit, opened.judges, opened.rows, opened.whose, say)
    text = html_report(
        opened.fit,
        opened.samples,
        opened.record,
        opened.rows,
        evaluation,
        source=opened.source,
    )
    replace_text(path, text)
    return path
