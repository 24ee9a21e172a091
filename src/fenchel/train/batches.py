"""Batches of the data, drawn by key: which one an iteration sees depends on nothing else."""

from abc import abstractmethod

import equinox as eqx
import jax

from fenchel.shapes import Array, Key, Points


class AbstractBatches(eqx.Module):
    """Where the training loop gets its data from."""

    @abstractmethod
    def draw(self, count: int, key: Key) -> Array:
        """(count, size, d): `count` batches."""


class Batches(AbstractBatches):
    """Uniform draws with replacement, on the device, so that the whole loop can be compiled.

    `noise` is the noise floor: Gaussian noise of this standard deviation (on standardised data),
    fresh in every batch. Data on a curve, rounded data and repeated rows have no density; with it
    they do, and the likelihood cannot run off to infinity.
    """

    data: Points
    size: int = eqx.field(static=True, default=256)
    noise: float = eqx.field(static=True, default=0.0)

    def draw(self, count: int, key: Key) -> Array:
        """(count, size, d)."""
        row_key, noise_key = jax.random.split(key)
        rows = jax.random.randint(row_key, (count, self.size), 0, self.data.shape[0])
        points = self.data[rows]
        return points + self.noise * jax.random.normal(noise_key, points.shape, points.dtype)
