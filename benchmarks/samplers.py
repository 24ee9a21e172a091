"""Samplers against the peers' own: Langevin, and HMC with ten leapfrogs, on a double well.

    python -m benchmarks.samplers [--out benchmarks/results] [--name samplers-cpu] [--seconds 4]

The sizes are those of TorchEBM's benchmark; energy, start and step sizes are the same for all
(`benchmarks.peer`). Fenchel's are the library's own samplers, an `Embedding` of data points and a
recipe, with all that they carry along; fused, all steps of a chain are one kernel on a GPU
(`FusedLangevin`). In one process, in turns, after compilation; each time is the median of the
turns, and a turn is as many runs as fill ten milliseconds: a single short one would mostly measure
how a device comes back from another's work.
"""

import argparse
import os
import time
from collections.abc import Callable
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from typing import Any

os.environ.setdefault("XLA_PYTHON_CLIENT_PREALLOCATE", "false")  # PyTorch needs memory too

import jax
import jax.numpy as jnp
import numpy as np

from benchmarks.peer import SIZES, WORK, initial_batch
from benchmarks.record import RESULTS, provenance, versions, write
from benchmarks.turns import milliseconds
from fenchel.dynamics import CentredNormal, Options, hmc, langevin
from fenchel.samplers import AbstractSampler, Embedding, FusedLangevin
from fenchel.shapes import Array
from fenchel.starts import Empirical

TURNS = 25  # at most
SHORTEST = 0.01  # seconds of a turn


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--name", default="samplers-cpu")
    parser.add_argument("--out", type=Path, default=RESULTS)
    parser.add_argument("--seconds", type=float, default=4.0, help="for each size and sampler")
    arguments = parser.parse_args()
    device = "cpu" if jax.default_backend() == "cpu" else "cuda"
    result: dict[str, Any] = {
        "provenance": provenance(),
        "seconds": arguments.seconds,
        "rows": [],
    }
    for batch, dim, steps in SIZES:
        everyone = {"Fenchel": ours(batch, dim, steps), **peers(batch, dim, steps, device)}
        for kind in ("langevin", "hmc"):
            entries = {name: kinds[kind] for name, kinds in everyone.items() if kind in kinds}
            fused = {f"{name}, fused": k["langevin-fused"] for name, k in everyone.items()
                     if kind == "langevin" and "langevin-fused" in k}  # fmt: skip
            times = in_turns({**entries, **fused}, arguments.seconds)
            size = f"{batch} x {dim} x {steps}"
            result["rows"].append({"sampler": kind, "size": size, "milliseconds": times})
            print(result["rows"][-1], flush=True)
            write(arguments.name, result, as_markdown(result, arguments.name), arguments.out)


def double_well(x: Array) -> Array:
    """f = -E."""
    return -WORK.height * jnp.sum((x**2 - WORK.well**2) ** 2)


def ours(batch: int, dim: int, steps: int) -> dict[str, Callable[[], object]]:
    """A Langevin step of ε moves by ε²/2 ∇f + ε noise: the peers' step is ε²/2."""
    start, key = Empirical(CentredNormal(dim)), jax.random.key(0)
    common: dict[str, Any] = {"steps": steps, "per_step": False, "clip_norm": None}
    half = Options(step_size=(2 * WORK.langevin_step) ** 0.5, **common)
    trajectory = Options(
        step_size=WORK.hmc_step, leapfrogs=WORK.leapfrog_steps, metropolis=True, **common
    )
    recipes = {"langevin": langevin(dim, half, key), "hmc": hmc(dim, trajectory, key)}
    points = jnp.asarray(initial_batch(batch, dim))
    samplers = {name: Embedding(start, move) for name, move in recipes.items()}
    everything = {**samplers, "langevin-fused": FusedLangevin(steps, half.step_size)}
    return {name: _run(sampler, points) for name, sampler in everything.items()}


def _run(sampler: AbstractSampler, points: Array) -> Callable[[], object]:
    draw = jax.jit(lambda points, key: sampler.draw(double_well, points, None, key)[0].x)
    key = jax.random.key(1)
    assert bool(jnp.all(jnp.isfinite(draw(points, key))))
    return lambda: jax.block_until_ready(draw(points, key))


def peers(batch: int, dim: int, steps: int, device: str) -> dict[str, dict]:
    """Those that are installed."""
    found = {}
    if find_spec("torchebm"):
        from benchmarks import torchebm_peer

        found["TorchEBM"] = torchebm_peer.samplers(batch, dim, steps, device)
    if find_spec("ebm"):
        from benchmarks import ebmkit_peer

        found["ebmkit"] = ebmkit_peer.samplers(batch, dim, steps, device)
    return found


def in_turns(entries: dict[str, Callable[[], object]], seconds: float) -> dict[str, float]:
    """Median milliseconds of each, all taking turns until the time is up."""
    for run in entries.values():  # compiled, and then warm
        milliseconds(partial(_once, run), SHORTEST)
    times: dict[str, list[float]] = {name: [] for name in entries}
    ends = time.perf_counter() + seconds * len(entries)
    turn = 0
    while turn < 3 or (turn < TURNS and time.perf_counter() < ends):
        for name, run in entries.items():
            times[name].append(milliseconds(partial(_once, run), SHORTEST))
        turn += 1
    return {name: float(np.median(own)) for name, own in times.items()}


def _once(run: Callable[[], object]) -> int:
    run()
    return 1


def as_markdown(result: dict[str, Any], name: str) -> str:
    about = result["provenance"]
    names = list(dict.fromkeys(n for row in result["rows"] for n in row["milliseconds"]))
    lines = [
        "# Sampler speed beside the peers",
        "",
        "Milliseconds for the whole run, median of turns in one process; double well, batch x "
        "dimension x steps (HMC: trajectories of ten leapfrogs). The last column is the faster "
        "peer's time over Fenchel's. TorchEBM's fused kernel, for this one energy, is in its "
        "source as a proof of concept, neither exported nor documented: it is shown, and is not "
        "what its users run.",
        "",
        f"Commit {about['commit']}, {about['device']}, {about['cpu']}, {versions(about)}. Made by "
        f"`python -m benchmarks.samplers --name {name} --seconds {result['seconds']:g}`.",
        "",
        "| sampler | size | " + " | ".join(names) + " | ratio |",
        "|---|---|" + "---|" * (len(names) + 1),
    ]
    for row in result["rows"]:
        times = row["milliseconds"]
        others = [times[other] for other in ("TorchEBM", "ebmkit") if other in times]
        ratio = f"{min(others) / times['Fenchel']:.1f}" if others else "-"
        cells = [f"{times[n]:.2f}" if n in times else "-" for n in names]
        lines.append(f"| {row['sampler']} | {row['size']} | {' | '.join(cells)} | {ratio} |")
    return "\n".join([*lines, ""])


if __name__ == "__main__":
    main()
