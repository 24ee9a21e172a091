"""Pictures of a model while it learns: the same latent variables, as they are drawn by then."""

from pathlib import Path

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from fenchel.data import Pictures, Standardiser
from fenchel.report.pictures.grid import grid, save_picture
from fenchel.shapes import Array
from fenchel.train import TrainState

SHOWN = 64
GALLERY_PURPOSE = 1_487  # sets its draws apart from the run's


class Gallery:
    """Writes a grid of samples for each iteration that it is shown."""

    def __init__(self, folder: Path, shape: tuple[int, int, int], scaling: Standardiser):
        self._folder, self._shape, self._scaling = folder, shape, scaling

    def hang(self, state: TrainState, iteration: int) -> Path:
        """The grid of the model's averages as they are now."""
        self._folder.mkdir(parents=True, exist_ok=True)
        drawn = np.asarray(_drawn(state, len(self._scaling.mean)), np.float64)
        pictures = Pictures.of_rows(self._scaling.inverse(drawn), self._shape)
        path = self._folder / f"samples-{iteration:07d}.png"
        save_picture(grid(pictures.x), path)
        return path


@eqx.filter_jit
def _drawn(state: TrainState, dim: int) -> Array:
    key = jax.random.fold_in(state.key, GALLERY_PURPOSE)
    settle_key, draw_key = jax.random.split(key)
    f, sampler = state.handed_out(settle_key)
    points = jnp.zeros((SHOWN, dim))
    return sampler.draw(f, points, state.sampler_state, draw_key)[0].x
