"""The paper's protocol: after every epoch 1,000 samples against 1,000 held-out points.

All runs are drawn from and judged at once, on the device. The smallest value of a run is what the
paper prints; it is below zero for a perfect sampler, and says how often one looked. Samplers with
an exact density are looked at twice: as they are, and corrected by their weights.
"""

from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from fenchel.bench.held_out import held_out
from fenchel.bench.jobs import Prepared
from fenchel.bench.together import finite
from fenchel.bench.truth import PAPER_SIZE, Truth
from fenchel.drawing import TUNING_POINTS, Drawing, resampled
from fenchel.evaluate.mmd import mmds_squared
from fenchel.samplers import Tuned
from fenchel.shapes import Array, Key, Points, PyTree
from fenchel.train import TrainState

HELD_OUT_SEED = 3_000_017  # far from the seeds that anybody trains with
LOOK_PURPOSE, POOL_PURPOSE = 6_113, 6_121  # set the draws apart from those of training


class Looking:
    """Records the MMD of every run; chains keep their step sizes from epoch to epoch."""

    def __init__(self, prepared: list[Prepared], truths: dict[str, Truth]):
        self._prepared = prepared
        self._points = jnp.stack([each.points[:PAPER_SIZE] for each in prepared])
        self._gammas = np.array([truths[each.job.set].gamma for each in prepared])
        self._held_out = np.stack(
            [held_out(each.job.set, PAPER_SIZE, HELD_OUT_SEED + each.job.seed) for each in prepared]
        )

    def __call__(self, state: TrainState) -> tuple[TrainState, dict[str, Any]]:
        keys = _keys(state, LOOK_PURPOSE)
        if isinstance(state.sampler, Tuned) and not jnp.any(state.sampler_state.log_factor):
            settled = _settled(state, self._points[:, :TUNING_POINTS], keys)
            state = state._replace(sampler_state=settled)
        x, sampler_state = _draw(state, self._points, keys)
        seen = {"mmd": finite(self._mmds(x))}
        if state.sampler.exact:
            corrected = _corrected(state, self._points, _keys(state, POOL_PURPOSE))
            seen["mmd_corrected"] = finite(self._mmds(corrected))
        return state._replace(sampler_state=sampler_state), seen

    def _mmds(self, x: Array) -> np.ndarray:
        in_f_units = np.asarray(x, np.float64)
        drawn = [p.standardiser.inverse(z) for p, z in zip(self._prepared, in_f_units, strict=True)]
        return mmds_squared(np.stack(drawn), self._held_out, self._gammas)


@eqx.filter_jit
def _keys(state: TrainState, purpose: int) -> Key:
    def one(key: Key, iteration: Array) -> Key:
        return jax.random.fold_in(jax.random.fold_in(key, purpose), iteration)

    return jax.vmap(one)(state.key, state.iteration)


@eqx.filter_jit
def _draw(state: TrainState, points: Array, keys: Key) -> tuple[Array, PyTree]:
    def one(state: TrainState, points: Points, key: Key) -> tuple[Points, PyTree]:
        f, sampler = state.averaged()
        particles, sampler_state = sampler.draw(f, points, state.sampler_state, key)
        return particles.x, sampler_state

    return eqx.filter_vmap(one)(state, points, keys)


@eqx.filter_jit
def _corrected(state: TrainState, points: Array, keys: Key) -> Array:
    def one(state: TrainState, points: Points, key: Key) -> Points:
        drawing = Drawing(*state.averaged(), state.sampler_state, points)
        return resampled(drawing, points.shape[0], key)[0]

    return eqx.filter_vmap(one)(state, points, keys)


@eqx.filter_jit
def _settled(state: TrainState, points: Array, keys: Key) -> PyTree:
    def one(state: TrainState, points: Points, key: Key) -> PyTree:
        f, sampler = state.averaged()
        return sampler.settled(f, points, state.sampler_state, key)  # type: ignore[attr-defined]

    return eqx.filter_vmap(one)(state, points, keys)
