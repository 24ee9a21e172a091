"""How fast is an iteration, what does a step of the dynamics cost, and how much memory?

    python -m benchmarks.speed [--torch | --no-torch] [--compile | --no-compile] [--seconds 5]
                               [--out benchmarks/results] [--name speed-cpu]

1. Milliseconds an iteration, beside the same iteration in plain PyTorch (`torch_twin`): in one
   process, in turns, the medians of three rounds after compilation. Before anything is timed,
   `check_same_work` holds the twin to Fenchel's own log weights and gradients.
2. Milliseconds an iteration against the number T of HMC steps, with the least-squares line.
3. Memory of the sampler's gradient against T, with and without rematerialisation.

Run it on a quiet machine: PyTorch's threads wait for one another, and on two busy cores that alone
made it 10 times slower. So on a CPU the twin is also timed with one thread, and the ratio that is
reported is to the fastest of the twins.
"""

import os

os.environ.setdefault("XLA_PYTHON_CLIENT_PREALLOCATE", "false")  # PyTorch needs memory too

import argparse
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import jax
import numpy as np

from benchmarks.record import RESULTS, provenance, write
from fenchel.build import build
from fenchel.config import Config
from fenchel.train import Batches
from fenchel.train.loop import compiled_block

CONFIG = Config().with_values(
    start__kind="planar",
    start__layers=10,
    dynamics__kind="hmc",
    dynamics__steps=5,
    training__batch=100,
    training__sampler_steps=5,
    training__anchor=0.0,
    training__gradient="truncated",
)
ROUNDS = 3
BLOCK = 100
TIMED_STEPS = (2, 4, 8, 16, 32, 64)
MEMORY_STEPS = (4, 8, 16, 32, 64)
MEMORY_BATCH = 256
TOLERANCE = 1e-4  # of log weights, in nats, and of gradients, as a fraction of their norm

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
    parser.add_argument("--seconds", type=float, default=5.0)
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
        self.parts, self.block = build(config, 2), block
        self.state = self.parts.maxmin.init(
            self.parts.potential, self.parts.sampler, data(), jax.random.key(config.seed)
        )
        self.batches = Batches(data(), config.training.batch, config.training.noise)

    def __call__(self) -> int:
        done = compiled_block(self.parts.maxmin, self.state, self.batches, self.block)
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
        self.twin = Twin(np.asarray(data()), sizes(CONFIG), device, mode)

    def __call__(self) -> int:
        with _threads(self.threads):
            loss = self.twin.iterations(self.block)  # reading the loss waits for the device
        if not np.isfinite(loss):
            raise RuntimeError("The twin's loss is not finite: its timing would mean nothing.")
        return self.block


def race(seconds: float, with_torch: bool, with_compile: bool) -> dict[str, Any]:
    """Milliseconds an iteration of everyone who can take part, and why the others cannot."""
    runners: dict[str, Callable[[], int]] = {"Fenchel": Fenchel(CONFIG)}
    compile_seconds = {"Fenchel": _compile_seconds(runners["Fenchel"])}
    missing, checks = {}, {}
    twins = TWINS_GPU if jax.default_backend() == "gpu" else TWINS_CPU
    for name, (mode, threads) in twins.items() if with_torch else ():
        if mode is not None and not with_compile:
            continue
        try:
            runner, checks[name] = _checked(mode, threads)
            compile_seconds[name] = _compile_seconds(runner)
            runners[name] = runner
        except _why_not_compiled(mode) as error:
            missing[name] = f"{type(error).__name__}: {str(error).strip().splitlines()[0]}"
            say(f"{name}: not available ({missing[name]})")
    rounds: dict[str, list[float]] = {name: [] for name in runners}
    for _ in range(ROUNDS):
        for name, runner in runners.items():
            rounds[name].append(_milliseconds(runner, seconds))
            say(f"{name}: {rounds[name][-1]:.2f} ms an iteration")
    medians = {name: float(np.median(times)) for name, times in rounds.items()}
    return {
        "milliseconds": medians,
        "rounds": rounds,
        "ratio": {name: medians[name] / medians["Fenchel"] for name in medians},
        "compile_seconds": compile_seconds,
        "not_available": missing,
        "check": checks,
    }
