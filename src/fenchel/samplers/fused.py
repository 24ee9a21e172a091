"""Langevin chains of which a GPU never lets go: all steps of a chain in one kernel.

A step of a small potential takes less time than to launch it. Where f is plain arithmetic of one
point, every chain stays in registers from the first step to the last.
"""

from functools import partial

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import paramax
from jax import lax
from jax.experimental import pallas as pl

from fenchel.dynamics import Particle, particle_at
from fenchel.errors import InputError
from fenchel.samplers.counter_noise import normal
from fenchel.samplers.embedding import AbstractSampler
from fenchel.shapes import Array, Key, Points, Potential

try:
    from jax.experimental.pallas import triton
except ImportError:  # JAX 0.12 announces that this backend will go: then all chains are loops
    triton = None  # type: ignore[assignment]

NUMBERS = 256  # of a block, two for each thread; more only where one point has more
LONGEST = 2_048  # numbers of a point that a block can hold
WARPS = 4


class FusedLangevin(AbstractSampler):
    """`steps` Langevin steps x' = x + ε²/2 ∇f(x) + ε noise from each of the points.

    On a GPU in one kernel, if f has no arrays of its own (its parameters are plain numbers) and the
    dimension is a power of two; else as a loop, with the same noise.
    """

    steps: int = eqx.field(static=True)
    step_size: float = eqx.field(static=True)

    def __check_init__(self) -> None:
        if self.steps < 1 or not self.step_size > 0:
            raise InputError(
                f"{self.steps} Langevin steps of size {self.step_size} were asked for: both must "
                "be positive."
            )

    @property
    def exact(self) -> bool:
        return False

    def init(self, data: Points, key: Key) -> None:
        return None

    def draw(self, f: Potential, points: Points, state: None, key: Key) -> tuple[Particle, None]:
        f = paramax.unwrap(f)
        words = jax.random.key_data(key)[-2:]
        loop = partial(self.moved, f)
        if _fits(f, points):
            x = lax.platform_dependent(points, words, cuda=partial(self.kernel, f), default=loop)
        else:
            x = loop(points, words)
        still = jnp.zeros(points.shape[1], points.dtype)
        return jax.vmap(lambda x: particle_at(f, x, still, jnp.zeros(())))(x), None

    def kernel(
        self, f: Potential, points: Points, words: Array, *, interpret: bool = False
    ) -> Points:
        """All steps in one kernel, a block of points at a time."""
        n, dim = points.shape
        rows = max(1, min(NUMBERS // dim, _power_of_two_above(n)))
        blocks = -(-n // rows)
        padded = jnp.pad(points, ((0, blocks * rows - n), (0, 0)))
        block = pl.BlockSpec((rows, dim), lambda index: (index, 0))

        def body(x_ref, words_ref, out_ref) -> None:
            first = (pl.program_id(0) * rows).astype(jnp.uint32)
            out_ref[...] = self.moved(f, x_ref[...], (words_ref[0], words_ref[1]), first)

        moved = pl.pallas_call(
            body,
            out_shape=jax.ShapeDtypeStruct(padded.shape, padded.dtype),
            grid=(blocks,),
            in_specs=[block, pl.BlockSpec((2,), lambda index: (0,))],
            out_specs=block,
            interpret=interpret,
            compiler_params=triton.CompilerParams(num_warps=WARPS),
        )(padded, words)
        return moved[:n]

    def moved(
        self, f: Potential, x: Points, words: Array | tuple[Array, Array], first: Array | int = 0
    ) -> Points:
        """The points after all steps; `first` is the number of the first of them."""
        row, column = (lax.broadcasted_iota(jnp.uint32, x.shape, axis) for axis in (0, 1))
        place = (row + jnp.asarray(first, jnp.uint32)) * np.uint32(x.shape[1]) + column
        score = jax.grad(lambda x: jnp.sum(jax.vmap(f)(x)))

        def step(time: Array, x: Points) -> Points:
            when = jnp.zeros_like(place) + time.astype(jnp.uint32)
            noise = normal((words[0], words[1]), (place, when)).astype(x.dtype)
            return x + 0.5 * self.step_size**2 * score(x) + self.step_size * noise

        return lax.fori_loop(0, self.steps, step, x)


def _fits(f: Potential, points: Points) -> bool:
    """Whether a kernel can hold f and a point."""
    dim = points.shape[1]
    plain = not jax.make_jaxpr(f)(jnp.zeros(dim, points.dtype)).consts
    return triton is not None and plain and dim == _power_of_two_above(dim) and dim <= LONGEST


def _power_of_two_above(number: int) -> int:
    return 1 << (number - 1).bit_length()
