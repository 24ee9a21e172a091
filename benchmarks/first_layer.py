"""How should a GPU compute a net's first layer, whose inputs are few channels?

    python -m benchmarks.first_layer [--batch 64] [--width 64] [--steps 30]

Thirty scores of a trajectory go through the first layer forwards and back, and a library that is
made for many channels takes longer for three than for sixty-four. Microseconds a step of a chain of
them, forwards with bias and leaky ReLU and back to the picture, for each way to compute it, in
bfloat16 on random pictures; and how far its end is from that of the first way. A tool for whoever
makes it faster: it prints, and writes nothing.
"""

import argparse
import time
from collections.abc import Callable
from functools import partial

import jax
import jax.numpy as jnp
from jax import lax

from fenchel.activations import leaky_relu
from fenchel.layers import LAYOUT, _by_few_channels, _by_library, _patches
from fenchel.shapes import Array
from fenchel.train.compiling import HOPES, WISHES, known

SIZE, CHANNELS, SIDE = 3, 3, 32
ROUNDS, CALLS = 5, 10
SMALL = 1e-3  # how far a step goes

Way = Callable[[Array, Array], Array]  # a picture and a kernel to a picture before its bias


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--batch", type=int, default=64)
    parser.add_argument("--width", type=int, default=64)
    parser.add_argument("--steps", type=int, default=30)
    arguments = parser.parse_args()
    keys = jax.random.split(jax.random.key(0), 3)
    pictures = jax.random.normal(keys[0], (arguments.batch, SIDE, SIDE, CHANNELS), jnp.bfloat16)
    kernel = jax.random.normal(keys[1], (SIZE, SIZE, CHANNELS, arguments.width), jnp.bfloat16) / 5
    bias = jax.random.normal(keys[2], (arguments.width,), jnp.bfloat16) / 5
    first = None
    for name, way in WAYS.items():
        program = jax.jit(
            partial(chain, way, arguments.steps),
            compiler_options=known((*WISHES.items(), *HOPES.items())),
        )
        end = program(pictures, kernel, bias).astype(jnp.float32)
        first = end if first is None else first
        off = jnp.linalg.norm(end - first) / jnp.linalg.norm(first - pictures)
        step = least(program, pictures, kernel, bias) / arguments.steps
        print(f"{name:<36}{1e6 * step:8.2f} us, off by {off:.1e}", flush=True)


def chain(way: Way, steps: int, x: Array, kernel: Array, bias: Array) -> Array:
    """Forwards, and what comes back of the very activations, again and again."""
    for _ in range(steps):
        before, back = jax.vjp(jax.vmap(lambda picture: way(picture, kernel)), x)
        after = lax.optimization_barrier(leaky_relu(before + bias))
        x = lax.optimization_barrier(x - jnp.bfloat16(SMALL) * back(after)[0])
    return x


def least(program: Callable, *arguments: Array) -> float:
    """Seconds of a call, the best of several rounds."""
    seconds = []
    for _ in range(ROUNDS):
        began = time.perf_counter()
        for _ in range(CALLS):
            end = program(*arguments)
        end.block_until_ready()
        seconds.append((time.perf_counter() - began) / CALLS)
    return min(seconds)


def by_library(x: Array, kernel: Array) -> Array:
    return _by_library(x, kernel, (1, 1), 1)


def now(x: Array, kernel: Array) -> Array:
    return _by_few_channels(x, kernel, (1, 1), 1)


def rows_aside(x: Array, to: int) -> Array:
    """What a row of the kernel sees of each place side by side, and zeros up to so many numbers."""
    x = jnp.pad(x, ((1, 1), (1, 1), (0, 0)))
    width = x.shape[1] - SIZE + 1
    seen = [x[:, column : column + width] for column in range(SIZE)]
    rest = jnp.zeros((len(x), width, to - SIZE * CHANNELS), x.dtype)
    return lax.optimization_barrier(jnp.concatenate([*seen, rest], axis=-1))


def kernel_aside(kernel: Array, to: int) -> Array:
    """Likewise: a kernel's row as one piece."""
    rows = kernel.reshape(SIZE, SIZE * CHANNELS, -1)
    return jnp.pad(rows, ((0, 0), (0, to - SIZE * CHANNELS), (0, 0)))


def convolved(x: Array, kernel: Array) -> Array:
    strides = (1, 1)
    return lax.conv_general_dilated(x[None], kernel, strides, "VALID", dimension_numbers=LAYOUT)[0]


def columns_by_library(to: int, x: Array, kernel: Array) -> Array:
    """Rows side by side by hand, columns by the library: a kernel of three by one."""
    return convolved(rows_aside(x, to), kernel_aside(kernel, to)[:, None])


def all_aside(row: int, to: int, x: Array, kernel: Array) -> tuple[Array, Array]:
    seen = rows_aside(x, row)
    height = len(seen) - SIZE + 1
    pieces = [seen[first : first + height] for first in range(SIZE)]
    rest = jnp.zeros((*pieces[0].shape[:2], to - SIZE * row), x.dtype)
    kernel = kernel_aside(kernel, row).reshape(SIZE * row, -1)
    kernel = jnp.pad(kernel, ((0, to - SIZE * row), (0, 0)))
    return jnp.concatenate([*pieces, rest], axis=-1), kernel


def product(row: int, to: int, x: Array, kernel: Array) -> Array:
    seen, kernel = all_aside(row, to, x, kernel)
    return seen @ kernel


def one_by_one(row: int, to: int, x: Array, kernel: Array) -> Array:
    seen, kernel = all_aside(row, to, x, kernel)
    return convolved(seen, kernel[None, None])


def back_by(forwards: Way, backwards: Way) -> Way:
    """The one way forwards, the transpose of another back to the picture."""

    def way(x: Array, kernel: Array) -> Array:
        @jax.custom_jvp
        def moved(x: Array) -> Array:
            return forwards(x, kernel)

        @moved.defjvp
        def _(at: tuple[Array], along: tuple[Array]) -> tuple[Array, Array]:
            return moved(*at), backwards(*along, kernel)

        return moved(x)

    return way


def patches(x: Array, kernel: Array) -> Array:
    """All nine at once: slow forwards, but back it is one kernel after the product."""
    seen = _patches(jnp.pad(x, ((1, 1), (1, 1), (0, 0))), SIZE, 1)
    return seen @ kernel.reshape(-1, kernel.shape[-1])


WAYS: dict[str, Way] = {
    "as it is": now,
    "3 x 3 by the library": by_library,
    "patches of 27 and five zeros": partial(product, 9, 32),
    "patches of rows of ten": partial(product, 10, 32),
    "... by the library, 1 x 1": partial(one_by_one, 10, 32),
    "... and back by patches": back_by(partial(one_by_one, 10, 32), patches),
    "rows of 16 by the library, 3 x 1": partial(columns_by_library, 16),
    "... of 16 and back by patches": back_by(partial(columns_by_library, 16), patches),
    "... of 32 and back by patches": back_by(partial(columns_by_library, 32), patches),
}


if __name__ == "__main__":
    main()
