"""One default setting on all sixteen toys, three seeds, 20,000 iterations: does anything diverge?

    python -m benchmarks.toys [--steps 20000] [--seeds 1 2 3] [--out benchmarks/results]

All runs train at once under `vmap`. For each: steps that the guard dropped, the final effective
sample size, MMD z of raw and of corrected samples at n = 2,000 against fresh truth, and held-out
log likelihood beside the true density's, where that is known. A run has *diverged* if any
parameter is not finite, if the guard gave up on it, or if its sampler ended more than 5 nats
behind its potential.
"""

import argparse
import time
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from benchmarks.record import RESULTS, provenance, write
from fenchel.arrays import to_table
from fenchel.build import build
from fenchel.config import Config
from fenchel.data import TOYS, Standardiser, default_columns
from fenchel.evaluate import mmd_z
from fenchel.result import Fit
from fenchel.stacking import stack, unstack
from fenchel.train import Batches, TrainState, run_many

ROWS = 50_000
DRAWS = 2_000
FRESH = 10_000
EVALUATION_SEED = 1_000_003


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--steps", type=int, default=20_000)
    parser.add_argument("--seeds", type=int, nargs="+", default=[1, 2, 3])
    parser.add_argument("--toys", nargs="+", default=list(TOYS))
    parser.add_argument("--replicates", type=int, default=100)
    parser.add_argument("--out", type=Path, default=RESULTS)
    arguments = parser.parse_args()
    config = Config().with_values(training__steps=arguments.steps)
    jobs = [(name, seed) for name in arguments.toys for seed in arguments.seeds]
    fits, health, seconds = train(config, jobs)
    result: dict[str, Any] = {
        "settings": config.to_dict(),
        "seconds_of_training": seconds,
        "provenance": provenance(),
        "runs": [],
    }
    for (name, seed), fit, how in zip(jobs, fits, health, strict=True):
        scores = evaluate(fit, name, seed, arguments.replicates)
        result["runs"].append({"toy": name, "seed": seed, **how, **scores})
        # Written after each, so that a run cut short leaves what it had.
        write("toys", result, as_markdown(result), arguments.out)
        print(result["runs"][-1], flush=True)


def train(config: Config, jobs: list[tuple[str, int]]) -> tuple[list[Fit], list[dict], float]:
    """Every job at once; the fits, how each went, and the seconds it took after compilation."""
    raw = [TOYS[name].sample(ROWS, seed) for name, seed in jobs]
    scalers = [Standardiser.of(x) for x in raw]
    data = [jnp.asarray(s.forward(x), jnp.float32) for s, x in zip(scalers, raw, strict=True)]
    states, maxmin = [], None
    for (_, seed), points in zip(jobs, data, strict=True):
        parts = build(config.with_values(seed=seed), 2)
        maxmin = maxmin or parts.learner
        key = jax.random.key(seed)
        states.append(maxmin.init(parts.potential, parts.sampler, points, key))
    training = config.training
    batches = stack([Batches(points, training.batch, config.noise_floor) for points in data])
    state, infos, seconds = _run(maxmin, stack(states), batches, training.steps)
    fits = [_fit(state, i, scalers[i], config, *job) for i, job in enumerate(jobs)]
    health = [_health(infos, state, i, maxmin.guard.patience) for i in range(len(jobs))]
    return fits, health, seconds


def _run(maxmin, states: TrainState, batches: Batches, steps: int):
    infos, began = [], None
    for block in run_many(maxmin, states, batches, steps, block=min(500, steps)):
        infos.append(block.info)
        began = began or time.perf_counter()
        lag = np.max(np.mean(block.info.lag, 1))
        print(f"iteration {block.iteration}: worst lag {lag:.2f} nats", flush=True)
    seconds = time.perf_counter() - began
    return block.state, infos, seconds


def _fit(state: TrainState, index: int, scaler, config: Config, name: str, seed: int) -> Fit:
    f, sampler = unstack(state, index).averaged()
    config = config.with_values(seed=seed)
    return Fit(f, sampler, None, jnp.zeros((1, 2)), scaler, config, default_columns(2), name)


def _health(infos: list, state: TrainState, index: int, patience: int) -> dict[str, Any]:
    finite = all(
        np.isfinite(array).all() for array in to_table(unstack(state, index).averages).values()
    )
    last = infos[-1]
    lag = float(np.mean(last.lag[index]))
    streaks = [
        streak[index] for info in infos for streak in (info.potential_streak, info.sampler_streak)
    ]
    gave_up = max(map(np.max, streaks)) >= patience
    return {
        "dropped_steps": int(
            sum(
                np.sum(info.dropped_potential[index]) + np.sum(info.dropped_sampler[index])
                for info in infos
            )
        ),
        "shortened": int(sum(np.sum(info.shortened[index]) for info in infos)),
        "lag": lag,
        "worst_lag": max(float(np.mean(info.lag[index])) for info in infos),
        "diverged": bool(not finite or gave_up or not lag < 5.0),
    }


def evaluate(fit: Fit, name: str, seed: int, replicates: int) -> dict[str, Any]:
    toy = TOYS[name]
    fresh = toy.sample(FRESH, EVALUATION_SEED + seed)
    partition = fit.log_partition()
    row: dict[str, Any] = {
        "ess": partition.ess,
        "bound_gap": partition.estimate - partition.lower,
        "log_likelihood": float(fit.log_density(fresh).mean()),
        "true_log_likelihood": None,
    }
    if toy.log_density is not None:
        row["true_log_likelihood"] = float(toy.log_density(fresh).mean())
    for kind, corrected in (("raw", False), ("corrected", True)):
        drawn = fit.sample(DRAWS, seed=EVALUATION_SEED + seed, corrected=corrected)
        result = mmd_z(drawn, toy.sample, replicates=replicates, seed=EVALUATION_SEED + seed)
        row[f"mmd_{kind}"], row[f"z_{kind}"] = result.value, result.z
    return row


def as_markdown(result: dict[str, Any]) -> str:
    rows, about = result["runs"], result["provenance"]
    diverged = sum(row["diverged"] for row in rows)
    under = sum(row["z_corrected"] < 2 for row in rows)
    lines = [
        "# One default setting on all toys",
        "",
        f"{len(rows)} runs of {result['settings']['training']['steps']:,} iterations at once: "
        f"**{diverged} diverged**; {under} of {len(rows)} have a corrected MMD z under 2 at "
        f"n = {DRAWS:,} (a perfect sampler scores above 2 about once in 20). "
        f"Training took {result['seconds_of_training']:.0f} s after compilation.",
        "",
        f"Commit {about['commit']}, {about['device']}, "
        + ", ".join(f"{name} {number}" for name, number in about["packages"].items())
        + ". Made by `python -m benchmarks.toys`. Log likelihoods are of fresh data, in nats; the "
        "model is trained on data with a noise floor of "
        f"{result['settings']['training']['noise']} standard deviations.",
        "",
        "| toy | seed | diverged | dropped steps | ESS | MMD z, raw | MMD z, corrected "
        "| log likelihood | true |",
        "|---|---|---|---|---|---|---|---|---|",
    ]
    for row in rows:
        true = row["true_log_likelihood"]
        lines.append(
            f"| {row['toy']} | {row['seed']} | {'YES' if row['diverged'] else 'no'} "
            f"| {row['dropped_steps']} | {row['ess']:.3f} | {row['z_raw']:.2f} "
            f"| {row['z_corrected']:.2f} | {row['log_likelihood']:.4f} "
            f"| {'-' if true is None else f'{true:.4f}'} |"
        )
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    main()
