"""`fenchel sample` and `fenchel complete`."""

from pathlib import Path
from typing import Annotated

import typer

from fenchel.cli.console import escaped, out, print_json, spoken
from fenchel.cli.options import Json, Part, Run
from fenchel.cli.table_files import writer_to


def sample(
    run: Run,
    n: Annotated[int, typer.Option("-n", help="How many.")] = 1000,
    out_file: Annotated[
        Path | None, typer.Option("--out", help="A .npy, .npz or .csv file; else printed as CSV.")
    ] = None,
    seed: Annotated[int, typer.Option(help="Which draws.")] = 0,
    raw: Annotated[
        bool, typer.Option("--raw", help="The sampler as it is, not corrected by its weights.")
    ] = False,
    as_json: Json = False,
) -> None:
    """Draw from a fitted model, in the data's units."""
    from fenchel.saving import load

    writer = writer_to(out_file, as_json)
    fitted = load(run)
    drawn = fitted.sample(n, seed=seed, corrected=False if raw else None)
    writer(drawn, fitted.columns)
    if as_json:
        where = {"out": str(out_file)} if out_file else {"samples": drawn.tolist()}
        print_json({"rows": n, "columns": list(fitted.columns), **where})


def complete(
    run: Run,
    pictures: Annotated[str, typer.Argument(help="A picture, a folder of them, an .npz file, ...")],
    out_folder: Annotated[Path, typer.Option("--out", help="A folder for the results.")],
    mask: Annotated[
        str, typer.Option(help="What to complete: lower, upper, left, right, or a mask's file.")
    ] = "lower",
    part: Part = None,
    n: Annotated[int, typer.Option("-n", help="How many of the pictures, from the first on.")] = 8,
    rounds: Annotated[int, typer.Option(help="Of the dynamics, each with a new momentum.")] = 20,
    seed: Annotated[int, typer.Option(help="Which noise to begin with.")] = 0,
    as_json: Json = False,
) -> None:
    """Complete pictures of which a part is hidden, by the learnt dynamics."""
    from fenchel.report.pictures.completing import complete_pictures

    with spoken() as say:
        files = complete_pictures(run, pictures, out_folder, mask, part, n, rounds, seed, say)
    if as_json:
        print_json({name: str(path) for name, path in files.items()})
        return
    names = ", ".join(path.name for path in files.values())
    out.print(f"{names} in [bold]{escaped(str(out_folder))}[/].", soft_wrap=True)
