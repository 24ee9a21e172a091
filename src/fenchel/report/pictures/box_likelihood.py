"""The log likelihood of pictures by importance sampling from uniform noise, and what it is worth.

With u uniform on [-1, 1]^d, log Z is about d log 2 + log mean exp f(u). A flat f has a likelihood
of exactly -d log 2, in the units of [-1, 1], which is 8 bits a dimension of bytes: what a picture
takes without any model. An f that varies by a few nats over the box cannot be far from that; the
paper's "about 2,100" nats for CIFAR-10 are near a flat f's -2,129, but for the sign.
"""

from typing import NamedTuple

import numpy as np

from fenchel.data import Standardiser
from fenchel.evidence import LogPartition, from_weights

DRAWS = 2_048
ENOUGH = 10  # effective draws, below which the estimate is that of a single one


class BoxLikelihood(NamedTuple):
    """A mean log likelihood with its log Z, both in the units of [-1, 1]."""

    nats: float
    standard_error: float
    bits: float | None  # a dimension, of the grey levels; none where these are single points
    log_partition: LogPartition

    @property
    def worth_nothing(self) -> str:
        """Why, in words; empty if there is no reason."""
        if self.bits is not None and self.bits < 0:
            return "fewer than no bits are impossible: the noise never meets where f is large"
        return self.log_partition.caution


def box_noise(scaling: Standardiser, seed: int) -> np.ndarray:
    """Draws of the proposal, (DRAWS, d) in the data's units."""
    columns = len(scaling.mean)
    return scaling.inverse(np.random.default_rng(seed).uniform(-1.0, 1.0, (DRAWS, columns)))


def box_likelihood(
    f_data: np.ndarray, f_noise: np.ndarray, scaling: Standardiser, cell: float
) -> BoxLikelihood:
    """From f at pictures, spread over cells of that width, and at draws of the proposal."""
    flat = flat_likelihood(scaling)
    z = from_weights(f_noise, "a uniform proposal", ENOUGH).moved(-flat)
    nats = float(f_data.mean()) - z.estimate
    error = float(np.hypot(f_data.std() / len(f_data) ** 0.5, z.standard_error))
    return BoxLikelihood(nats, error, _bits(nats, scaling, cell), z)


def flat_likelihood(scaling: Standardiser) -> float:
    """What a constant f has, in nats."""
    return -len(scaling.mean) * float(np.log(2.0))


def _bits(nats: float, scaling: Standardiser, cell: float) -> float | None:
    """Of a grey level's mass: the mean log density in its cell, and the cell, are a bound on it."""
    if cell == 0:
        return None
    columns = len(scaling.mean)
    of_cells = nats - scaling.log_scale + columns * np.log(cell)
    return float(-of_cells / (columns * np.log(2.0)))
