"""Training beside the peers on two moons: who diverges, how good is it, how long does it take?

    python -m benchmarks.peers ours    [--steps 3000 30000] [--seeds 1 2 3]
    python -m benchmarks.peers theirs  [--steps ...] [--seeds ...] [--processes 2] [--minutes M]
    python -m benchmarks.peers speed
    python -m benchmarks.peers table

The same net (three hidden layers of 128, SiLU), the same data, batches of 256. Fenchel's methods
have its defaults (a base measure, chains that tune themselves, f that waits for them); the peers
have the settings that their own README and examples recommend (`torchebm_peer`, `ebmkit_peer`).

Every model is judged alike, by its unnormalised log density on a fine grid: *z* is the MMD z-score
of 2,000 exact draws from it against fresh data (under 2: indistinguishable), and *log likelihood*
that of fresh data after normalisation, beside the true density's. *Diverged*: something not
finite, or a loss beyond a million; *collapsed*: finite, and 2 nats or more below the truth.

Each part writes its own file of results, and `table` puts them together with what was there before:
a run made again replaces the old one, and every sitting keeps its own provenance. `theirs` makes
only the runs that are missing. After M minutes it stops, with what it had begun saved in `--state`,
and the next call goes on from there. A run's milliseconds are those of its training steps, in one
thread, beside the other `processes`; `speed` times a step of everyone in one process, in turns, on
one CPU.
"""

import argparse
import json
import multiprocessing
import os
import time
from concurrent.futures import ProcessPoolExecutor, as_completed
from importlib.util import find_spec
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from benchmarks.peer import Paused, Saving, saved
from benchmarks.record import RESULTS, provenance, versions, write

ROWS = 20_000
DRAWS = 2_000
FRESH = 10_000
EVALUATION_SEED = 1_000_003
SIDE, REACH = 500, 5.0  # the grid, in standard units
COLLAPSED = 2.0  # nats
STATE = RESULTS.parents[1] / "runs" / "peers"
OURS = {
    "cd-10": "cd",
    "pcd": "pcd",
    "sm-exact": "score-matching",
    "sm-sliced": "sliced-score-matching",
    "sm-denoising": "denoising-score-matching",
    "nce": "nce",
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("part", choices=["ours", "theirs", "speed", "table"])
    parser.add_argument("--steps", type=int, nargs="+", default=[3_000, 30_000])
    parser.add_argument("--seeds", type=int, nargs="+", default=[1, 2, 3])
    parser.add_argument("--methods", nargs="+", default=list(OURS))
    parser.add_argument("--processes", type=int, default=2, help="runs side by side, a core each")
    parser.add_argument("--minutes", type=float, default=float("inf"), help="stop, and save, then")
    parser.add_argument("--first", choices=["shortest", "longest"], default="shortest")
    parser.add_argument("--state", type=Path, default=STATE, help="where unfinished runs are kept")
    parser.add_argument("--out", type=Path, default=RESULTS)
    arguments = parser.parse_args()
    {"ours": ours, "theirs": theirs, "speed": speed, "table": table}[arguments.part](arguments)


def moons(seed: int):
    """(standardised data, their scaling)."""
    from fenchel.data import TOYS, Standardiser

    x = TOYS["moons"].sample(ROWS, seed)
    scaling = Standardiser.of(x)
    return np.asarray(scaling.forward(x), np.float32), scaling


def judged(log_density, seed: int) -> dict[str, Any]:
    """A model by its unnormalised log density at (n, 2) standardised points."""
    from fenchel.data import TOYS
    from fenchel.evaluate import mmd_z

    _, scaling = moons(seed)
    toy = TOYS["moons"]
    side = np.linspace(-REACH, REACH, SIDE)
    grid = np.stack(np.meshgrid(side, side), -1).reshape(-1, 2).astype(np.float32)
    values = np.asarray(log_density(grid), np.float64)
    if not np.isfinite(values).all():
        return {"z": None, "log_likelihood": None, "true_log_likelihood": None}
    cell = side[1] - side[0]
    top = values.max()
    chances = np.exp(values - top)
    log_z = top + np.log(chances.sum() * cell**2)
    rng = np.random.default_rng(seed + EVALUATION_SEED)
    cells = rng.choice(len(grid), DRAWS, p=chances / chances.sum())
    drawn = grid[cells] + cell * (rng.uniform(size=(DRAWS, 2)) - 0.5)
    z = mmd_z(scaling.inverse(drawn), toy.sample, seed=seed + EVALUATION_SEED).z
    fresh = toy.sample(FRESH, seed + EVALUATION_SEED)
    inside = np.asarray(log_density(scaling.forward(fresh).astype(np.float32)), np.float64)
    return {
        "z": float(z),
        "log_likelihood": float(inside.mean() - log_z - scaling.log_scale),
        "true_log_likelihood": float(toy.log_density(fresh).mean()),
    }


# Fenchel: all seeds of a method at once.


def ours(arguments: argparse.Namespace) -> None:
    result: dict[str, Any] = {"provenance": provenance(), "runs": []}
    for steps in arguments.steps:
        for name in arguments.methods:
            result["runs"] += _ours(name, steps, arguments.seeds)
            print(*result["runs"][-len(arguments.seeds) :], sep="\n", flush=True)
            write("peers-ours", result, as_markdown(result["runs"]), arguments.out)


def _ours(name: str, steps: int, seeds: list[int]) -> list[dict[str, Any]]:
    import jax
    import jax.numpy as jnp
    import paramax

    from fenchel.build import build, noise_floor
    from fenchel.config import Config
    from fenchel.stacking import stack, unstack
    from fenchel.train import Batches, run_many

    config = Config().with_values(method=OURS[name], training__steps=steps)
    states, batches, learner = [], [], None
    for seed in seeds:
        parts = build(config.with_values(seed=seed), 2)
        learner = learner or parts.learner
        data = jnp.asarray(moons(seed)[0])
        states.append(learner.init(parts.potential, parts.sampler, data, jax.random.key(seed)))
        floor = noise_floor(config, parts.potential, learner)
        batches.append(Batches(data, config.training.batch, floor))
    began, first, dropped, worst = time.perf_counter(), None, np.zeros(len(seeds)), 0
    for block in run_many(learner, stack(states), stack(batches), steps, block=500):
        first = first or (time.perf_counter(), block.iteration)
        dropped += block.info.dropped_potential.sum(axis=1)
        worst = np.maximum(worst, block.info.potential_streak.max(axis=1))
    rest = (time.perf_counter() - first[0]) / max(1, steps - first[1])
    rows = []
    for index, seed in enumerate(seeds):
        f = paramax.unwrap(unstack(block.state, index).averaged()[0])
        values = jax.jit(lambda x, f=f: jax.lax.map(f, x, batch_size=4_096))
        rows.append(
            {
                "library": "Fenchel",
                "method": name,
                "steps": steps,
                "seed": seed,
                "diverged": bool(worst[index] >= learner.patience),
                "dropped": int(dropped[index]),
                "milliseconds": 1e3 * rest / len(seeds),
                **judged(lambda x, values=values: np.asarray(values(jnp.asarray(x))), seed),
            }
        )
    print(f"{name}, {steps}: {time.perf_counter() - began:.0f} s", flush=True)
    return rows


# The peers: one process a run, since their loops are Python's.


class Job(NamedTuple):
    """One training run, which its results name by the same words."""

    library: str
    method: str
    steps: int
    seed: int

    @classmethod
    def of(cls, run: dict[str, Any]) -> "Job":
        return cls(*(run[field] for field in cls._fields))

    def file(self, folder: Path) -> Path:
        """Where it is saved while it is unfinished."""
        return folder / ("-".join(map(str, self)).replace(", ", "-").replace(" ", "-") + ".pt")


def theirs(arguments: argparse.Namespace) -> None:
    until = time.time() + 60 * arguments.minutes
    before = so_far("theirs", arguments.out)
    jobs = missing(before, arguments)
    new: dict[str, Any] = {"provenance": provenance(), "runs": [], "unfinished": jobs}
    arguments.state.mkdir(parents=True, exist_ok=True)
    _write_theirs(folded(new, before), arguments.out)
    os.environ["OMP_NUM_THREADS"] = "1"  # of the processes that are about to start
    # JAX, which tells what machine this is, does not bear forks.
    spawn = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(arguments.processes, mp_context=spawn) as pool:
        savings = {job: Saving(job.file(arguments.state), until) for job in jobs}
        begun = [pool.submit(_theirs, job, savings[job], arguments.processes) for job in jobs]
        for done in as_completed(begun):
            if run := done.result():
                new["runs"].append(run)
                print(run, flush=True)
                _write_theirs(folded(new, before), arguments.out)
                savings[Job.of(run)].file.unlink(missing_ok=True)
    made = len(new["runs"])
    print(f"{made} runs finished in this call, {len(jobs) - made} remain", flush=True)


def missing(before: dict[str, Any], arguments: argparse.Namespace) -> list[Job]:
    """The runs that are asked for and not done, in the order in which they begin."""
    done = runs_of(before)
    asked = [
        Job(library, method, steps, seed)
        for steps in arguments.steps
        for library, methods in libraries().items()
        for method in methods
        if method in arguments.methods
        for seed in arguments.seeds
    ]
    left = [job for job in asked if job not in set(map(Job.of, done))]
    seconds = {job: seconds_left(job, job.file(arguments.state), done) for job in left}
    return sorted(left, key=seconds.__getitem__, reverse=arguments.first == "longest")


def seconds_left(job: Job, file: Path, done: list[dict[str, Any]]) -> float:
    """By its own steps, if it has begun, or by those of finished runs of its kind."""
    if file.is_file():
        begun = saved(file)
        return begun["seconds"] / begun["steps"] * (job.steps - begun["steps"])
    alike = [run["milliseconds"] for run in done if Job.of(run)[:2] == job[:2]]
    return 1e-3 * job.steps * float(np.median(alike)) if alike else float("inf")


def _write_theirs(result: dict[str, Any], folder: Path) -> None:
    write("peers-theirs", result, as_markdown(runs_of(result)), folder)


def libraries() -> dict[str, tuple[str, ...]]:
    """Each peer that is installed, a recipe a line, with its methods."""
    found: dict[str, tuple[str, ...]] = {}
    if find_spec("torchebm"):
        found["TorchEBM"] = ("cd-10", "pcd", "sm-exact", "sm-sliced", "sm-denoising")
    if find_spec("ebm"):
        found["ebmkit"] = ("cd-10", "pcd", "sm-exact", "sm-sliced", "sm-denoising", "nce")
        found["ebmkit, its example"] = ("cd-10", "pcd")
    return found


def _train(job: Job, data: np.ndarray, saving: Saving | None = None):
    import torch

    torch.set_num_threads(1)
    if job.library == "TorchEBM":
        from benchmarks import torchebm_peer

        return torchebm_peer.train(job.method, data, job.steps, job.seed, saving)
    from benchmarks import ebmkit_peer

    recipe = "example" if job.library.endswith("example") else "readme"
    return ebmkit_peer.train(job.method, data, job.steps, job.seed, recipe, saving)


def _theirs(job: Job, saving: Saving, processes: int) -> dict[str, Any] | None:
    """None: there was no time to begin, or to finish."""
    if time.time() >= saving.until:
        return None
    try:
        trained = _train(job, moons(job.seed)[0], saving)
    except Paused:
        return None
    row = {
        **job._asdict(),
        "diverged": trained.diverged,
        "failed_at": trained.failed_at,
        "milliseconds": 1e3 * trained.seconds / (trained.failed_at or job.steps),
        "processes": processes,
    }
    if trained.diverged:
        return {**row, "z": None, "log_likelihood": None, "true_log_likelihood": None}
    return {**row, **judged(trained.log_density, job.seed)}


# A step of everyone, in turns.


def speed(arguments: argparse.Namespace) -> None:
    import jax
    import jax.numpy as jnp

    from fenchel.build import build, noise_floor
    from fenchel.config import Config
    from fenchel.train import Batches
    from fenchel.train.compiling import compiled
    from fenchel.train.loop import run_block

    data, length, rounds = moons(1)[0], 100, 3
    result: dict[str, Any] = {"provenance": provenance(), "rows": []}
    for name in arguments.methods:
        config = Config().with_values(method=OURS[name])
        parts = build(config, 2)
        points = jnp.asarray(data)
        state = parts.learner.init(parts.potential, parts.sampler, points, jax.random.key(0))
        floor = noise_floor(config, parts.potential, parts.learner)
        batches = Batches(points, config.training.batch, floor)

        def run(learner=parts.learner, state=state, batches=batches) -> float:
            began = time.perf_counter()
            jax.block_until_ready(compiled(run_block)(learner, state, batches, length))
            return 1e3 * (time.perf_counter() - began) / length

        run()
        times: dict[str, list[float]] = {"Fenchel": []}
        for _ in range(rounds):
            times["Fenchel"].append(run())
            for library, methods in libraries().items():
                if name in methods:
                    each = _milliseconds(library, name, length // 2, data)
                    times.setdefault(library, []).append(each)
        row = {library: float(np.median(own)) for library, own in times.items()}
        result["rows"].append({"method": name, "milliseconds": row})
        print(result["rows"][-1], flush=True)
    write("peers-speed", result, _speed_table(result["rows"]), arguments.out)


def _milliseconds(library: str, method: str, steps: int, data: np.ndarray) -> float:
    """Of a peer's step, by what as many steps again cost more.

    What is done once, as filling a buffer with chains at the first step, is no step's.
    """
    once, twice = (_train(Job(library, method, count, 1), data) for count in (steps, 2 * steps))
    return 1e3 * (twice.seconds - once.seconds) / steps


def _speed_table(rows: list[dict[str, Any]]) -> str:
    names = list(dict.fromkeys(name for row in rows for name in row["milliseconds"]))
    lines = ["| method | " + " | ".join(names) + " |", "|---|" + "---|" * len(names)]
    for row in rows:
        times = row["milliseconds"]
        cells = [f"{times[name]:.1f}" if name in times else "-" for name in names]
        lines.append(f"| {row['method']} | {' | '.join(cells)} |")
    return "\n".join([*lines, ""])


# What is written.


def table(arguments: argparse.Namespace) -> None:
    """Everything in one page; the parts' own pages are then no longer needed."""
    parts = {name: so_far(name, arguments.out) for name in ("ours", "theirs")}
    runs = [run for part in parts.values() for run in runs_of(part)]
    speeds = _own(arguments.out, "speed") or _together(arguments.out, "speed")
    lines = ["# Training beside the peers, on two moons", "", *_explained(parts, speeds), ""]
    lines += [as_markdown(runs), "## Milliseconds a step on one CPU, in one process", ""]
    lines += [_speed_table(speeds.get("rows", []))]
    write("peers", {**parts, "speed": speeds}, "\n".join(lines), arguments.out)
    for name in ("ours", "theirs", "speed"):
        for suffix in ("json", "md"):
            (arguments.out / f"peers-{name}.{suffix}").unlink(missing_ok=True)


def so_far(name: str, folder: Path) -> dict[str, Any]:
    """A part's results: of its own file, and of the one that `table` last put together."""
    return folded(_own(folder, name), _together(folder, name))


def folded(*parts: dict[str, Any]) -> dict[str, Any]:
    """Results in one, the newest first: {"sittings": [{"provenance", "runs"}], "unfinished"}."""
    joined: list[dict[str, Any]] = []
    done: set[Job] = set()
    for sitting in (sitting for part in parts for sitting in sittings(part)):
        runs = [run for run in sitting["runs"] if Job.of(run) not in done]
        done |= set(map(Job.of, runs))
        about = sitting["provenance"]
        if same := next((own for own in joined if own["provenance"] == about), None):
            same["runs"] += runs
        elif runs:
            joined.append({"provenance": about, "runs": runs})
    left = dict.fromkeys(Job(*job) for part in parts for job in part.get("unfinished", []))
    return {"sittings": joined, "unfinished": [job for job in left if job not in done]}


def sittings(part: dict[str, Any]) -> list[dict[str, Any]]:
    """Of folded results, of a part's own file, which is one sitting, or of none."""
    return part.get("sittings", [part] if part else [])


def runs_of(part: dict[str, Any]) -> list[dict[str, Any]]:
    return [run for sitting in sittings(part) for run in sitting["runs"]]


def _own(folder: Path, name: str) -> dict[str, Any]:
    return _read(folder / f"peers-{name}.json")


def _together(folder: Path, name: str) -> dict[str, Any]:
    return _read(folder / "peers.json").get(name, {})


def _read(path: Path) -> dict[str, Any]:
    return json.loads(path.read_text()) if path.is_file() else {}


def _explained(parts: dict[str, Any], speeds: dict[str, Any]) -> list[str]:
    lines = [
        "The same net, data and batch for all; every model is judged by its log density on a grid: "
        "z is the MMD z-score of 2,000 exact draws against fresh data (below 2 they cannot be told "
        "apart), and the gap is how many nats fresh data are below the true density, both medians "
        "over the seeds. A run that diverged met something not finite or a loss beyond a million, "
        f"one that collapsed is {COLLAPSED:g} nats or more below the truth. The peers have the "
        "settings of their README (ebmkit's example has its own); the third hidden layer is ours.",
    ]
    for name, part in {**parts, "speed": speeds}.items():
        for sitting in sittings(part):
            about = sitting["provenance"]
            where = f"{about['device']}, {about['cpu']}, {versions(about)}"
            lines += [
                "",
                f"`python -m benchmarks.peers {name}`: commit {about['commit']}, {where}.",
            ]
    if left := parts["theirs"]["unfinished"]:
        names = ", ".join(sorted({f"{job.library} {job.method} at {job.steps:,}" for job in left}))
        lines += ["", f"Not finished in the time that there was: {names}."]
    return lines


def as_markdown(runs: list[dict[str, Any]]) -> str:
    lines = []
    for steps in sorted({run["steps"] for run in runs}):
        lines += [f"## {steps:,} steps", ""]
        lines += ["| method | library | seeds | diverged | collapsed | z | gap, nats |"]
        lines += ["|---|---|---|---|---|---|---|"]
        keys = {(run["method"], run["library"]) for run in runs}
        for method, library in sorted(keys, key=lambda key: (list(OURS).index(key[0]), key[1])):
            own = [
                run
                for run in runs
                if (run["method"], run["library"], run["steps"]) == (method, library, steps)
            ]
            if own:
                lines.append(_line(method, library, own))
        lines.append("")
    return "\n".join(lines)


def _line(method: str, library: str, runs: list[dict[str, Any]]) -> str:
    fine = [run for run in runs if run["log_likelihood"] is not None]
    gaps = [run["true_log_likelihood"] - run["log_likelihood"] for run in fine]
    diverged = sum(run["diverged"] for run in runs)
    at = sorted(run["failed_at"] for run in runs if run.get("failed_at"))
    when = f" (at {', '.join(map(str, at))})" if at else ""
    z = f"{np.median([run['z'] for run in fine]):.1f}" if fine else "-"
    gap = f"{np.median(gaps):.3f}" if fine else "-"
    collapsed = sum(gap >= COLLAPSED for gap in gaps)
    cells = [method, library, len(runs), f"{diverged}{when}", collapsed, z, gap]
    return "| " + " | ".join(map(str, cells)) + " |"


if __name__ == "__main__":
    main()
