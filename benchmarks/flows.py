"""The gradient-flow embeddings beside the HMC embedding: all sixteen toys, at the defaults.

    python -m benchmarks.flows [--kinds hmc deterministic continuous generalized-continuous]
                               [--steps 3000] [--toys ...] [--out benchmarks/results]

All toys of one kind train at once under `vmap`. For each kind: runs that diverged, steps dropped by
the guard, how often flows were shortened, MMD z at n = 2,000 and held-out log likelihood, as in
`fenchel bench toys`, and milliseconds an iteration of all runs together. Kinds that the results
already hold are kept, so that they can be made one at a time.
"""

import argparse
import json
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.record import RESULTS, in_words, provenance, write
from fenchel.bench.folder import BenchFolder
from fenchel.bench.integral import Window
from fenchel.bench.jobs import DIM, Job, fit_of, prepare, together
from fenchel.bench.presets import Preset
from fenchel.bench.progress import Progressing
from fenchel.bench.scores import Ours, scores
from fenchel.bench.together import train
from fenchel.bench.truth import Truth, truths
from fenchel.config import Config
from fenchel.data import TOYS

KINDS = ("hmc", "deterministic", "continuous", "generalized-continuous")
SEED = 1
DRAWS = 2_000  # of the z-scores
STATE = RESULTS.parents[1] / "runs" / "flows"  # checkpoints, and truth against truth


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--kinds", nargs="+", default=KINDS)
    parser.add_argument("--steps", type=int, default=Config().training.steps)
    parser.add_argument("--toys", nargs="+", default=list(TOYS))
    parser.add_argument("--replicates", type=int, default=100)
    parser.add_argument("--out", type=Path, default=RESULTS)
    arguments = parser.parse_args()
    result = _before(arguments.out)
    for kind in arguments.kinds:
        config = Config().with_values(
            dynamics__kind=kind, training__steps=arguments.steps, seed=SEED
        )
        known = truths(arguments.toys, arguments.replicates, BenchFolder(STATE), lambda done: None)
        result[kind] = _one_kind(config, known)
        write("flows", result, as_markdown(result), arguments.out)


def _before(out: Path) -> dict[str, Any]:
    for folder in (out, RESULTS):
        path = folder / "flows.json"
        if path.exists():
            return json.loads(path.read_text(encoding="utf-8"))
    return {}


def _one_kind(config: Config, known: dict[str, Truth]) -> dict[str, Any]:
    kind, steps = config.dynamics.kind, config.training.steps
    prepared = [prepare(Preset(config, "ADE"), Job(name, SEED)) for name in known]
    runs = together(prepared)
    with Progressing() as progress:
        progress.begin(kind, steps)
        trained = train(runs, steps, BenchFolder(STATE / f"{kind}-{steps}"), progress)
    rows = []
    for index, each in enumerate(prepared):
        name = each.job.set
        window = Window.around(np.asarray(each.points))
        row = scores(Ours(fit_of(each, trained.state, index), window), each.job, known[name])
        z = {f"z_{how}": row[f"z_{DRAWS}_{how}"] for how in ("raw", "corrected")}
        rows.append({"toy": name, **trained.health(index, runs.learner.patience, DIM), **row, **z})
        print(kind, rows[-1], flush=True)
    return {
        "settings": config.to_dict(),
        "provenance": provenance(),
        "milliseconds": 1e3 * (trained.seconds or 0.0) / steps,
        "runs": rows,
    }


def as_markdown(result: dict[str, Any]) -> str:
    first = next(iter(result.values()))
    lines = [
        "# Gradient-flow embeddings beside HMC",
        "",
        f"{len(first['runs'])} toys, one seed, {first['settings']['training']['steps']:,} "
        f"iterations, everything else at its default. MMD z at n = {DRAWS:,} against fresh truth; "
        "a perfect sampler scores above 2 about once in 20. The gap is the true density's held-out "
        "log likelihood less the model's, in nats, on the toys where it is known. Milliseconds "
        "are of an iteration of all toys together.",
        "",
        "| dynamics | diverged | dropped steps | shortened | raw z < 2 | corrected z < 2 | "
        "median ESS | mean gap | ms an iteration |",
        "|---|---|---|---|---|---|---|---|---|",
        *[_kind_line(kind, entry) for kind, entry in result.items()],
        "",
        "Each toy: ESS, corrected z, gap to the true log likelihood (or that itself).",
        "",
        "| toy | " + " | ".join(result) + " |",
        "|---|" + "---|" * len(result),
        *_toy_lines(result),
        "",
    ]
    for kind, entry in result.items():
        lines.append(f"- {kind}: {in_words(entry['provenance'])}.")
    return "\n".join([*lines, "", "Made by `python -m benchmarks.flows`.", ""])


def _kind_line(kind: str, entry: dict[str, Any]) -> str:
    runs = entry["runs"]
    gaps = [gap for run in runs if (gap := _gap(run)) is not None]
    under = {which: sum(run[f"z_{which}"] < 2 for run in runs) for which in ("raw", "corrected")}
    return (
        f"| {kind} | {sum(run['diverged'] for run in runs)} | "
        f"{sum(run['dropped_steps'] for run in runs)} | {sum(run['shortened'] for run in runs)} | "
        f"{under['raw']} of {len(runs)} | {under['corrected']} of {len(runs)} | "
        f"{np.median([run['ess'] for run in runs]):.2f} | {np.mean(gaps):.4f} | "
        f"{entry['milliseconds']:.1f} |"
    )


def _toy_lines(result: dict[str, Any]) -> list[str]:
    names = [run["toy"] for run in next(iter(result.values()))["runs"]]
    table = {kind: {run["toy"]: run for run in entry["runs"]} for kind, entry in result.items()}
    return [
        f"| {name} | " + " | ".join(_cell(table[kind].get(name)) for kind in result) + " |"
        for name in names
    ]


def _cell(run: dict[str, Any] | None) -> str:
    if run is None:
        return "-"
    gap = _gap(run)
    last = f"{run['log_likelihood']:.3f}" if gap is None else f"gap {gap:.4f}"
    return f"{run['ess']:.2f}, {run['z_corrected']:.1f}, {last}"


def _gap(run: dict[str, Any]) -> float | None:
    if run["true_log_likelihood"] is None:
        return None
    return run["true_log_likelihood"] - run["log_likelihood"]


if __name__ == "__main__":
    main()
