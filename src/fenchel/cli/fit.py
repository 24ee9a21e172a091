"""`fenchel fit`."""

import shlex
from pathlib import Path
from typing import Annotated, Any

import typer

from fenchel.cli.console import err, escaped, fail, out, pairs_table, print_json
from fenchel.cli.options import Data, Json, ends


def fit(
    data: Data,
    out_folder: Annotated[Path, typer.Option("--out", help="The run's folder, a new one.")],
    config: Annotated[
        Path | None,
        typer.Option("--config", help="Settings, as TOML or JSON; a run's config.json has all."),
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
            help="hmc, langevin, generalized-hmc, generalized-langevin, damped, deterministic, "
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
            help="Settings for pictures: mnist, mnist-completion, cifar10 (the paper's: with "
            "-paper at the end) or cifar10-residual."
        ),
    ] = None,
    flips: Annotated[
        bool | None,
        typer.Option("--flips/--no-flips", help="Whether pictures are shown in a mirror too."),
    ] = None,
    dequantise: Annotated[
        float | None,
        typer.Option(help="How wide a cell each grey level of pictures is spread over: 0 to 1."),
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
            domain=ends(domain),
            steps=steps,
            seed=seed,
            preset=preset,
            flips=flips,
            dequantise=dequantise,
            config=None if config is None else Config.from_file(config),
            minutes=minutes,
            out=out_folder,
            resume=resume,
            progress=Silent() if as_json else Bar(err),
        )
    except KeyboardInterrupt:
        fail(_interrupted(data, out_folder), 130)
    if fitted.shape is not None:
        _show_pictures(fitted, out_folder, as_json)
        return
    samples = load_samples(data, seed=fitted.config.seed)
    write_figures(fitted, samples, out_folder)
    summary = summarise(fitted, samples)
    if as_json:
        print_json({"run": str(out_folder), **summary.values})
        return
    out.print(
        pairs_table(f"{samples.name}: {len(samples.x):,} rows, {fitted.dim} columns", summary.rows)
    )
    out.print(f"Run and figures in [bold]{escaped(str(out_folder))}[/].")


def _interrupted(data: str, folder: Path) -> str:
    if not (folder / "config.json").is_file():
        return "Interrupted before the first checkpoint: nothing was written."
    command = shlex.join(["fenchel", "fit", data, "--out", str(folder), "--resume"])
    return f"Interrupted. Continue from the newest checkpoint with: {command}"


def _show_pictures(fitted: Any, folder: Path, as_json: bool) -> None:
    from fenchel.report.pictures.summary import summarise, write_figures

    write_figures(fitted, folder)
    summary = summarise(fitted, folder)
    if as_json:
        print_json({"run": str(folder), **summary.values})
        return
    out.print(pairs_table(fitted.name, summary.rows))
    out.print(f"Run and figures in [bold]{escaped(str(folder))}[/].")
