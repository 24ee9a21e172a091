"""The gradient-flow embeddings beside the HMC embedding: all sixteen toys, at the defaults.

    python -m benchmarks.flows [--kinds hmc deterministic continuous generalized-continuous]
                               [--steps 3000] [--toys ...] [--out benchmarks/results]

All toys of one kind train at once under `vmap`. For each kind: runs that diverged, steps dropped by
the guard, how often flows were shortened, MMD z at n = 2,000 and held-out log likelihood, as in
`benchmarks.toys`, and milliseconds an iteration of all runs together. Kinds that the results
already hold are kept, so that they can be made one at a time.
"""

import argparse
import json
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.record import RESULTS, provenance, write
from benchmarks.toys import DRAWS, evaluate, train
from fenchel.config import Config
from fenchel.data import TOYS

KINDS = ("hmc", "deterministic", "continuous", "generalized-continuous")
SEED = 1


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
        result[kind] = _one_kind(config, arguments.toys, arguments.replicates)
        write("flows", result, as_markdown(result), arguments.out)


def _before(out: Path) -> dict[str, Any]:
    for folder in (out, RESULTS):
        path = folder / "flows.json"
        if path.exists():
            return json.loads(path.read_text(encoding="utf-8"))
    return {}


def _one_kind(config: Config, toys: list[str], replicates: int) -> dict[str, Any]:
    jobs = [(name, SEED) for name in toys]
    fits, health, seconds = train(config, jobs)
    runs = []
    for (name, seed), fit, how in zip(jobs, fits, health, strict=True):
        runs.append({"toy": name, **how, **evaluate(fit, name, seed, replicates)})
        print(config.dynamics.kind, runs[-1], flush=True)
    timed = config.training.steps - min(500, config.training.steps)  # the first block compiles
    return {
        "settings": config.to_dict(),
        "provenance": provenance(),
        "milliseconds": 1e3 * seconds / max(timed, 1),
        "runs": runs,
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
        about = entry["provenance"]
        versions = ", ".join(f"{name} {version}" for name, version in about["packages"].items())
        lines.append(f"- {kind}: commit {about['commit']}, {about['device']}, {versions}.")
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
