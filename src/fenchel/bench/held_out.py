"""The points that the paper holds out, shared out as its generators do.

They are not independent: every arm, circle or blade has its equal share, and angles of circles and
moons lie on a regular grid. Such points are closer to their distribution than independent ones,
and so lower every squared MMD against them, the truth's own as well. They serve the paper's
protocol alone; z-scores compare independent points with each other.
"""

from collections.abc import Callable

import numpy as np

from fenchel.data import TOYS
from fenchel.data import toy_samplers as sampler

Draw = Callable[[int, np.random.Generator], np.ndarray]


def held_out(name: str, n: int, seed: int) -> np.ndarray:
    """Of that toy; independent points where the paper's generator has them."""
    return EVEN.get(name, TOYS[name].draw)(n, np.random.default_rng(seed))


def shares(n: int, parts: int) -> np.ndarray:
    """To which of the parts each of n points belongs, as evenly as can be."""
    return np.arange(n) * parts // n


def two_spirals(n: int, rng: np.random.Generator) -> np.ndarray:
    arm = sampler.jittered_arm(-(-n // 2), rng)
    return sampler.two_spirals_along(np.concatenate([arm, -arm])[:n], rng)


def circles(n: int, rng: np.random.Generator) -> np.ndarray:
    which = shares(n, 2)
    return sampler.circles_along(_grid(which, 2 * np.pi, endpoint=False), which, rng)


def moons(n: int, rng: np.random.Generator) -> np.ndarray:
    which = shares(n, 2)
    return sampler.moons_along(_grid(which, np.pi, endpoint=True), which, rng)


def pinwheel(n: int, rng: np.random.Generator) -> np.ndarray:
    return sampler.pinwheel_of(sampler.one_blade(n, rng), shares(n, sampler.PINWHEEL_BLADES))


def spiral(n: int, rng: np.random.Generator) -> np.ndarray:
    return sampler.spiral_on(shares(n, sampler.SPIRAL_ARMS), rng)


EVEN: dict[str, Draw] = {
    "2spirals": two_spirals,
    "circles": circles,
    "moons": moons,
    "pinwheel": pinwheel,
    "Spiral": spiral,
}


def _grid(which: np.ndarray, high: float, endpoint: bool) -> np.ndarray:
    """Angles that are evenly spaced on each part."""
    counts = np.bincount(which)
    return np.concatenate([np.linspace(0, high, count, endpoint=endpoint) for count in counts])
