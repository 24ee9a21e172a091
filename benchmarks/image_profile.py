"""Where the time of an iteration on pictures goes: which kernels, how often, and what is between.

    python -m benchmarks.image_profile [--preset cifar10-paper] [--batch 64] [--gradient detached]
                                       [--tiny] [--options "NAME=VALUE [NAME=VALUE ...]"]...

Milliseconds an iteration of a preset for CIFAR-10 on random pictures, and the kernels that they are
spent in, from a trace of one block; once as the library compiles it, and once more for every set of
`--options`, which are asked of the compiler besides. A tool for whoever makes it faster: it prints,
and writes nothing. What XLA launches as one graph of kernels it launches one by one in a trace, so
that the trace tells of the kernels, and the time without it of what is between them.

Whether kernels are launched one by one matters most: of convolutions and of loops they are, unless

    --options "xla_gpu_enable_command_buffer=FUSION,CUBLAS,CUBLASLT,CUDNN,CONVOLUTION,WHILE
               xla_gpu_graph_min_graph_size=1"
"""

import argparse
import re
import tempfile
import time
from collections import Counter
from pathlib import Path

import equinox as eqx
import jax

from benchmarks.images import GRADIENTS, Job, _config, _job
from fenchel.train.compiling import HOPES, WISHES, known
from fenchel.train.loop import run_block

ROUNDS = 3
SHOWN = 25  # kernels
TRUTH = {"true": True, "false": False}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--preset", default="cifar10-paper")
    parser.add_argument("--batch", type=int, default=64)
    parser.add_argument("--gradient", choices=GRADIENTS, default="detached")
    parser.add_argument("--options", action="append", default=[], type=options)
    parser.add_argument("--tiny", action="store_true")
    arguments = parser.parse_args()
    job = _job(_config(arguments.batch, arguments.gradient, arguments.tiny, arguments.preset))
    for own in [{}, *arguments.options]:
        print(f"\n## {own or 'as it is'}\n", flush=True)
        try:
            examine(job, own)
        except jax.errors.JaxRuntimeError as error:  # of an option that this compiler has not
            print(str(error).splitlines()[0][:300], flush=True)


def options(text: str) -> dict[str, str | bool]:
    named = dict(each.split("=", 1) for each in text.split())
    return {name: TRUTH.get(value, value) for name, value in named.items()}


def examine(job: Job, own: dict[str, str | bool]) -> None:
    """Time a block, and take one apart."""
    wishes = {**known((*WISHES.items(), *HOPES.items())), **own}
    program = eqx.filter_jit(run_block, compiler_options=wishes)
    learner, state, batches, block = job.arguments()
    began = time.perf_counter()
    executable = program.lower(learner, state, batches, block).compile()
    print(f"compiled in {time.perf_counter() - began:.1f} s", flush=True)

    def run() -> float:
        began = time.perf_counter()
        jax.block_until_ready(executable(learner, state, batches, block))
        return 1e3 * (time.perf_counter() - began) / block

    run()
    print(f"{min(run() for _ in range(ROUNDS)):.3f} ms an iteration", flush=True)
    with tempfile.TemporaryDirectory() as folder:
        with jax.profiler.trace(folder):
            run()
        for trace in Path(folder).rglob("*.xplane.pb"):
            print(as_table(jax.profiler.ProfileData.from_file(str(trace)), block), flush=True)


def as_table(profile: jax.profiler.ProfileData, block: int) -> str:
    """Of the device's own planes: kernels by their time, and how much of it was nobody's."""
    lines = []
    for plane in profile.planes:
        if not plane.name.startswith("/device:GPU"):
            continue
        spent: Counter[str] = Counter()
        times: Counter[str] = Counter()
        spans = []
        for line in plane.lines:
            if not line.name.startswith("Stream"):
                continue
            for event in line.events:
                spent[kind(event.name)] += event.duration_ns
                times[kind(event.name)] += 1
                spans.append((event.start_ns, event.start_ns + event.duration_ns))
        busy, whole = covered(spans)
        lines += [
            f"{plane.name}: {1e-6 * whole / block:.3f} ms an iteration, {busy / whole:.1%} busy",
            "",
            "| kernel | ms an iteration | times an iteration | us each |",
            "| --- | --- | --- | --- |",
        ]
        for name, nanoseconds in spent.most_common(SHOWN):
            lines.append(
                f"| {name} | {1e-6 * nanoseconds / block:.3f} | {times[name] / block:.1f} | "
                f"{1e-3 * nanoseconds / times[name]:.1f} |"
            )
    return "\n".join(lines) or "No GPU's kernels are in the trace."


def kind(name: str) -> str:
    """A kernel's name without what tells it from its like."""
    return re.sub(r"[._]\d+(?=$|_)", "", name)[:70]


def covered(spans: list[tuple[int, int]]) -> tuple[int, int]:
    """(how long any of them lasted, from the first to the last)."""
    busy, end = 0, 0
    for begin, finish in sorted(spans):
        busy += max(0, finish - max(begin, end))
        end = max(end, finish)
    return busy, end - min(begin for begin, _ in spans)


if __name__ == "__main__":
    main()
