"""How fast is an iteration on pictures, beside PyTorch, and beside what the device could do?

    python -m benchmarks.images [--batches 64,256,1024] [--gradients detached,bptt] [--seconds 1]
                                [--preset NAME] [--no-torch] [--compile] [--limit 400]
                                [--out benchmarks/results] [--name images-gpu] [--tiny]
    python -m benchmarks.images --check

Milliseconds an iteration of a preset for CIFAR-10 on random pictures, with the detached score and
with back-propagation through time, for Fenchel and for the same work in PyTorch (`torch_pictures`,
of `cifar10-paper` only), in one process and in turns, so that a machine that slows down slows down
everyone. Where all of them do not fit on the device together, one after the other. What runs out of
memory is recorded as such, and Fenchel then tries again with rematerialisation. Beside it the least
time that the operations themselves take (`image_roofline`). Results are written after every batch
size and gradient.

`--check` holds the PyTorch twin to Fenchel's values and gradients, in float32 on tiny nets.
"""

import os

os.environ.setdefault("XLA_PYTHON_CLIENT_PREALLOCATE", "false")  # PyTorch needs memory too
os.environ.setdefault("XLA_PYTHON_CLIENT_MEM_FRACTION", "0.9")  # and hands it back, unlike JAX

import argparse
import math
import sys
import time
from collections.abc import Callable
from functools import cache
from itertools import product
from pathlib import Path
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from benchmarks.image_roofline import data_sheet_peak, measured_peak, operations
from benchmarks.image_table import TWINNED, as_markdown
from benchmarks.record import RESULTS, provenance, write
from fenchel.build import Parts, build
from fenchel.config import Config
from fenchel.presets import preset
from fenchel.train import PictureBatches, TrainState
from fenchel.train.compiling import compiled
from fenchel.train.loop import run_block

FENCHEL, COMPILED = "Fenchel", "PyTorch, score written out and compiled"
OUT_OF_MEMORY = "out of memory"
GRADIENTS = ("detached", "bptt")  # the published code's truncated one, and through time
PICTURES = 5_000
SHAPE = (32, 32, 3)
TINY = {
    "pictures__shape": (8, 8, 3),
    "potential__width": 4,
    "start__width": 4,
    "start__latent": 8,
    "dynamics__steps": 3,
}
ON_GPU = jax.default_backend() == "gpu"
ROUNDS = 3
SMALL = 64  # the paper's batch
BLOCK = 100 if ON_GPU else 20  # iterations of it between two looks; on a GPU as in training
ROOMY = 256  # the batch up to which everyone's trajectories fit on a device together


def main() -> None:
    arguments = _arguments()
    if arguments.check:
        from benchmarks.image_check import check_same_work

        differences = check_same_work(_config(4, "detached", tiny=True))
        print("\n".join(f"{name}: {off:.1e}" for name, off in differences.items()))
        return
    if arguments.torch:  # a PyTorch that is not there shall not be missed after minutes only
        import benchmarks.torch_pictures  # noqa: F401
    load = os.getloadavg()[0]
    result: dict[str, Any] = {
        "preset": arguments.preset,
        "settings": _config(
            arguments.batches[0], "detached", arguments.tiny, arguments.preset
        ).to_dict(),
        "tiny": arguments.tiny,
        "provenance": provenance(),
        "load_before": load,
        "cores": os.cpu_count(),
        "rounds": ROUNDS,
        "peaks": {
            "data_sheet": data_sheet_peak(),
            "measured": measured_peak(8_192 if ON_GPU else 256),
        },
        "cells": [],
    }
    say(f"peak: {result['peaks']['measured'] / 1e12:.3g} TFLOP/s in bfloat16, measured")
    began = time.perf_counter()
    for batch, gradient in product(arguments.batches, arguments.gradients):
        cell = _cell(_config(batch, gradient, arguments.tiny, arguments.preset))
        result["cells"].append(race(cell, arguments, began))
        result["seconds"] = time.perf_counter() - began
        write(arguments.name, result, as_markdown(result), arguments.out)
    print(as_markdown(result))


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--batches", type=_list_of(int))
    parser.add_argument("--gradients", type=_list_of(_gradient), default=GRADIENTS)
    parser.add_argument("--seconds", type=float, default=1.0, help="of each contestant, in all")
    parser.add_argument("--preset", default=TWINNED, help="of CIFAR-10; others have no twin")
    parser.add_argument("--torch", action=argparse.BooleanOptionalAction, default=True)
    parser.add_argument("--compile", action="store_true", help="torch.compile takes part, too")
    limit = 400.0 if ON_GPU else math.inf
    parser.add_argument("--limit", type=float, default=limit, help="seconds; no twin begins later")
    parser.add_argument("--out", type=Path, default=RESULTS)
    parser.add_argument("--name", default=f"images-{jax.default_backend()}")
    parser.add_argument("--tiny", action="store_true")
    parser.add_argument("--check", action="store_true")
    arguments = parser.parse_args()
    arguments.torch &= arguments.preset == TWINNED
    arguments.batches = arguments.batches or ((4,) if arguments.tiny else (64, 256, 1024))
    return arguments


def _list_of(kind: Callable[[str], Any]) -> Callable[[str], tuple]:
    return lambda text: tuple(map(kind, text.split(",")))


def _gradient(name: str) -> str:
    if name not in GRADIENTS:
        raise argparse.ArgumentTypeError(f"{name!r} is none of {', '.join(GRADIENTS)}")
    return name


def say(text: str) -> None:
    print(text, flush=True)


# What is run.


class Program(NamedTuple):
    """Fenchel's block of iterations, compiled, and what it takes; or why it could not be."""

    executable: Callable | None
    seconds: float
    memory: int | None
    reason: str | None = None


class Job(NamedTuple):
    """All that a block of Fenchel's iterations needs."""

    config: Config
    parts: Parts
    state: TrainState
    batches: PictureBatches

    @property
    def block(self) -> int:
        return max(5, BLOCK * SMALL // max(SMALL, self.config.training.batch))

    def arguments(self) -> tuple:
        return self.parts.learner, self.state, self.batches, self.block


class Cell(NamedTuple):
    """One batch size with one gradient."""

    job: Job
    program: Program

    @property
    def name(self) -> str:
        training = self.job.config.training
        return f"{training.gradient}, batch {training.batch}"


def _cell(config: Config) -> Cell:
    """Compiled by itself: compilers side by side time each other's kernels, and take far longer."""
    job = _job(config)
    cell = Cell(job, _compiled(compiled(run_block).lower(*job.arguments())))
    say(f"{cell.name}: compiled in {cell.program.seconds:.1f} s")
    return cell


def _config(batch: int, gradient: str, tiny: bool, name: str = TWINNED) -> Config:
    sizes = TINY if tiny else {"pictures__shape": SHAPE}
    config = preset(name).with_values(**sizes)
    return config.with_values(training__batch=batch, training__gradient=gradient)


def _job(config: Config) -> Job:
    shape, pictures = config.pictures.shape, config.pictures
    parts = _parts(config.with_values(training__batch=1))
    nothing = jnp.zeros((1, math.prod(shape)))  # this sampler does not begin at the data
    state = parts.learner.init(parts.potential, parts.sampler, nothing, jax.random.key(config.seed))
    batches = PictureBatches(
        data(shape), shape, config.training.batch, pictures.dequantise, pictures.flips
    )
    return Job(config, parts, state, batches)


@cache
def _parts(config: Config) -> Parts:
    """The same for all batch sizes."""
    return build(config, math.prod(config.pictures.shape))


@cache
def data(shape: tuple[int, int, int]) -> np.ndarray:
    """Pictures of nothing: it is only the time that counts."""
    levels = np.random.default_rng(0).integers(0, 256, (PICTURES, math.prod(shape)))
    return levels.astype(np.uint8)


def _compiled(lowered: Any) -> Program:
    began = time.perf_counter()
    try:
        executable = lowered.compile()
    except Exception as error:
        return Program(None, time.perf_counter() - began, None, _reason(error))
    sizes = executable.compiled.memory_analysis()
    memory = sizes and sizes.temp_size_in_bytes + sizes.argument_size_in_bytes
    return Program(executable, time.perf_counter() - began, memory)


# Who runs it.


class Fenchel:
    """Called, it trains for a block and waits until that is done; how many iterations it was."""

    def __init__(self, job: Job, program: Program):
        if program.executable is None:
            raise RuntimeError(program.reason)
        self.job, self.program, self.state = job, program, job.state

    def __call__(self) -> int:
        learner, _, batches, block = self.job.arguments()
        done = self.program.executable(learner, self.state, batches, block)
        self.state, info = jax.block_until_ready(done)
        dropped = int(np.sum(info.dropped_potential) + np.sum(info.dropped_sampler))
        if dropped:
            raise RuntimeError(f"{dropped} steps were not finite: this timing would mean nothing.")
        return block


class Torch:
    """Likewise, for a twin that is run in this style."""

    def __init__(self, job: Job, score: str, style: Callable):
        import torch

        from benchmarks.torch_pictures import Sizes, Twin, release

        if torch.cuda.is_available() != ON_GPU:
            raise RuntimeError("JAX and PyTorch do not see the same device: run with --no-torch.")
        self.before = release()
        sizes = Sizes.of(job.config, job.parts.learner.decay)
        pictures = data(job.config.pictures.shape)
        self.runner = style(Twin(pictures, sizes, score, "cuda" if ON_GPU else "cpu"))
        self.block = max(2, job.block // 4)

    def __call__(self) -> int:
        if not np.isfinite(self.runner(self.block)):
            raise RuntimeError("The twin's objective is not finite: its timing would mean nothing.")
        return self.block

    def memory(self) -> int | None:
        """Bytes that it needed at most, asked before another twin begins."""
        from benchmarks.torch_pictures import memory_peak

        peak = memory_peak()
        return None if peak is None else peak - self.before


class Contestant:
    """Someone who takes part, for as long as nothing goes wrong."""

    def __init__(self, name: str, make: Callable[[], Callable[[], int]], **about: Any):
        self.name, self.make, self.entry = name, make, about
        self.runner: Callable[[], int] | None = None

    def get_ready(self) -> None:
        began = time.perf_counter()
        self.runner = self._attempt(self.make)
        self.turn(0.0)
        self.entry["ready_seconds"] = time.perf_counter() - began
        if isinstance(self.runner, Torch):
            self.entry["memory"] = self.runner.memory()
        say(f"  {self.name}: {self.reason or 'ready'} after {self.entry['ready_seconds']:.1f} s")

    def turn(self, seconds: float) -> float:
        """Milliseconds an iteration, over blocks that take about so long together."""
        count, began = 0, time.perf_counter()
        while self.runner is not None and (not count or time.perf_counter() - began < seconds):
            count += self._attempt(self.runner) or 0
        return 1e3 * (time.perf_counter() - began) / max(1, count)

    @property
    def reason(self) -> str | None:
        """Why there is no result."""
        return self.entry.get("not_available")

    def drop(self, reason: str) -> None:
        self.runner, self.entry["not_available"] = None, reason

    def _attempt(self, action: Callable[[], Any]) -> Any:
        try:
            return action()
        except Exception as error:
            self.drop(_reason(error))
            return None


def _reason(error: Exception) -> str:
    text = str(error).strip()
    if "RESOURCE_EXHAUSTED" in text or "out of memory" in text.lower():
        return OUT_OF_MEMORY
    return f"{type(error).__name__}: {(text.splitlines() or [''])[0][:300]}"


def _contestants(cell: Cell, arguments: argparse.Namespace) -> list[Contestant]:
    styles = _styles(cell.job.config.training.gradient) if arguments.torch else {}
    twins = [_twin(cell, name, *style) for name, style in styles.items()]
    if arguments.torch and arguments.compile:
        twins.append(_compiled_twin(cell))
    return [_ours(FENCHEL, cell.job, cell.program), *twins]


def _second_chances(cell: Cell, contestants: list[Contestant]) -> list[Contestant]:
    """For those who failed and can be helped."""
    reasons = {each.name: each.reason or "" for each in contestants}
    chances = []
    if reasons[FENCHEL] == OUT_OF_MEMORY:
        job = _job(cell.job.config.with_values(dynamics__remat=True))
        program = _compiled(compiled(run_block).lower(*job.arguments()))
        chances.append(_ours(f"{FENCHEL}, rematerialised", job, program))
    failed = any("graphs" in name and "Error" in reason for name, reason in reasons.items())
    if failed and COMPILED not in reasons:
        chances.append(_compiled_twin(cell))
    return chances


def _ours(name: str, job: Job, program: Program) -> Contestant:
    about = {"compile_seconds": program.seconds, "memory": program.memory}
    return Contestant(name, lambda: Fenchel(job, program), **about)


def _twin(cell: Cell, name: str, score: str, style: Callable) -> Contestant:
    return Contestant(name, lambda: Torch(cell.job, score, style))


def _compiled_twin(cell: Cell) -> Contestant:
    from benchmarks.torch_pictures import compiled

    return _twin(cell, COMPILED, "written_out", compiled)


def _styles(gradient: str) -> dict[str, tuple[str, Callable]]:
    """Which score a twin has, and how it is run.

    Only where it is differentiated again does it matter how the score was written.
    """
    from benchmarks.torch_pictures import Captured, Eager

    styles: dict[str, tuple[str, Callable]] = {"PyTorch, eager": ("by_autograd", Eager)}
    if ON_GPU:
        styles["PyTorch, CUDA graphs"] = ("by_autograd", Captured)
    if gradient == "bptt":
        how, style = (", CUDA graphs", Captured) if ON_GPU else ("", Eager)
        styles[f"PyTorch, score written out{how}"] = ("written_out", style)
    return styles


# The race.


def race(cell: Cell, arguments: argparse.Namespace, began: float) -> dict[str, Any]:
    """Everyone's times, and the operations that they were spent on."""
    say(f"{cell.name}:")
    config, contestants = cell.job.config, _contestants(cell, arguments)
    together = config.training.gradient != "bptt" or config.training.batch <= ROOMY
    # JAX keeps memory that it has had: where there is too little for all, PyTorch goes first.
    for group in [contestants] if together else [[each] for each in reversed(contestants)]:
        late = time.perf_counter() - began > arguments.limit
        run_in_turns(group, arguments.seconds, late)
    for each in _second_chances(cell, contestants):
        run_in_turns([each], arguments.seconds)
        contestants.append(each)
    return {
        "batch": config.training.batch,
        "gradient": config.training.gradient,
        "block": cell.job.block,
        "in_turns": together,
        "operations": operations(config, cell.job.parts),
        "operations_if_curved": sum(operations(config, cell.job.parts, curved=True).values()),
        "entries": compared({each.name: each.entry for each in contestants}),
    }


def run_in_turns(group: list[Contestant], seconds: float, late: bool = False) -> None:
    """Get everyone ready, let all go once more, then time them round by round."""
    for each in group:
        if late and each.name != FENCHEL:
            each.drop("not begun: the time was up")
        else:
            each.get_ready()
    for each in group:
        each.turn(0.0)
    for _ in range(ROUNDS):
        for each in group:
            milliseconds = each.turn(seconds / ROUNDS)
            if each.runner is not None:
                each.entry.setdefault("rounds", []).append(milliseconds)
    for each in group:
        _conclude(each)
    if "benchmarks.torch_pictures" in sys.modules:
        sys.modules["benchmarks.torch_pictures"].release()


def _conclude(contestant: Contestant) -> None:
    entry = contestant.entry
    if contestant.runner is not None:
        entry["milliseconds"], entry["best"] = (
            float(np.median(entry["rounds"])),
            min(entry["rounds"]),
        )
        say(f"  {contestant.name}: {entry['milliseconds']:.2f} ms an iteration")
    contestant.runner = None  # and with it its memory


def compared(entries: dict[str, dict[str, Any]]) -> dict[str, dict[str, Any]]:
    """With everyone's time relative to Fenchel's, round by round."""
    done = {name: entry for name, entry in entries.items() if "milliseconds" in entry}
    ours = next((entry["rounds"] for name, entry in done.items() if name.startswith(FENCHEL)), None)
    for entry in done.values() if ours else ():
        entry["times_fenchel"] = float(np.median(np.divide(entry["rounds"], ours)))
    return entries


if __name__ == "__main__":
    main()
