"""From a run's folder to its report in a file."""

from pathlib import Path

from fenchel.data import TOYS, Samples, load_samples
from fenchel.errors import InputError
from fenchel.files import refuse_unwritable, replace_text
from fenchel.report.lines import Evaluation, Line
from fenchel.report.page import html_report
from fenchel.report.summary import summarise
from fenchel.result import Fit
from fenchel.runs import RunFolder
from fenchel.saving import load

NAME = "report.html"


def write_report(run: str | Path, data: str | None = None, out: str | Path | None = None) -> Path:
    """Write the report of a run, and say where.

    **Arguments:**

    - `run`: the folder that `fit` made.
    - `data`: the data of the fit, a file or a toy's name; a toy need not be given again.
    - `out`: the file; by default report.html in the run's folder.
    """
    folder = RunFolder(Path(run))
    record = folder.read_record()
    path = folder.path / NAME if out is None else Path(out)
    refuse_unwritable(path)
    source = data or _toy(record["data"].get("name"), folder.path)
    fit = load(folder.path)
    samples = load_samples(source, seed=fit.config.seed)
    fit.standardiser.check_dimension(samples.x)
    rows = folder.read_metrics()
    text = html_report(fit, samples, record, rows, _evaluation(fit, samples), source=source)
    replace_text(path, text)
    return path


def _toy(name: str | None, run: Path) -> str:
    if name in TOYS:
        return str(name)
    raise InputError(
        f"{run} was fitted to a file, {name!r}, which is not kept in it: give the file, as in "
        f"fenchel report {run} DATA."
    )


def _evaluation(fit: Fit, samples: Samples) -> Evaluation:
    summary = summarise(fit, samples)
    lines = [Line(name, value, "", "") for name, value in summary.rows]
    verdict = Line("fit", "", "", "The numbers of this fit are below.")
    return Evaluation(verdict, lines, summary.values)
