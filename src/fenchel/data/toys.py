"""The sixteen toy data sets in the plane, by name: how to draw each, and its true density."""

from collections.abc import Callable
from dataclasses import dataclass
from difflib import get_close_matches

import numpy as np
from numpy.typing import NDArray

from fenchel.data import toy_densities as density
from fenchel.data import toy_samplers as sampler
from fenchel.errors import InputError


@dataclass(frozen=True)
class Toy:
    """A distribution in the plane that can be sampled, and whose density is mostly known.

    A `thin` toy lies on a curve of zero width, where no density exists.
    """

    name: str
    description: str
    draw: Callable[[int, np.random.Generator], np.ndarray]
    log_density: Callable[[np.ndarray], np.ndarray] | None
    thin: bool = False

    def sample(self, n: int, seed: int) -> NDArray[np.float64]:
        """`n` independent points, shape (n, 2); the same seed gives the same points."""
        if n < 1:
            raise InputError(f"{n} points of {self.name} were asked for; ask for at least one.")
        return self.draw(n, np.random.default_rng(seed))


_ALL = [
    Toy("2spirals", "two noisy spiral arms", sampler.two_spirals, density.two_spirals),
    Toy("Banana", "a Gaussian bent along a parabola", sampler.banana, density.banana),
    Toy("circles", "two concentric noisy circles", sampler.circles, density.circles),
    Toy("cos", "the curve y = 2.5 sin x, of zero width", sampler.sine_curve, None, thin=True),
    Toy("Cosine", "a band around y = 3 cos 2x", sampler.cosine_band, density.cosine_band),
    Toy("Funnel", "a Gaussian that narrows with x", sampler.funnel, density.funnel),
    Toy("swissroll", "one long noisy spiral", sampler.swissroll, density.swissroll),
    Toy("line", "the segment y = x, of zero width", sampler.line, None, thin=True),
    Toy("moons", "two interleaved noisy half circles", sampler.moons, density.moons),
    Toy("Multiring", "rings of radius 1, 3 and 5", sampler.multiring, density.multiring),
    Toy("pinwheel", "five twisted blades", sampler.pinwheel, None),
    Toy("Ring", "one ring of radius 5", sampler.ring, density.ring),
    Toy("Spiral", "three arms that widen outwards", sampler.spiral, density.spiral),
    Toy("Uniform", "the square [-3, 3] x [-3, 3]", sampler.uniform, density.uniform),
    Toy(
        "8gaussians",
        "eight Gaussians on a circle",
        sampler.eight_gaussians,
        density.eight_gaussians,
    ),
    Toy(
        "checkerboard", "eight squares of a 4 x 4 board", sampler.checkerboard, density.checkerboard
    ),
]

TOYS: dict[str, Toy] = {each.name: each for each in _ALL}


def nearest_toy(name: str) -> str | None:
    """The toy's name closest to `name`, whatever its case, or None where nothing is close."""
    by_lower_case = {known.lower(): known for known in TOYS}
    close = get_close_matches(name.lower(), by_lower_case, n=1, cutoff=0.65)
    return by_lower_case[close[0]] if close else None


def toy(name: str) -> Toy:
    """The toy data set of that name; names are case-sensitive, as the paper's are."""
    if name in TOYS:
        return TOYS[name]
    nearest = nearest_toy(name)
    cure = f"did you mean {nearest!r}?" if nearest else f"there are {', '.join(TOYS)}."
    raise InputError(f"There is no toy data set {name!r}; {cure}")
