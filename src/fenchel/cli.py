"""The command line."""

import json
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Any, NoReturn

import numpy as np
import typer
from rich.console import Console
from rich.table import Table

from fenchel.bench import commands as bench
from fenchel.errors import DivergenceError, FenchelError, InputError
from fenchel.version import __version__

app = typer.Typer(
    help="Fit unnormalised models p(x) ∝ exp f(x), and learn their sampler with them.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
)
app.add_typer(bench.app, name="bench")
out = Console()
err = Console(stderr=True)

Data = Annotated[str, typer.Argument(help="A toy's name, or a .npy, .npz, .csv, .parquet file.")]
Run = Annotated[Path, typer.Argument(help="The folder that `fenchel fit --out` made.")]
Json = Annotated[bool, typer.Option("--json", help="Print JSON, for a machine to read.")]
Networks = Annotated[
    Path | None,
    typer.Option(help="For pictures: a folder with networks' weights, fid*.npz and slim*.npz."),
]
Counts = Annotated[
    str | None,
    typer.Option("--n", help="For pictures: how many samples, or several: 10000,50000."),
]


def main() -> None:
    """Run the command line; what the user got wrong ends in one sentence and exit code 2."""
    with _plain_errors():
        app()


@contextmanager
def _plain_errors() -> Iterator[None]:
    try:
        yield
    except DivergenceError as error:
        _fail(str(error), 1)
    except FenchelError as error:
        _fail(str(error), 2)


def _fail(message: str, code: int) -> NoReturn:
    err.print(f"[bold red]Error:[/] {_escaped(message)}", soft_wrap=True)
    sys.exit(code)


def _escaped(text: str) -> str:
    return text.replace("[", "\\[")


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


@app.command()
def fit(
    data: Data,
    out_folder: Annotated[Path, typer.Option("--out", help="The run's folder, a new one.")],
    config: Annotated[
        Path | None, typer.Option("--config", help="Settings, as TOML or JSON.")
    ] = None,
    method: Annotated[
        str | None, typer.Option(help="How to fit, ade by default; see `fenchel methods`.")
    ] = None,
    potential: Annotated[
        str | None,
        typer.Option(
            help="f: mlp, gaussian, full-gaussian; for discrete data ising, potts, rbm, discrete."
        ),
    ] = None,
    dynamics: Annotated[
        str | None,
        typer.Option(
            help="hmc, langevin, generalized-hmc, generalized-langevin, deterministic, "
            "continuous, generalized-continuous or none; joined by + for a stack."
        ),
    ] = None,
    start: Annotated[
        str | None,
        typer.Option(help="spline, coupling, planar, residual, deep-latent, empirical or replay."),
    ] = None,
    domain: Annotated[
        str | None, typer.Option(help="Where the data of every column can be, as LOW,HIGH.")
    ] = None,
    preset: Annotated[
        str | None,
        typer.Option(
            help="Settings for pictures: mnist, mnist-completion, cifar10 or cifar10-residual."
        ),
    ] = None,
    steps: Annotated[int | None, typer.Option(help="Iterations, 3000 by default.")] = None,
    minutes: Annotated[
        float | None, typer.Option(help="Stop after so many; --resume goes on from there.")
    ] = None,
    seed: Annotated[int | None, typer.Option(help="What all randomness comes from.")] = None,
    resume: Annotated[
        bool, typer.Option("--resume", help="Go on from the newest checkpoint.")
    ] = False,
    as_json: Json = False,
) -> None:
    """Fit a model to DATA and write the run into a folder."""
    # Imported here, since JAX takes a second to import and `--help` should not wait for it.
    from fenchel.config import Config
    from fenchel.data import load_samples
    from fenchel.fitting import fit as fit_model
    from fenchel.report.progress import Bar, Silent
    from fenchel.report.summary import summarise, write_figures

    try:
        fitted = fit_model(
            data,
            method,
            potential=potential,
            dynamics=dynamics,
            start=start,
            domain=_ends(domain),
            steps=steps,
            seed=seed,
            preset=preset,
            config=None if config is None else Config.from_file(config),
            minutes=minutes,
            out=out_folder,
            resume=resume,
            progress=Silent() if as_json else Bar(err),
        )
    except KeyboardInterrupt:
        _fail(f"Interrupted. Continue with: fenchel fit {data} --out {out_folder} --resume", 130)
    if fitted.shape is not None:
        _show_pictures(fitted, out_folder, as_json)
        return
    samples = load_samples(data, seed=fitted.config.seed)
    write_figures(fitted, samples, out_folder)
    summary = summarise(fitted, samples)
    if as_json:
        _print_json({"run": str(out_folder), **summary.values})
        return
    out.print(
        _table(f"{samples.name}: {len(samples.x):,} rows, {fitted.dim} columns", summary.rows)
    )
    out.print(f"Run and figures in [bold]{_escaped(str(out_folder))}[/].")


def _score_pictures(
    fitted: Any, data: str, others: list[str], part: str, writer: Any, as_json: bool
) -> None:
    from fenchel.report.pictures.outsiders import load_scores, table_of

    scores = load_scores(fitted, [data, *others], part)
    own = scores[data]
    if not others:
        writer(own[:, None], ("potential",))
    table = table_of(scores, data)
    if as_json:
        _print_json({"pictures": len(own), "mean": float(own.mean()), "against": table})
    elif others:
        shown = Table("pictures", "how many", "mean f", "AUROC", title=f"f, {data} against others")
        for name, row in table.items():
            auroc = "" if row["auroc"] is None else f"{row['auroc']:.3f}"
            shown.add_row(name, f"{row['pictures']:,}", f"{row['mean']:.4f}", auroc)
        out.print(shown)
        out.print("AUROC: how often f is larger on a picture of the first than on another.")


def _show_pictures(fitted: Any, folder: Path, as_json: bool) -> None:
    from fenchel.report.pictures.summary import summarise, write_figures

    write_figures(fitted, folder)
    summary = summarise(fitted, folder)
    if as_json:
        _print_json({"run": str(folder), **summary.values})
        return
    out.print(_table(fitted.name, summary.rows))
    out.print(f"Run and figures in [bold]{_escaped(str(folder))}[/].")


@app.command()
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

    writer = _writer(out_file, as_json)
    fitted = load(run)
    drawn = fitted.sample(n, seed=seed, corrected=False if raw else None)
    writer(drawn, fitted.columns)
    if as_json:
        where = {"out": str(out_file)} if out_file else {"samples": drawn.tolist()}
        _print_json({"rows": n, "columns": list(fitted.columns), **where})


@app.command()
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
    part: Annotated[str, typer.Option(help="Of pictures in two parts: train or test.")] = "train",
    as_json: Json = False,
) -> None:
    """The log density of each row of DATA under a fitted model; of pictures f, unnormalised."""
    from fenchel.data import load_rows
    from fenchel.saving import load

    writer = _writer(out_file, as_json)
    fitted = load(run)
    if fitted.shape is not None:
        _score_pictures(fitted, data, against or [], part, writer, as_json)
        return
    if against:
        raise InputError("--against is for models of pictures: this is one of a table.")
    rows = load_rows(data, seed=fitted.config.seed + 1)
    fitted.standardiser.check_dimension(rows.x)
    densities = fitted.log_density(rows.in_order(fitted.columns))
    writer(densities[:, None], ("log_density",))
    if as_json:
        mean, error = densities.mean(), densities.std() / len(densities) ** 0.5
        summary = {"rows": len(densities), "mean": float(mean), "standard_error": float(error)}
        where = {"out": str(out_file)} if out_file else {"log_density": densities.tolist()}
        _print_json({**summary, **where})


@app.command()
def complete(
    run: Run,
    pictures: Annotated[str, typer.Argument(help="A picture, a folder of them, an .npz file, ...")],
    out_folder: Annotated[Path, typer.Option("--out", help="A folder for the results.")],
    mask: Annotated[
        str, typer.Option(help="What to complete: lower, upper, left, right, or a mask's file.")
    ] = "lower",
    part: Annotated[str, typer.Option(help="Of data in two parts: train or test.")] = "train",
    n: Annotated[int, typer.Option("-n", help="How many of the pictures, from the first on.")] = 8,
    rounds: Annotated[int, typer.Option(help="Of the dynamics, each with a new momentum.")] = 20,
    seed: Annotated[int, typer.Option(help="Which noise to begin with.")] = 0,
    as_json: Json = False,
) -> None:
    """Complete pictures of which a part is hidden, by the learnt dynamics."""
    from fenchel.report.pictures.completing import complete_pictures

    with _spoken() as say:
        files = complete_pictures(run, pictures, out_folder, mask, part, n, rounds, seed, say)
    if as_json:
        _print_json({name: str(path) for name, path in files.items()})
        return
    names = ", ".join(path.name for path in files.values())
    out.print(f"{names} in [bold]{_escaped(str(out_folder))}[/].", soft_wrap=True)


@app.command()
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

    counts = None if n is None else _counts(n)
    with _spoken() as say:
        path = write_report(run, data, out_file, say, networks=networks, counts=counts)
    if as_json:
        _print_json({"report": str(path), "bytes": path.stat().st_size})
        return
    out.print(f"Report in [bold]{_escaped(str(path))}[/].", soft_wrap=True)


@app.command()
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
        _print_json({"run": str(run), "verdict": verdict, "lines": lines, "values": found.values})
        return
    out.print(_verdicts(title, found.lines))
    out.print(f"{_MARKS[found.verdict.verdict]} {_escaped(found.verdict.meaning)}")
    for figure in found.values.get("figures", {}).values():
        out.print(f"Figure: [bold]{_escaped(figure)}[/]", soft_wrap=True)


def _judge_table(run: Path, data: str | None) -> tuple[str, Any]:
    from fenchel.report.evaluation import evaluate as judge
    from fenchel.report.opened import open_run

    opened = open_run(run, data, "evaluate")
    with _spoken() as say:
        found = judge(opened.fit, opened.judges, opened.rows, opened.whose, say)
    return f"{opened.fit.name}, judged by {opened.whose}", found


def _judge_pictures(
    run: Path, data: str | None, networks: Path | None, n: str | None
) -> tuple[str, Any]:
    from fenchel.report.pictures.evaluation import open_and_evaluate

    counts = None if n is None else _counts(n)
    with _spoken() as say:
        opened, found = open_and_evaluate(run, data, networks, counts, say, "evaluate")
    return f"{opened.fit.name}, judged by pictures of {opened.train.name}", found


def _counts(text: str) -> list[int]:
    """Whole numbers, as in 10000,50000."""
    try:
        return [int(number) for number in text.split(",")]
    except ValueError:
        raise InputError(
            f"The number of samples {text!r} is not a whole number, or several: write 10000,50000."
        ) from None


@app.command()
def datasets(as_json: Json = False) -> None:
    """The toy data sets."""
    from fenchel.data import TOYS

    known = [
        {
            "name": toy.name,
            "description": toy.description,
            "density": "none (zero width)" if toy.thin else "known" if toy.log_density else "-",
        }
        for toy in TOYS.values()
    ]
    if as_json:
        _print_json(known)
        return
    table = Table("name", "what it is", "true density", title="Toy data sets")
    for entry in known:
        table.add_row(entry["name"], entry["description"], entry["density"])
    out.print(table)


@app.command()
def methods(as_json: Json = False) -> None:
    """All methods: what each needs, what it gives, and what a step costs."""
    from dataclasses import asdict

    from fenchel.methods import METHODS

    if as_json:
        _print_json([{"name": name, **asdict(method)} for name, method in METHODS.items()])
        return
    table = Table(title="Methods of `fit`", show_lines=True)
    # What it is stands beneath its name: beside it, no column would be as wide as its own words.
    table.add_column("method", width=max(map(len, METHODS)))
    for column in ("needs", "gives", "cost a datum"):
        table.add_column(column)
    for name, method in METHODS.items():
        too = "; for discrete data too" if method.discrete else ""
        called = f"[bold]{name}[/]\n{_escaped(method.summary + too)}"
        table.add_row(called, method.needs, method.gives, method.cost)
    out.print(table)


@contextmanager
def _spoken() -> Iterator[Callable[[str], None]]:
    """A line on the error stream that says what is being computed."""
    with err.status("Reading the run") as status:
        yield lambda doing: status.update(f"Computing {doing}")


def _ends(text: str | None) -> tuple[float, float] | None:
    """LOW,HIGH as two numbers."""
    if text is None:
        return None
    try:
        low, high = map(float, text.split(","))
    except ValueError:
        raise InputError(
            f"The domain {text!r} is not two numbers: write it as 0,1 or 0,inf."
        ) from None
    return low, high


_MARKS = {
    "good": "[green]✓ good[/]",
    "caution": "[yellow]! caution[/]",
    "bad": "[red]✗ bad[/]",
    "": "",
}


def _verdicts(title: str, lines: list[Any]) -> Table:
    table = Table(title=title, title_justify="left")
    table.add_column("verdict", no_wrap=True)
    table.add_column("what", ratio=1)
    table.add_column("found", ratio=2)
    for line in lines:
        name, value, meaning = (_escaped(text) for text in (line.name, line.value, line.meaning))
        table.add_row(_MARKS[line.verdict], name, f"{value}\n[dim]{meaning}[/]")
    return table


def _table(title: str, rows: list[tuple[str, str]]) -> Table:
    table = Table(title=title, show_header=False, title_justify="left")
    for name, value in rows:
        table.add_row(name, value)
    return table


def _print_json(value: Any) -> None:
    typer.echo(json.dumps(value, indent=2))


def _writer(path: Path | None, as_json: bool):
    """How to write a table to that file; refused here, before any work is done, if it cannot be.

    Without a file it is printed as CSV, unless JSON, which then holds it, is to be printed.
    """
    from fenchel.files import refuse_unwritable

    writers = {".npy": _write_npy, ".npz": _write_npz, ".csv": _write_csv}
    if path is None and as_json:
        return lambda table, columns: None
    if path is None:
        return lambda table, columns: _write_csv(sys.stdout, table, columns)
    if path.suffix not in writers:
        raise InputError(f"{path} must end in one of {', '.join(writers)}.")
    refuse_unwritable(path)
    return lambda table, columns: writers[path.suffix](path, table, columns)


def _write_npy(path, table: np.ndarray, columns: tuple[str, ...]) -> None:
    np.save(path, table)


def _write_npz(path, table: np.ndarray, columns: tuple[str, ...]) -> None:
    np.savez(path, x=table)


def _write_csv(path, table: np.ndarray, columns: tuple[str, ...]) -> None:
    np.savetxt(path, table, delimiter=",", header=",".join(columns), comments="")


if __name__ == "__main__":
    main()
