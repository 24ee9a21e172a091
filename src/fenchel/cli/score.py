"""`fenchel score`."""

from pathlib import Path
from typing import Annotated, Any

import numpy as np
import typer
from rich.table import Table

from fenchel.cli.console import out, print_json
from fenchel.cli.options import Data, Json, Part, Run
from fenchel.cli.table_files import writer_to
from fenchel.errors import InputError


def score(
    run: Run,
    data: Data,
    out_file: Annotated[
        Path | None, typer.Option("--out", help="A .npy, .npz or .csv file; else printed as CSV.")
    ] = None,
    against: Annotated[
        list[str] | None,
        typer.Option(help="Other pictures, to tell from DATA by f alone; may be given again."),
    ] = None,
    part: Part = None,
    as_json: Json = False,
) -> None:
    """The log density of each row of DATA under a fitted model; of pictures f, unnormalised."""
    from fenchel.data import load_rows
    from fenchel.saving import load

    writer = writer_to(out_file, as_json)
    fitted = load(run)
    if fitted.shape is not None:
        _score_pictures(fitted, data, against or [], part, writer, out_file, as_json)
        return
    if against:
        raise InputError("--against is for models of pictures: this is one of a table.")
    rows = load_rows(data, seed=fitted.config.seed + 1)
    fitted.standardiser.check_dimension(rows.x)
    densities = fitted.log_density(rows.in_order(fitted.columns))
    writer(densities[:, None], ("log_density",))
    if as_json:
        print_json({"rows": len(densities), **_summary(densities, "log_density", out_file)})


def _summary(scores: np.ndarray, name: str, out_file: Path | None) -> dict[str, Any]:
    """What JSON says of scores: their mean, and themselves or the file that they are in."""
    from fenchel.result import mean_with_error

    mean, error = mean_with_error(scores)
    where = {"out": str(out_file)} if out_file else {name: scores.tolist()}
    return {"mean": mean, "standard_error": error, **where}


def _score_pictures(
    fitted: Any,
    data: str,
    others: list[str],
    part: str | None,
    writer: Any,
    out_file: Path | None,
    as_json: bool,
) -> None:
    from fenchel.report.pictures.outsiders import load_scores, table_of

    scores = load_scores(fitted, data, others, part)
    own = scores[data]
    # Without a file the screen is for the comparison, if there is one.
    if out_file or not others:
        writer(own[:, None], ("potential",))
    table = table_of(scores, data)
    if as_json:
        summary = _summary(own, "potential", out_file)
        print_json({"pictures": len(own), **summary, "against": table})
    elif others:
        shown = Table("pictures", "how many", "mean f", "AUROC", title=f"f, {data} against others")
        for name, row in table.items():
            auroc = "" if row["auroc"] is None else f"{row['auroc']:.3f}"
            shown.add_row(name, f"{row['pictures']:,}", f"{row['mean']:.4f}", auroc)
        out.print(shown)
        out.print("AUROC: how often f is larger on a picture of the first than on another.")
