"""From a run's folder to its report in a file."""

from collections.abc import Sequence
from pathlib import Path

from fenchel.errors import InputError
from fenchel.files import refuse_unwritable, replace_text
from fenchel.report.evaluation import evaluate
from fenchel.report.findings import Say, silent
from fenchel.report.opened import open_run
from fenchel.report.page import html_report
from fenchel.report.pictures.album import picture_report
from fenchel.report.pictures.evaluation import open_and_evaluate
from fenchel.report.pictures.opened import holds_pictures
from fenchel.runs import RunFolder

NAME = "report.html"


def write_report(
    run: str | Path,
    data: str | None = None,
    out: str | Path | None = None,
    say: Say = silent,
    *,
    networks: str | Path | None = None,
    counts: Sequence[int] | None = None,
) -> Path:
    """Write the report of a run, and say where.

    **Arguments:**

    - `run`: the folder that `fit` made.
    - `data`: the data of the fit, a file or a toy's name; a toy need not be given again.
    - `out`: the file; by default report.html in the run's folder.
    - `say`: is told what is being computed.
    - `networks`, `counts`: for pictures, a folder with the networks that judge them, and the
      numbers of samples to judge by.
    """
    RunFolder(Path(run)).read_record()
    path = Path(run) / NAME if out is None else Path(out)
    refuse_unwritable(path)
    if holds_pictures(run):
        opened, evaluation = open_and_evaluate(run, data, networks, counts, say, "report")
        text = picture_report(opened, evaluation, str(data))
    elif networks is not None or counts is not None:
        raise InputError(f"{run} was fitted to a table: report it without --networks and --n.")
    else:
        text = _of_table(run, data, say)
    replace_text(path, text)
    return path


def _of_table(run: str | Path, data: str | None, say: Say) -> str:
    opened = open_run(run, data, "report")
    evaluation = evaluate(opened.fit, opened.judges, opened.rows, opened.whose, say)
    return html_report(
        opened.fit,
        opened.samples,
        opened.record,
        opened.rows,
        evaluation,
        source=opened.source,
    )
