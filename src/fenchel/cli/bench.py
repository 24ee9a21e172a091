"""`fenchel bench ...`."""

from pathlib import Path
from typing import Annotated, Any

import typer
from rich.table import Table

from fenchel.cli.console import err, escaped, out, print_json
from fenchel.cli.options import Json
from fenchel.errors import InputError

app = typer.Typer(no_args_is_help=True)


@app.callback()
def _everywhere() -> None:
    """The paper's experiments; a run cut short goes on."""
    from fenchel.bench.spread import count_cores_as_devices

    count_cores_as_devices()


Out = Annotated[Path, typer.Option("--out", help="The folder; what is in it already is kept.")]
Seeds = Annotated[str, typer.Option(help="Of data, nets and batches, as 1,2,3.")]
Steps = Annotated[int | None, typer.Option(help="Iterations of every method, in place of its own.")]


@app.command()
def toys(
    out_folder: Out,
    methods: Annotated[
        str, typer.Option(help="Which, as sm,nf,cd15,ade-paper,ade,flowjax.")
    ] = "sm,nf,cd15,ade-paper,ade",
    sets: Annotated[
        str | None, typer.Option(help="Toys, as moons,Ring; the paper's fourteen by default.")
    ] = None,
    seeds: Seeds = "1,2,3",
    steps: Steps = None,
    replicates: Annotated[
        int, typer.Option(help="Of truth against truth; fewer are quicker on a CPU.")
    ] = 100,
    as_json: Json = False,
) -> None:
    """The paper's Table 2: MMD, z-scores and log likelihood of every method on the toys."""
    from fenchel.bench.folder import BenchFolder
    from fenchel.bench.progress import Progressing
    from fenchel.bench.toys import SETS, Settings, run

    settings = Settings(_words(sets) if sets else SETS, _numbers(seeds, "seeds"), steps, replicates)
    with Progressing(None if as_json else err) as progress:
        results = run(list(_words(methods)), settings, BenchFolder(out_folder), progress)
    _show(results, as_json, out_folder / "toys.md", _toy_summary)


@app.command()
def gaussian(
    out_folder: Out,
    dims: Annotated[str, typer.Option(help="Dimensions, as 1,2,4.")] = "1,2,4,8,16,32,64,128",
    methods: Annotated[
        str, typer.Option(help="Which, as mle,cd15,ade-paper,ade.")
    ] = "mle,cd15,ade-paper,ade",
    seeds: Seeds = "1,2,3",
    steps: Steps = None,
    as_json: Json = False,
) -> None:
    """Recovering a Gaussian's mean and standard deviation, in more and more dimensions."""
    from fenchel.bench.folder import BenchFolder
    from fenchel.bench.gaussian import Settings, run
    from fenchel.bench.progress import Progressing

    settings = Settings(_numbers(seeds, "seeds"), steps)
    with Progressing(None if as_json else err) as progress:
        results = run(
            list(_words(methods)),
            list(_numbers(dims, "dimensions")),
            settings,
            BenchFolder(out_folder),
            progress,
        )
    _show(results, as_json, out_folder / "gaussian.md", _gaussian_summary)


def _show(results: dict[str, Any], as_json: bool, path: Path, summary) -> None:
    if as_json:
        print_json(results)
        return
    out.print(summary(results))
    out.print(f"Tables in [bold]{escaped(str(path))}[/].", soft_wrap=True)


def _toy_summary(results: dict[str, Any]) -> Table:
    from fenchel.bench.toy_table import below_two, best_z

    table = Table("method", "runs", "diverged", "z < 2 at n = 2,000", title="Table 2")
    for name, method in results["methods"].items():
        rows = method["runs"]
        under = sum(below_two(best_z(row, 2_000)) for row in rows)
        lost = sum(row["diverged"] for row in rows)
        table.add_row(name, str(len(rows)), str(lost), f"{under} of {len(rows)}")
    return table


def _gaussian_summary(results: dict[str, Any]) -> Table:
    table = Table("method", "dimension", "error of the mean", "of the sd", title="Recovery")
    for row in results["rows"]:
        errors = (f"{row[name]:.4f}" for name in ("mean_error", "sd_error"))
        table.add_row(row["method"], str(row["dim"]), *errors)
    return table


def _words(text: str) -> tuple[str, ...]:
    """Separated by commas or spaces."""
    words = tuple(text.replace(",", " ").split())
    if not words:
        raise InputError("An empty list was given: name at least one.")
    return words


def _numbers(text: str, what: str) -> tuple[int, ...]:
    words = _words(text)
    if not all(word.isdigit() for word in words):
        raise InputError(f"The {what} {text!r} are not whole numbers: write them as 1,2,3.")
    return tuple(map(int, words))
