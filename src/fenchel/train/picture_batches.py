"""Batches of pictures, kept as bytes and made numbers in [-1, 1] only as they are drawn."""

import math

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import UInt8

from fenchel.errors import InputError
from fenchel.shapes import Array, Key
from fenchel.train.batches import AbstractBatches

# A number just below u + 1 must stay below it in float32 when u is 255.
LARGEST = 1 - 2**-16


class PictureBatches(AbstractBatches):
    """Uniform draws with replacement, on the device, so that the whole loop can be compiled.

    Grey levels are whole numbers, and whole numbers have no density. `dequantise` is the width of
    the uniform noise on them, in levels: with 1 a level u fills [u, u + 1), all levels together
    fill [-1, 1), and the density of the numbers is that of a picture spread over its cell; with 0
    levels stay points.

    **Arguments:**

    - `data`: pictures as rows (n, d) of bytes, in the order height, width, channel.
    - `shape`: height, width and channels of each.
    - `size`: how many pictures are in a batch.
    - `dequantise`: from 0 to 1, see above.
    - `flips`: whether every second picture, at random, is shown as in a mirror.
    - `noise`: the standard deviation of Gaussian noise on top, on the scale of [-1, 1].
    """

    data: UInt8[Array, "n d"] = eqx.field(converter=jnp.asarray)
    shape: tuple[int, int, int] = eqx.field(static=True)
    size: int = eqx.field(static=True, default=256)
    dequantise: float = eqx.field(static=True, default=1.0)
    flips: bool = eqx.field(static=True, default=False)
    noise: float = eqx.field(static=True, default=0.0)

    def __check_init__(self):
        if self.data.dtype != jnp.uint8 or self.data.shape[1:] != (math.prod(self.shape),):
            raise InputError(
                f"Pictures of shape {self.shape} were given as {self.data.dtype}"
                f"{list(self.data.shape)}; give (n, {math.prod(self.shape)}) bytes."
            )
        if not 0 <= self.dequantise <= 1:
            raise InputError(f"A level is 1 wide; dequantise by 0 to 1, not {self.dequantise}.")

    def draw(self, count: int, key: Key) -> Array:
        """(count, size, d)."""
        row_key, flip_key, level_key, noise_key = jax.random.split(key, 4)
        rows = jax.random.randint(row_key, (count, self.size), 0, self.data.shape[0])
        levels = self.data[rows]  # bytes as long as possible: they are a quarter of the memory
        if self.flips:
            levels = self._flipped(levels, flip_key)
        points = self._numbers(levels, level_key)
        if self.noise == 0:
            return points
        return points + self.noise * jax.random.normal(noise_key, points.shape, points.dtype)

    def levels(self, points: Array) -> UInt8[Array, "..."]:
        """From numbers in [-1, 1] back to the nearest levels; what lies outside is clipped."""
        top = 255 + self.dequantise
        # A level's noise begins at the level itself, so that its middle is half a width further.
        nearest = jnp.floor(top * (points + 1) / 2 + (1 - self.dequantise) / 2)
        return jnp.clip(nearest, 0, 255).astype(jnp.uint8)

    def _flipped(self, levels: Array, key: Key) -> Array:
        pictures = levels.reshape(*levels.shape[:-1], *self.shape)
        chosen = jax.random.bernoulli(key, shape=levels.shape[:-1])
        mirrored = jnp.where(chosen[..., None, None, None], pictures[..., ::-1, :], pictures)
        return mirrored.reshape(levels.shape)

    def _numbers(self, levels: Array, key: Key) -> Array:
        within = jax.random.uniform(key, levels.shape, jnp.result_type(float), maxval=LARGEST)
        return 2 * (levels + self.dequantise * within) / (255 + self.dequantise) - 1
