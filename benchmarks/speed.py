"""How fast is an iteration, what does a step of the dynamics cost, and how much memory?

    python -m benchmarks.speed [--torch | --no-torch] [--compile | --no-compile] [--seconds 15]
                               [--out benchmarks/results] [--name speed-cpu]

1. Milliseconds an iteration, beside the same iteration in plain PyTorch (`torch_twin`): in one
   process, in many short turns after compilation, so that a machine that slows down slows down
   everyone: medians of the times, and of each turn's ratio. Before anything is timed,
   `check_same_work` holds the twin to Fenchel's own log weights and gradients.
2. Milliseconds an iteration against the number T of HMC steps, with the least-squares line.
3. Memory of the sampler's gradient against T, with and without rematerialisation.

Run it on a quiet machine: PyTorch's threads wait for one another, and on two busy cores that alone
made it 20 times slower. So on a CPU the twin is also timed with one thread, and the ratio that is
reported is to the fastest of the twins.
"""

import os

os.environ.setdefault("XLA_PYTHON_CLIENT_PREALLOCATE", "false")  # PyTorch needs memory too

import argparse
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import paramax

from benchmarks.record import RESULTS, provenance, versions, write
from benchmarks.turns import milliseconds
from fenchel.build import Parts, build, noise_floor
from fenchel.config import Config
from fenchel.data import TOYS, Standardiser
from fenchel.estimators import FenchelBound, WeightedBound
from fenchel.parameters import split
from fenchel.samplers import Embedding, Truncated
from fenchel.shapes import Array, Key, Points, Potential, PyTree
from fenchel.train import Batches
from fenchel.train.compiling import compiled
from fenchel.train.loop import run_block

if TYPE_CHECKING:  # PyTorch need not be there
    from benchmarks.torch_twin import Sizes, Twin

CONFIG = Config().with_values(
    start__kind="planar",
    start__layers=10,
    dynamics__kind="hmc",
    dynamics__steps=5,
    training__batch=100,
    training__sampler_steps=5,
    training__anchor=0.0,
    training__scouts=0.0,
    training__gradient="truncated",
)
ROUNDS = 15
STEP_ROUNDS = 3  # a block of the longest trajectories takes seconds
BLOCK = 100 if jax.default_backend() == "gpu" else 25  # half a second at most
TIMED_STEPS = (2, 4, 8, 16, 32, 64)
MEMORY_STEPS = (4, 8, 16, 32, 64)
MEMORY_BATCH = 256
STEEPER = 30.0  # enough for scores to be clipped
TOLERANCE = 1e-4  # of log weights and gradients, as a fraction of the largest

# Who takes part: the mode of torch.compile (None: eager) and the threads (None: PyTorch's own).
TWINS_CPU = {
    "PyTorch, eager": (None, None),
    "PyTorch, eager, one thread": (None, 1),
    "PyTorch, compiled, one thread": ("default", 1),
}
TWINS_GPU = {
    "PyTorch, eager": (None, None),
    "PyTorch, compiled": ("default", None),
    "PyTorch, compiled, CUDA graphs": ("reduce-overhead", None),
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--torch", action=argparse.BooleanOptionalAction, default=True)
    parser.add_argument("--compile", action=argparse.BooleanOptionalAction, default=True)
    parser.add_argument("--seconds", type=float, default=15.0, help="of each participant, in all")
    parser.add_argument("--out", type=Path, default=RESULTS)
    parser.add_argument("--name", default=f"speed-{jax.default_backend()}")
    arguments = parser.parse_args()
    began, load = time.perf_counter(), os.getloadavg()[0]
    result: dict[str, Any] = {
        "settings": CONFIG.to_dict(),
        "provenance": provenance(),
        "load_before": load,
        "cores": os.cpu_count(),
        "race": race(arguments.seconds, arguments.torch, arguments.compile),
        "steps": cost_of_steps(arguments.seconds),
        "memory": memory_of_steps(),
    }
    result["seconds"] = time.perf_counter() - began
    write(arguments.name, result, as_markdown(result), arguments.out)
    print(as_markdown(result))


def say(text: str) -> None:
    print(text, flush=True)


# 1. The race.


class Fenchel:
    """Called, it trains for a block and waits until that is done."""

    def __init__(self, config: Config, block: int = BLOCK):
        self.parts, self.block = _parts(config), block
        self.state = self.parts.learner.init(
            self.parts.potential, self.parts.sampler, data(), jax.random.key(config.seed)
        )
        self.batches = Batches(data(), config.training.batch, _floor(config))

    def __call__(self) -> int:
        done = compiled(run_block)(self.parts.learner, self.state, self.batches, self.block)
        self.state, info = jax.block_until_ready(done)
        dropped = int(np.sum(info.dropped_potential) + np.sum(info.dropped_sampler))
        if dropped:
            raise RuntimeError(f"{dropped} steps were not finite: this timing would mean nothing.")
        return self.block


class Torch:
    """Likewise, for a twin with so many threads (None: as many as it has by default)."""

    def __init__(self, mode: str | None, threads: int | None, block: int = 5):
        import torch

        from benchmarks.torch_twin import Twin

        self.threads, self.block = threads or torch.get_num_threads(), block
        device = "cuda" if torch.cuda.is_available() else "cpu"
        if (device == "cuda") != (jax.default_backend() == "gpu"):
            raise RuntimeError("JAX and PyTorch do not see the same device: run with --no-torch.")
        self.twin = Twin(np.array(data()), sizes(CONFIG), device, mode)

    def __call__(self) -> int:
        with _threads(self.threads):
            loss = self.twin.iterations(self.block)
        if not np.isfinite(loss):
            raise RuntimeError("The twin's loss is not finite: its timing would mean nothing.")
        return self.block


def race(seconds: float, with_torch: bool, with_compile: bool) -> dict[str, Any]:
    """Milliseconds an iteration of everyone who takes part, and why the others cannot."""
    fenchel = Fenchel(CONFIG)
    entries = {"Fenchel": {"runner": fenchel, "compile_seconds": _first_call("Fenchel", fenchel)}}
    twins = TWINS_GPU if jax.default_backend() == "gpu" else TWINS_CPU
    for name, (mode, threads) in twins.items() if with_torch else ():
        if mode is None or with_compile:
            entries[name] = _enter(name, mode, threads)
    runners = {name: entry.pop("runner") for name, entry in entries.items() if "runner" in entry}
    for _ in range(ROUNDS):
        for name, runner in runners.items():
            entries[name].setdefault("rounds", []).append(milliseconds(runner, seconds / ROUNDS))
    for name in runners:
        entries[name]["milliseconds"] = float(np.median(entries[name]["rounds"]))
        say(f"{name}: {entries[name]['milliseconds']:.2f} ms an iteration")
        ratios = np.divide(entries[name]["rounds"], entries["Fenchel"]["rounds"])
        entries[name]["times_fenchel"] = float(np.median(ratios))
    return entries


def _enter(name: str, mode: str | None, threads: int | None) -> dict[str, Any]:
    """A twin that has passed its check; where it cannot be compiled, in parts, or the reason."""
    say(f"{name}: checking that it does the same work")
    _references()  # so that it is the twin's own compilation that is timed
    began = time.perf_counter()
    try:
        runner = Torch(mode, threads)
        with _threads(runner.threads):
            differences = check_same_work(runner.twin)
        _first_call(name, runner)
    except Exception as error:
        if mode is None or isinstance(error, DifferentWorkError):
            raise
        reason = f"{type(error).__name__}: {str(error).strip().splitlines()[0]}"
        say(f"{name}: cannot compile {'a part' if mode == 'parts' else 'the whole'} ({reason})")
        if mode == "parts":
            return {"not_available": reason}
        return {"whole_not_available": reason} | _enter(name, "parts", threads)
    seconds = time.perf_counter() - began if mode else 0.0
    return {"runner": runner, "mode": mode, "check": differences, "compile_seconds": seconds}


def _first_call(name: str, runner: Callable[[], int]) -> float:
    """What the first call takes beyond the second: compilation, mostly."""
    times = []
    for _ in range(2):
        began = time.perf_counter()
        runner()
        times.append(time.perf_counter() - began)
    say(f"{name}: ready after {times[0]:.1f} s")
    return max(0.0, times[0] - times[1])


@contextmanager
def _threads(count: int) -> Iterator[None]:
    import torch

    before = torch.get_num_threads()
    torch.set_num_threads(count)
    yield
    torch.set_num_threads(before)


# 2. The same work.


class DifferentWorkError(Exception):
    """The twin does not compute what Fenchel does."""


def check_same_work(twin: "Twin | None" = None) -> dict[str, float]:
    """Hold the twin to Fenchel: from the same parameters and the same noise, the same log weights,
    and the same gradients of the sampler's loss and of f's.

    At the initial parameters, at those that 100 iterations lead to, and at those with f made so
    steep that scores are clipped. The twin is left with the initial ones. Raises a
    `DifferentWorkError`; returns the largest differences, as fractions of what they are of.
    """
    from benchmarks import torch_twin

    twin = twin or torch_twin.Twin(np.array(data()), sizes(CONFIG))
    worst: dict[str, float] = {}
    for parameters, inputs, wanted in _references():
        twin.load(parameters)
        got = twin.values(*inputs)
        for part in ("log_weights", "start", "dynamics", "potential"):
            names = [name for name in wanted if name.split(".")[0] == part]
            error = max(np.max(np.abs(got[name] - wanted[name])) for name in names)
            size = max(np.max(np.abs(wanted[name])) for name in names)
            worst[part] = max(worst.get(part, 0.0), float(error / size))
    wrong = {name: value for name, value in worst.items() if not value < TOLERANCE}
    if wrong:
        raise DifferentWorkError(f"The twin is off by {wrong}, where {TOLERANCE} is allowed.")
    return worst


@cache
def _references() -> list[tuple[dict, tuple, dict]]:
    """What twins are held to: parameters, inputs, and what Fenchel makes of them."""
    fenchel = Fenchel(CONFIG)
    first, points, key = fenchel.state, data()[: CONFIG.training.batch], jax.random.key(7)
    fenchel()
    learnt, sampler = fenchel.state.potential, fenchel.state.sampler
    weight = lambda f: f.potential.net.layers[-1].weight  # noqa: E731
    steep = eqx.tree_at(weight, learnt, STEEPER * weight(learnt))
    references = []
    for f, q in ((learnt, sampler), (steep, sampler), (first.potential, first.sampler)):
        with jax.default_matmul_precision("highest"):  # PyTorch's default
            wanted = _values(f, q, points, key)
        inputs = points, *_noise(q, len(points), key)
        table = by_twin_names(f, q), inputs, wanted
        references.append(jax.tree.map(np.array, table))
    return references


def sizes(config: Config) -> "Sizes":
    """The configuration as the twin has it."""
    from benchmarks.torch_twin import Sizes

    f, training, dynamics = config.potential, config.training, config.dynamics
    return Sizes(
        dim=2,
        width=f.width,
        depth=f.depth,
        base_scale=f.base_scale,
        layers=config.start.layers,
        steps=dynamics.steps,
        step_size=dynamics.step_size,
        clip_norm=dynamics.clip_norm,
        batch=training.batch,
        sampler_steps=training.sampler_steps,
        noise=_floor(config),
        potential_rate=training.potential_rate,
        start_rate=training.start_rate,
        dynamics_rate=training.dynamics_rate,
    )


def by_twin_names(potential: PyTree, sampler: PyTree) -> dict[str, Array]:
    """Fenchel's parameters, or gradients with respect to them, by their names in the twin."""
    shape = CONFIG.start.layers, 5  # two weights, two scales and a bias a layer
    arrays = jax.tree.leaves(eqx.filter(sampler.start, eqx.is_array))
    planar = [leaf for leaf in arrays if leaf.shape == shape]
    dynamics = sampler.dynamics
    scales = sampler.start.momentum.scale.args[0], dynamics.between.momentum.scale.args[0]
    table = {
        "start.params": planar[0],
        "dynamics.log_step_sizes": dynamics.layers.step_size.args[0],
        "dynamics.log_scales": jnp.concatenate([scales[0][None], scales[1]]),
    }
    for index, layer in enumerate(potential.potential.net.layers):
        table[f"potential.net.{2 * index}.weight"] = layer.weight
        table[f"potential.net.{2 * index}.bias"] = layer.bias
    return table


@eqx.filter_jit
def _values(f: Potential, sampler: Embedding, points: Points, key: Key) -> dict[str, Array]:
    """Log weights and both losses' gradients, by the library's own objects."""
    sampler_params, sampler_static = split(sampler)
    f_params, f_static = split(f)
    # Weights are not tempered here: the twin does not do it.
    bound = WeightedBound(min_ess=0.0)

    def sampler_loss(params: PyTree):
        particles, _ = eqx.combine(params, sampler_static).draw(f, points, None, key)
        return -FenchelBound().log_partition(particles), particles.log_weight

    def potential_loss(params: PyTree):
        f = eqx.combine(params, f_static)
        particles, _ = Truncated().draw(sampler, f, points, None, key)
        return -bound.value(jax.vmap(paramax.unwrap(f))(points), particles)

    grads, log_weights = jax.grad(sampler_loss, has_aux=True)(sampler_params)
    f_grads = jax.grad(potential_loss)(f_params)
    return {"log_weights": log_weights} | by_twin_names(f_grads, grads)


def _noise(sampler: Embedding, count: int, key: Key) -> tuple[Array, Array]:
    """The standard normal numbers that `sampler.draw` makes of this key: its keys, replayed."""
    steps, dim = CONFIG.dynamics.steps, 2

    def one(start_key: Key, move_key: Key) -> tuple[Array, Array]:
        x_key, v_key = jax.random.split(start_key)
        z = sampler.start.distribution.base_dist.sample(x_key)
        refreshes = jax.random.split(move_key, 2 * steps - 1)[1::2]
        return z, jnp.stack([jax.random.normal(k, (dim,)) for k in (v_key, *refreshes)])

    return jax.vmap(one, out_axes=(0, 1))(*jax.random.split(key, (2, count)))


@cache
def _parts(config: Config) -> Parts:
    """Built once, since what is built anew is compiled anew."""
    return build(config, 2)


def _floor(config: Config) -> float:
    parts = _parts(config)
    return noise_floor(config, parts.potential, parts.learner)


@cache
def data() -> Points:
    """A toy, standardised."""
    raw = TOYS["8gaussians"].sample(10_000, 1)
    return jnp.asarray(Standardiser.of(raw).forward(raw), jnp.float32)


# 3. Cost and memory against T.


def cost_of_steps(seconds: float) -> dict[str, Any]:
    """Milliseconds an iteration for each T, and the line through them."""
    runners = {}
    for steps in TIMED_STEPS:
        runners[steps] = Fenchel(CONFIG.with_values(dynamics__steps=steps), block=20)
        _first_call(f"T = {steps}", runners[steps])
    rounds = [
        [milliseconds(runner, seconds / STEP_ROUNDS) for runner in runners.values()]
        for _ in range(STEP_ROUNDS)
    ]
    times = np.median(rounds, axis=0)
    slope, intercept = np.polyfit(TIMED_STEPS, times, 1)
    residuals = times - (intercept + slope * np.array(TIMED_STEPS))
    r_squared = 1 - np.sum(residuals**2) / np.sum((times - times.mean()) ** 2)
    say(f"{slope:.3f} ms a step, R² {r_squared:.4f}")
    return {
        "milliseconds": dict(zip(TIMED_STEPS, times.tolist(), strict=True)),
        "rounds": rounds,
        "milliseconds_a_step": float(slope),
        "milliseconds_without_steps": float(intercept),
        "r_squared": float(r_squared),
    }


def memory_of_steps() -> dict[str, Any]:
    """Bytes that the sampler's gradient needs beyond its inputs and outputs, for each T."""
    table: dict[str, dict[int, int]] = {}
    for name, remat in (("kept", False), ("remat", True)):
        table[name] = {steps: _memory(steps, remat) for steps in MEMORY_STEPS}
        say(f"memory, {name}: {table[name]}")
    first, last = MEMORY_STEPS[0], MEMORY_STEPS[-1]
    return {
        "batch": MEMORY_BATCH,
        "bytes": table,
        "growth": {name: row[last] / row[first] for name, row in table.items()},
        "bytes_a_step": {
            name: (row[last] - row[first]) / (last - first) for name, row in table.items()
        },
    }


def _memory(steps: int, remat: bool) -> int:
    config = CONFIG.with_values(dynamics__steps=steps, dynamics__remat=remat)
    potential, sampler, maxmin = build(config, 2)
    params, static = split(sampler)

    def loss(params: PyTree, points: Points, key: Key) -> Array:
        particles, _ = eqx.combine(params, static).draw(potential, points, None, key)
        return -maxmin.dual.log_partition(particles)

    inputs = params, data()[:MEMORY_BATCH], jax.random.key(0)
    program = jax.jit(jax.value_and_grad(loss)).lower(*inputs).compile()
    return program.memory_analysis().temp_size_in_bytes


def as_markdown(result: dict[str, Any]) -> str:
    about, race, steps, memory = (result[k] for k in ("provenance", "race", "steps", "memory"))
    busy = "" if result["load_before"] < 0.5 * result["cores"] else " **The machine was busy.**"
    lines = [
        "# Speed",
        "",
        f"Commit {about['commit']}, {about['device']}, {about['cpu']} ({result['cores']} cores), "
        f"{versions(about)}. Made by `python -m benchmarks.speed`; load before it "
        f"{result['load_before']:.1f}.{busy}",
        "",
        *_race_lines(race),
        "",
        *_steps_lines(steps),
        "",
        *_memory_lines(memory),
    ]
    return "\n".join(lines) + "\n"


def _race_lines(race: dict[str, Any]) -> list[str]:
    others = {n: e["times_fenchel"] for n, e in race.items() if n != "Fenchel" and "rounds" in e}
    lines = [
        "## One iteration",
        "",
        "f a 3 x 128 SiLU net, 10 planar layers, 5 HMC steps; 5 sampler steps and 1 of f; batch "
        f"{CONFIG.training.batch}, float32, d = 2. Medians of {ROUNDS} rounds taken in turns in "
        "one process, each library with its own defaults for precision. ",
    ]
    if others:
        best = min(others, key=others.__getitem__)
        off = max(max(entry.get("check", {"": 0.0}).values()) for entry in race.values())
        lines[-1] += (
            f"**Fenchel is {others[best]:.1f} times as fast as the fastest twin ({best}).** "
            "From the same parameters and noise, log weights and all gradients of the twins agree "
            f"with Fenchel's to {off:.0e}; the twins have no guard, averages, tempering or health "
            "record."
        )
    lines += [
        "",
        "| | ms an iteration | iterations a second | time relative to Fenchel | compilation, s |",
        "|---|---|---|---|---|",
    ]
    for name, entry in race.items():
        if "rounds" not in entry:
            lines.append(f"| {name} | not available: {entry['not_available']} | | | |")
            continue
        ms, compilation = entry["milliseconds"], entry["compile_seconds"]
        whole = " (in parts)" if entry.get("mode") == "parts" else ""
        lines.append(
            f"| {name}{whole} | {ms:.2f} | {1e3 / ms:.1f} | {entry['times_fenchel']:.2f} "
            f"| {compilation:.1f} |"
        )
    return lines


def _steps_lines(steps: dict[str, Any]) -> list[str]:
    times = steps["milliseconds"]
    return [
        "## Time against the number of HMC steps",
        "",
        f"{steps['milliseconds_a_step']:.3f} ms for one step more, R² {steps['r_squared']:.4f}, "
        f"{steps['milliseconds_without_steps']:.2f} ms for all the rest.",
        "",
        "| T | " + " | ".join(map(str, times)) + " |",
        "|---|" + "---|" * len(times),
        "| ms an iteration | " + " | ".join(f"{ms:.2f}" for ms in times.values()) + " |",
    ]


def _memory_lines(memory: dict[str, Any]) -> list[str]:
    kept, remat = memory["bytes"]["kept"], memory["bytes"]["remat"]
    growth, each = memory["growth"], memory["bytes_a_step"]
    kib = lambda row: " | ".join(f"{size / 1024:,.0f}" for size in row.values())  # noqa: E731
    return [
        "## Memory of the sampler's gradient against the number of HMC steps",
        "",
        f"Batch {memory['batch']}; XLA's temporary buffers, in KiB. From T = {MEMORY_STEPS[0]} to "
        f"{MEMORY_STEPS[-1]} they grow {growth['kept']:.1f} times, and {growth['remat']:.2f} times "
        f"with rematerialisation: {each['kept'] / 1024:,.0f} and {each['remat'] / 1024:,.1f} KiB "
        "a step.",
        "",
        "| T | " + " | ".join(map(str, kept)) + " |",
        "|---|" + "---|" * len(kept),
        f"| all kept | {kib(kept)} |",
        f"| `remat` | {kib(remat)} |",
    ]


if __name__ == "__main__":
    main()
