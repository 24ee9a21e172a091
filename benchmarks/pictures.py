"""How good do pictures get, and how soon? A run in pieces of a few minutes, scored after each.

    python -m benchmarks.pictures piece RUN --data cifar10.npz --networks FOLDER
                                  [--preset cifar10 | --config FILE] [--dynamics none] [--steps N]
                                  [--minutes 8] [--samples 10000]
    python -m benchmarks.pictures reference RUN --data cifar10.npz --networks FOLDER
    python -m benchmarks.pictures table RUN... [--out benchmarks/results] [--name pictures-cifar10]

`piece` begins the run, or goes on with it, for so many minutes, and then writes a row into
RUN/pieces.json: iterations and seconds of training so far, FID of the samples and, where the
dynamics move anything, of the start alone against all training pictures, IS-slim and its ratio to
that of real pictures, how far the dynamics move a pixel, the run's health. FOLDER has
fid_2015_fp16.npz and slim_v3_uint8.npz. `table` puts the rows of several runs side by side, with
FID against minutes as a figure and a grid of each one's last samples. Runs that the table has
already, and that are not named, stay in it.

What samples are compared with is computed once for the data and the number of samples, and kept
beside the run in a reference-....npz; by `reference` before there is a run, so that several that
are trained side by side do not all compute it.
"""

import argparse
import json
import shutil
from itertools import cycle, product
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from matplotlib.figure import Figure

from benchmarks.record import RESULTS, in_words, provenance, write
from fenchel import fit as fit_model
from fenchel.bench import markdown
from fenchel.config import Config
from fenchel.data import load_pictures
from fenchel.errors import InputError
from fenchel.evaluate import (
    FeatureMoments,
    Inception,
    SlimInception,
    class_probabilities,
    contest_health,
    dropped_steps,
    feature_batches,
    feature_moments,
    frechet_distance,
    inception_score,
    load_inception,
    load_slim,
)
from fenchel.report import style
from fenchel.report.bench_figures import LINES
from fenchel.report.findings import sentence
from fenchel.report.pictures.grid import grid, save_picture
from fenchel.report.pictures.movement import movement, start_alone
from fenchel.result import Fit
from fenchel.runs import RunFolder

SHOWN = 100
INTRODUCTION = """\
FID of that many samples against all training pictures, by the 2015 network; that of the start alone
is of the same model without its dynamics, `real` that of all held-out pictures (of CIFAR-10's
3.15), with a dash where it was not measured. IS-slim is by another network than published scores,
and is given as a ratio to that of real pictures (the paper's ratio on CIFAR-10 is 0.672). `moved`
is how far the dynamics move a pixel, in grey levels. Hollow dots in the figure are those of the
start alone."""
SCORES = ("run", "iterations", "minutes", "FID", "FID, start alone", "FID, real")
SCORES += ("IS-slim ratio", "step size", "moved", "health")
SETTINGS = ("run", "f", "dynamics", "penalty", "learning rates of f and start", "batch")
MOVED = 256  # draws by which the dynamics' way is measured
SEED = 5_000_011  # of the samples that are scored, far from the run's


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    commands = parser.add_subparsers(dest="command", required=True)
    one, before = commands.add_parser("piece"), commands.add_parser("reference")
    for parser_of in (one, before):
        parser_of.add_argument("run", type=Path)
        parser_of.add_argument("--data", required=True)
        parser_of.add_argument("--networks", type=Path, required=True)
        parser_of.add_argument("--samples", type=int, default=10_000)
    one.add_argument("--preset", help="of a new run; cifar10 unless given")
    one.add_argument("--config", type=Config.from_file, help="of a new run, instead of a preset")
    one.add_argument("--dynamics", help="instead of the preset's, such as none")
    one.add_argument("--steps", type=int, help="instead of the preset's")
    one.add_argument("--minutes", type=float, default=8.0)
    all_of_them = commands.add_parser("table")
    all_of_them.add_argument("runs", type=Path, nargs="+")
    all_of_them.add_argument("--out", type=Path, default=RESULTS)
    all_of_them.add_argument("--name", default="pictures-cifar10")
    arguments = parser.parse_args()
    {"piece": piece, "reference": reference, "table": table}[arguments.command](arguments)


def piece(arguments: argparse.Namespace) -> None:
    """Train for a while, then score."""
    fitted = trained(arguments)
    rows = RunFolder(arguments.run).read_metrics()
    moved = movement(fitted, MOVED, SEED)
    moves = moved is not None and moved.levels > 0
    row = {
        "iteration": rows[-1]["iteration"],
        "seconds": sum(
            _length(rows, i) / rows[i]["iterations_per_second"] for i in range(len(rows))
        ),
        "health": contest_health(rows, fitted.config.training.steps)._asdict(),
        "dropped_steps": dropped_steps(rows),
        "potential_data": rows[-1]["potential_data"],
        "potential_draws": rows[-1]["potential_draws"],
        "step_size": rows[-1].get("step_size"),
        "moved_levels": None if moved is None else moved.levels,
        **scores(fitted, start_alone(fitted) if moves else None, arguments),
        "provenance": provenance(),
    }
    path = arguments.run / "pieces.json"
    earlier = json.loads(path.read_text()) if path.exists() else []
    path.write_text(json.dumps([*earlier, row], indent=1) + "\n")
    print(json.dumps(row, indent=1), flush=True)


def reference(arguments: argparse.Namespace) -> None:
    """What pieces of this run, and of those beside it, will be compared with."""
    arguments.run.parent.mkdir(parents=True, exist_ok=True)
    _, score, floor = reference_of(*networks(arguments), arguments)
    print(f"IS-slim of real pictures {score:.3f}, FID of held-out ones {markdown.number(floor, 3)}")


def networks(arguments: argparse.Namespace) -> tuple[Inception, SlimInception]:
    """For FID and for IS-slim."""
    folder = arguments.networks
    return load_inception(folder / "fid_2015_fp16.npz"), load_slim(folder / "slim_v3_uint8.npz")


def trained(arguments: argparse.Namespace) -> Fit:
    begun = (arguments.run / "config.json").exists()
    asked = {name: getattr(arguments, name) for name in ("preset", "config", "dynamics", "steps")}
    if begun and any(asked.values()):
        raise SystemExit(f"{arguments.run} is begun, and its settings with it: give none.")
    settings: dict[str, Any] = {} if begun else asked
    if not begun and arguments.config is None:
        settings["preset"] = arguments.preset or "cifar10"
    return fit_model(
        arguments.data, out=arguments.run, resume=begun, minutes=arguments.minutes, **settings
    )


class Reference(NamedTuple):
    """What samples are compared with."""

    moments: FeatureMoments  # of all training pictures
    score: float  # IS-slim of as many of them as are drawn
    floor: float | None  # the FID of held-out pictures, where there are any


def reference_of(network, slim, arguments: argparse.Namespace) -> Reference:
    """Computed once for these data and so many samples, and kept beside the run."""
    pictures = load_pictures(arguments.data)
    known_as = f"{pictures.fingerprint()['sha256'][:12]}-{arguments.samples}"
    path = arguments.run.parent / f"reference-{known_as}.npz"
    if path.exists():
        with np.load(path, allow_pickle=False) as kept:
            moments = FeatureMoments(kept["mean"], kept["covariance"], int(kept["n"]))
            floor = float(kept["floor"]) if kept["floor"].size else None
            return Reference(moments, float(kept["score"]), floor)
    train = pictures.x
    moments = feature_moments(feature_batches(network, train))
    score, _ = inception_score(class_probabilities(slim, train[: arguments.samples]))
    floor = _floor(network, moments, arguments)
    kept = {**moments._asdict(), "score": score, "floor": [] if floor is None else floor}
    np.savez(path, **kept)
    return Reference(moments, score, floor)


def _floor(network, train: FeatureMoments, arguments: argparse.Namespace) -> float | None:
    try:
        held_out = load_pictures(arguments.data, "test").x
    except InputError:
        return None
    return frechet_distance(feature_moments(feature_batches(network, held_out)), train).value


def scores(fitted: Fit, start: Fit | None, arguments: argparse.Namespace) -> dict[str, Any]:
    """Of the model's samples, and of its start's where the dynamics make a difference."""
    network, slim = networks(arguments)
    against = reference_of(network, slim, arguments)
    drawn = fitted.pictures(arguments.samples, SEED)
    save_picture(grid(drawn[:SHOWN]), arguments.run / "scored.png")
    score, spread = inception_score(class_probabilities(slim, drawn))
    found = {
        "samples": len(drawn),
        "fid": _fid(network, drawn, against),
        "fid_real": against.floor,
        "is_slim": score,
        "is_slim_spread": spread,
        "is_slim_real": against.score,
        "is_slim_ratio": score / against.score,
    }
    if start is not None:
        found["fid_start"] = _fid(network, start.pictures(arguments.samples, SEED), against)
    return found


def _fid(network, pictures: np.ndarray, reference: Reference) -> float:
    moments = feature_moments(feature_batches(network, pictures))
    return frechet_distance(moments, reference.moments).value


def table(arguments: argparse.Namespace) -> None:
    """All rows of these runs, and of those that the table has already, in JSON and Markdown."""
    runs = _earlier(arguments.out / f"{arguments.name}.json") | {
        run.name: {
            "config": RunFolder(run).read_record()["config"],
            "pieces": json.loads((run / "pieces.json").read_text()),
        }
        for run in arguments.runs
    }
    words = as_markdown(runs, arguments.name)
    write(arguments.name, {"runs": runs}, words, arguments.out)
    curves(runs).savefig(arguments.out / f"{arguments.name}.png", dpi=160)
    for run in arguments.runs:
        shutil.copyfile(run / "scored.png", arguments.out / f"{arguments.name}-{run.name}.png")
    print(words)


def _earlier(path: Path) -> dict[str, Any]:
    return json.loads(path.read_text())["runs"] if path.exists() else {}


def curves(runs: dict[str, Any]) -> Figure:
    """FID after each piece: filled with the dynamics, hollow for the start alone."""
    with style.new_figure("FID against minutes of training", (5.0, 3.2)) as figure:
        axes = figure.subplots()
        looks = cycle(product("osD^", LINES))
        for (name, run), (mark, colour) in zip(runs.items(), looks, strict=False):
            pieces = run["pieces"]
            minutes = [row["seconds"] / 60 for row in pieces]
            axes.plot(minutes, [row["fid"] for row in pieces], f"{mark}-", color=colour, label=name)
            alone = [_of_start(row) or np.nan for row in pieces]
            axes.plot(minutes, alone, f"{mark}:", color=colour, markerfacecolor="white")
        axes.set(xlabel="minutes", ylabel="FID", xlim=(0, None), ylim=(0, None))
        axes.legend(fontsize="small")
    return figure


def as_markdown(runs: dict[str, Any], name: str) -> str:
    lines = [
        "# Pictures: FID against training",
        "",
        INTRODUCTION,
        "",
        f"![FID against minutes]({name}.png)",
        "",
        markdown.table(
            list(SCORES),
            [_line(run_name, row) for run_name, run in runs.items() for row in run["pieces"]],
        ),
        "",
        markdown.table(list(SETTINGS), [_settings(*named) for named in runs.items()]),
    ]
    feet = {in_words(row["provenance"]) for run in runs.values() for row in run["pieces"]}
    return "\n".join([*lines, "", *(f"- {sentence(foot)}" for foot in sorted(feet)), ""])


def _line(name: str, row: dict[str, Any]) -> list[str]:
    start, moved = _of_start(row), row["moved_levels"]
    return [
        name,
        f"{row['iteration']:,}",
        f"{row['seconds'] / 60:.1f}",
        f"{row['fid']:.2f} ({row['samples']:,})",
        "-" if start is None else f"{start:.2f}",
        "-" if row.get("fid_real") is None else f"{row['fid_real']:.2f}",
        f"{row['is_slim_ratio']:.3f}",
        "-" if row.get("step_size") is None else f"{row['step_size']:.3g}",
        "-" if not moved else f"{moved:.2f}",
        f"{row['health']['word']}, {row['dropped_steps']} dropped",
    ]


def _settings(name: str, run: dict[str, Any]) -> list[str]:
    """What tells a run from the others."""
    dynamics, training = run["config"]["dynamics"], run["config"]["training"]
    steps = f"{dynamics['steps']} steps, from {dynamics['step_size']:g}"
    return [
        name,
        run["config"]["potential"]["kind"],
        dynamics["kind"] if dynamics["kind"] == "none" else steps,
        f"{training['gradient_penalty']:g}",
        f"{training['potential_rate']:g}, {training['start_rate']:g}",
        f"{training['batch']}",
    ]


def _of_start(row: dict[str, Any]) -> float | None:
    """FID of the start alone, where there is more than that."""
    return row.get("fid_start") if row["moved_levels"] else None


def _length(rows: list[dict[str, Any]], index: int) -> int:
    """Iterations in a row's block."""
    before = rows[index - 1]["iteration"] if index else 0
    return rows[index]["iteration"] - before


if __name__ == "__main__":
    main()
