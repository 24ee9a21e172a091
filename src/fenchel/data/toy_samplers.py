"""How each toy data set is drawn: (n, rng) to n independent points, shape (n, 2).

The capitalised sets of the registry follow the deep-kexpfam family, the lower-case ones ffjord's.
Every point draws its own angle, arm or cell. A regular grid of angles or equal class counts would
make the points dependent, and so bias any two-sample test that assumes they are not.
"""

import numpy as np
from numpy.typing import NDArray

Points = NDArray[np.float64]
Rng = np.random.Generator

TWO_SPIRALS_TURN = 3 * np.pi
SWISSROLL_RANGE = (1.5 * np.pi, 4.5 * np.pi)
MULTIRING_RADII = np.array([1.0, 3.0, 5.0])
RING_STD = 0.2
PINWHEEL_BLADES = 5
SPIRAL_ARMS = 3


def polar(radius: NDArray, angle: NDArray) -> Points:
    """Points at the given radii and angles, the coordinate as the last axis."""
    return np.stack([radius * np.cos(angle), radius * np.sin(angle)], axis=-1)


def upper_moon(t: NDArray) -> Points:
    return np.stack([np.cos(t), np.sin(t)], axis=-1)


def lower_moon(t: NDArray) -> Points:
    return np.stack([1 - np.cos(t), 0.5 - np.sin(t)], axis=-1)


def place_moons(points: NDArray) -> Points:
    """From the unit moons to the size and place in which they are published."""
    return 2 * points + np.array([-1.0, -0.2])


def two_spirals_arm(s: NDArray) -> Points:
    return np.stack([-s * np.cos(s), s * np.sin(s)], axis=-1)


def spiral_arm(a: NDArray, arm: NDArray | int) -> Points:
    return polar(1.5 * a, a + 2 * np.pi * arm / SPIRAL_ARMS)


def spiral_spread(a: NDArray) -> NDArray:
    """The standard deviation about the arm, from its root to its tip."""
    return 0.1 + 0.5 * a / np.pi


def eight_centres() -> Points:
    return polar(np.full(8, 4.0), np.arange(8) * np.pi / 4)


def _noise(n: int, std: float, rng: Rng) -> Points:
    return std * rng.standard_normal((n, 2))


def _coin(n: int, rng: Rng) -> NDArray:
    return rng.integers(2, size=n)


def _rings(radius: NDArray | float, n: int, rng: Rng) -> Points:
    return polar(rng.normal(radius, RING_STD, n), rng.uniform(0, 2 * np.pi, n))


def two_spirals(n: int, rng: Rng) -> Points:
    arm = jittered_arm(n, rng)
    sign = 2 * _coin(n, rng) - 1
    return two_spirals_along(sign[:, None] * arm, rng)


def jittered_arm(n: int, rng: Rng) -> Points:
    """Points of the first arm; those of the second are their images through the origin."""
    # The square root spreads the points about evenly along an arm that lengthens as it turns.
    arm = two_spirals_arm(TWO_SPIRALS_TURN * np.sqrt(rng.random(n)))
    return arm + rng.uniform(0, 0.5, (n, 2))


def two_spirals_along(arms: Points, rng: Rng) -> Points:
    return arms / 3 + _noise(len(arms), 0.1, rng)


def banana(n: int, rng: Rng) -> Points:
    x = rng.normal(0, 2, n)
    return np.stack([x, 0.2 * (x**2 - 4) + rng.standard_normal(n)], axis=-1)


def circles(n: int, rng: Rng) -> Points:
    which = _coin(n, rng)
    return circles_along(rng.uniform(0, 2 * np.pi, n), which, rng)


def circles_along(angle: NDArray, which: NDArray, rng: Rng) -> Points:
    """At these angles of the outer circle (1) or the inner one (0)."""
    return 3 * (polar(np.where(which == 1, 1.0, 0.5), angle) + _noise(len(angle), 0.08, rng))


def sine_curve(n: int, rng: Rng) -> Points:
    x = rng.uniform(-2.5, 2.5, n)
    return np.stack([x, 2.5 * np.sin(x)], axis=-1)


def cosine_band(n: int, rng: Rng) -> Points:
    x = rng.uniform(-4, 4, n)
    return np.stack([x, 3 * np.cos(2 * x) + rng.standard_normal(n)], axis=-1)


def funnel(n: int, rng: Rng) -> Points:
    x = rng.normal(0, 2, n)
    variance = np.minimum(np.exp(-x), 10)
    return np.stack([x, np.sqrt(variance) * rng.standard_normal(n)], axis=-1)


def swissroll(n: int, rng: Rng) -> Points:
    t = rng.uniform(*SWISSROLL_RANGE, n)
    return (polar(t, t) + _noise(n, 1.0, rng)) / 5


def line(n: int, rng: Rng) -> Points:
    x = rng.uniform(-2.5, 2.5, n)
    return np.stack([x, x], axis=-1)


def moons(n: int, rng: Rng) -> Points:
    t = rng.uniform(0, np.pi, n)
    return moons_along(t, _coin(n, rng), rng)


def moons_along(t: NDArray, which: NDArray, rng: Rng) -> Points:
    """At these angles of the upper moon (1) or the lower one (0)."""
    arcs = np.where(which[:, None] == 1, upper_moon(t), lower_moon(t))
    return place_moons(arcs + _noise(len(t), 0.1, rng))


def multiring(n: int, rng: Rng) -> Points:
    weights = MULTIRING_RADII / MULTIRING_RADII.sum()  # so that each ring is equally dense
    return _rings(rng.choice(MULTIRING_RADII, size=n, p=weights), n, rng)


def pinwheel(n: int, rng: Rng) -> Points:
    blade = one_blade(n, rng)
    return pinwheel_of(blade, rng.integers(PINWHEEL_BLADES, size=n))


def one_blade(n: int, rng: Rng) -> Points:
    """Along and across it, before it is twisted."""
    return np.stack([1 + 0.3 * rng.standard_normal(n), 0.1 * rng.standard_normal(n)], axis=-1)


def pinwheel_of(blade: Points, which: NDArray) -> Points:
    """Each point of one blade on one of the five."""
    along, across = blade.T
    twist = 2 * np.pi * which / PINWHEEL_BLADES + 0.25 * np.exp(along)
    # Turning (along, across) by `twist` is the same as adding `twist` to its polar angle.
    return 2 * polar(np.hypot(along, across), np.arctan2(across, along) + twist)


def ring(n: int, rng: Rng) -> Points:
    return _rings(5.0, n, rng)


def spiral(n: int, rng: Rng) -> Points:
    return spiral_on(rng.integers(SPIRAL_ARMS, size=n), rng)


def spiral_on(arms: NDArray, rng: Rng) -> Points:
    a = rng.uniform(0, np.pi, len(arms))
    spread = spiral_spread(a)[:, None] * rng.standard_normal((len(arms), 2))
    return spiral_arm(a, arms) + spread


def uniform(n: int, rng: Rng) -> Points:
    return rng.uniform(-3, 3, (n, 2))


def eight_gaussians(n: int, rng: Rng) -> Points:
    centres = eight_centres()[rng.integers(8, size=n)]
    return (centres + _noise(n, 0.5, rng)) / np.sqrt(2)


def checkerboard(n: int, rng: Rng) -> Points:
    x = rng.uniform(-2, 2, n)
    y = rng.random(n) - 2 * _coin(n, rng) + np.floor(x) % 2
    return 2 * np.stack([x, y], axis=-1)
