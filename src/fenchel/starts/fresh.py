"""Where chains begin that go on in a replay buffer."""

from abc import abstractmethod

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from fenchel.shapes import Array, Key, Point


class AbstractFresh(eqx.Module):
    """A new beginning; `point` is a data point, for those that keep some of it."""

    @abstractmethod
    def __call__(self, point: Point, key: Key) -> Point:
        """Where one chain begins."""


class Noise(AbstractFresh):
    """Normal with deviation `scale`; or, where points are kept in a finite `box`, uniform in it,
    since much of the other would begin on its walls."""

    scale: float = eqx.field(static=True, default=2.0)
    box: tuple[float, float] | None = eqx.field(static=True, default=None)

    def __call__(self, point: Point, key: Key) -> Point:
        if self.box is None or not np.isfinite(self.box).all():
            return self.scale * jax.random.normal(key, point.shape, point.dtype)
        return jax.random.uniform(key, point.shape, point.dtype, *self.box)


class Occluded(AbstractFresh):
    """A data point of which one of the `masks` hides a part behind noise.

    f so learns which part goes with which: chains that end with halves of two different digits
    come from here, and are told from data. Completion begins at such points.
    """

    noise: Noise
    masks: Array  # (k, d), true where hidden

    def __call__(self, point: Point, key: Key) -> Point:
        mask_key, noise_key = jax.random.split(key)
        hidden = jax.random.choice(mask_key, self.masks)
        return jnp.where(hidden, self.noise(point, noise_key), point)
