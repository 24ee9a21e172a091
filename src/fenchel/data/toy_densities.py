"""The true log densities of the toy data sets, each from (n, 2) points to n values.

A set that is a curve plus Gaussian noise has the density `∫ w(t) N(x; c(t), σ²) dt`. Gauss-Legendre
nodes turn the integral into a mixture of Gaussians; with nodes closer than σ the integrand is so
smooth that the error is below 1e-6 wherever a sample could fall, and small against the value itself
in the far tails. Outside the support the log density is -inf.
"""

from collections.abc import Callable
from functools import cache

import numpy as np
from numpy.typing import NDArray
from scipy.special import i0e, log_ndtr, logsumexp

from fenchel.data.toy_samplers import (
    MULTIRING_RADII,
    RING_STD,
    SPIRAL_ARMS,
    SWISSROLL_RANGE,
    TWO_SPIRALS_TURN,
    eight_centres,
    lower_moon,
    place_moons,
    polar,
    spiral_arm,
    spiral_spread,
    two_spirals_arm,
    upper_moon,
)

LOG_2PI = np.log(2 * np.pi)
_BLOCK = 1024  # points handled at a time: a block times the nodes stays within a few megabytes


def _log_normal(x: NDArray, mean: NDArray | float, std: NDArray | float) -> NDArray:
    return -0.5 * ((x - mean) / std) ** 2 - np.log(std) - 0.5 * LOG_2PI


@cache  # finding the nodes takes longer than using them on a small batch
def _nodes(low: float, high: float, count: int) -> tuple[NDArray, NDArray]:
    """Gauss-Legendre nodes on [low, high], and their log weights."""
    nodes, weights = np.polynomial.legendre.leggauss(count)
    half = (high - low) / 2
    return low + half * (nodes + 1), np.log(half * weights)


def _in_blocks(log_density: Callable[[NDArray], NDArray], x: NDArray) -> NDArray:
    blocks = np.array_split(x, max(1, -(-len(x) // _BLOCK)))
    return np.concatenate([log_density(block) for block in blocks])


def _gaussian_mixture(
    x: NDArray, centres: NDArray, log_weights: NDArray, std: NDArray | float
) -> NDArray:
    """Log density of round Gaussians at (m, 2) `centres`, `std` one number or one per centre."""
    log_heights = log_weights - 2 * np.log(std) - LOG_2PI

    def log_density(block: NDArray) -> NDArray:
        squares = sum((block[:, [j]] - centres[:, j]) ** 2 for j in range(2))
        return logsumexp(log_heights - squares / (2 * np.square(std)), axis=1)

    return _in_blocks(log_density, x)


def _log_uniform_plus_normal(y: NDArray, width: float, std: float) -> NDArray:
    """Log density at y of U(0, width) + N(0, std²): a difference of two normal tails.

    The density is symmetric about width / 2; folding y onto the lower side keeps both tails small,
    so that their difference keeps its digits, however far away y is.
    """
    folded = np.minimum(y, width - y)
    upper, lower = log_ndtr(folded / std), log_ndtr((folded - width) / std)
    return upper + np.log1p(-np.exp(lower - upper)) - np.log(width)


def _log_ring(x: NDArray, radius: float) -> NDArray:
    """Uniform angle, radius N(radius, RING_STD²); a negative radius is the opposite angle.

    Both signs are summed, so this is exact. It grows as 1/|x| at the centre itself, where the
    distance is kept above zero so that the value stays finite.
    """
    distance = np.maximum(np.hypot(x[:, 0], x[:, 1]), np.finfo(float).tiny)
    along = np.logaddexp(
        _log_normal(distance, radius, RING_STD), _log_normal(distance, -radius, RING_STD)
    )
    return along - np.log(distance) - LOG_2PI


def two_spirals(x: NDArray) -> NDArray:
    s, log_weights = _nodes(0, TWO_SPIRALS_TURN, 320)
    log_weights = log_weights + np.log(s / TWO_SPIRALS_TURN**2)  # half of the density of s
    arm = two_spirals_arm(s) / 3

    def log_density(block: NDArray) -> NDArray:
        # The second arm is the first seen through the origin, and the noise is symmetric.
        arms = [
            log_weights
            + _log_uniform_plus_normal(side[:, [0]] - arm[:, 0], 1 / 6, 0.1)
            + _log_uniform_plus_normal(side[:, [1]] - arm[:, 1], 1 / 6, 0.1)
            for side in (block, -block)
        ]
        return logsumexp(np.concatenate(arms, axis=1), axis=1)

    return _in_blocks(log_density, x)


def banana(x: NDArray) -> NDArray:
    return _log_normal(x[:, 0], 0, 2) + _log_normal(x[:, 1], 0.2 * (x[:, 0] ** 2 - 4), 1)


def circles(x: NDArray) -> NDArray:
    """A circle of radius R blurred by N(0, σ²): N(r; R, σ²) I0(rR/σ²) exp(-rR/σ²) / (σ √2π)."""
    distance, std = np.hypot(x[:, 0], x[:, 1]), 3 * 0.08
    each = [
        _log_normal(distance, radius, std) + np.log(i0e(distance * radius / std**2))
        for radius in (1.5, 3.0)
    ]
    return np.logaddexp(*each) - np.log(2 * std) - 0.5 * LOG_2PI


def cosine_band(x: NDArray) -> NDArray:
    band = _log_normal(x[:, 1], 3 * np.cos(2 * x[:, 0]), 1) - np.log(8)
    return np.where(np.abs(x[:, 0]) <= 4, band, -np.inf)


def funnel(x: NDArray) -> NDArray:
    log_std = 0.5 * np.minimum(-x[:, 0], np.log(10))
    return _log_normal(x[:, 0], 0, 2) + _log_normal(x[:, 1] * np.exp(-log_std), 0, 1) - log_std


def swissroll(x: NDArray) -> NDArray:
    low, high = SWISSROLL_RANGE
    t, log_weights = _nodes(low, high, 256)
    return _gaussian_mixture(x, polar(t, t) / 5, log_weights - np.log(high - low), 0.2)


def moons(x: NDArray) -> NDArray:
    t, log_weights = _nodes(0, np.pi, 128)
    centres = place_moons(np.concatenate([upper_moon(t), lower_moon(t)]))
    return _gaussian_mixture(x, centres, np.tile(log_weights, 2) - LOG_2PI, 0.2)


def multiring(x: NDArray) -> NDArray:
    log_weights = np.log(MULTIRING_RADII / MULTIRING_RADII.sum())
    rings = np.stack([_log_ring(x, radius) for radius in MULTIRING_RADII], axis=1)
    return logsumexp(rings + log_weights, axis=1)


def ring(x: NDArray) -> NDArray:
    return _log_ring(x, 5.0)


def spiral(x: NDArray) -> NDArray:
    a, log_weights = _nodes(0, np.pi, 128)
    centres = np.concatenate([spiral_arm(a, arm) for arm in range(SPIRAL_ARMS)])
    log_weights = log_weights - np.log(np.pi * SPIRAL_ARMS)
    std = spiral_spread(np.tile(a, SPIRAL_ARMS))
    return _gaussian_mixture(x, centres, np.tile(log_weights, SPIRAL_ARMS), std)


def uniform(x: NDArray) -> NDArray:
    return np.where(np.abs(x).max(axis=1) <= 3, -np.log(36), -np.inf)


def eight_gaussians(x: NDArray) -> NDArray:
    log_weights = np.full(8, -np.log(8))
    return _gaussian_mixture(x, eight_centres() / np.sqrt(2), log_weights, 0.5 / np.sqrt(2))


def checkerboard(x: NDArray) -> NDArray:
    """Uniform on those squares of side 2 whose column and row numbers have an even sum."""
    square = np.floor(x / 2)
    inside = (square >= -2).all(axis=1) & (square < 2).all(axis=1)
    return np.where(inside & (square.sum(axis=1) % 2 == 0), -np.log(32), -np.inf)
