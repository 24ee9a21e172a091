"""The toys are what they say: independent draws, and densities that agree with them.

Every statistical test fails by chance at a rate of 1e-4 over seeds (the seeds are fixed, so a pass
stays a pass), and each kind has a negative control that it must reject.
"""

import numpy as np
import pytest
from scipy import stats

from fenchel.data import TOYS, toy
from fenchel.errors import InputError

FAILURE_RATE = 1e-4
SEED = 20190917
WITH_DENSITY = [name for name, each in TOYS.items() if each.log_density is not None]
BOUNDED = ["Uniform", "Cosine", "checkerboard"]
PAPER = ["2spirals", "Banana", "circles", "cos", "Cosine", "Funnel", "swissroll", "line"]
PAPER += ["moons", "Multiring", "pinwheel", "Ring", "Spiral", "Uniform"]

EVEN = np.linspace(-8, 8, 33)  # edges fall on those of Uniform, Cosine and checkerboard
FINE = np.linspace(-4.2, 4.2, 25)
WIDE = np.linspace(-10, 15, 51)


def towards_zero(smallest: float, largest: float, count: int) -> np.ndarray:
    """Edges that crowd together geometrically at 0, for a density with a spike there."""
    half = np.geomspace(smallest, largest, count)
    return np.concatenate([-half[::-1], [0.0], half])


# Cells fine enough for five nodes each to integrate the density exactly; elsewhere EVEN x EVEN.
EDGES = {
    "2spirals": (FINE, FINE),
    "swissroll": (FINE, FINE),
    "moons": (FINE, FINE),
    "Banana": (np.linspace(-10, 10, 41), np.linspace(-8, 32, 61)),
    "Cosine": (EVEN, WIDE),
    # The funnel's spread bends at x = -log 10 and falls to 1/400 at x = 12.
    "Funnel": (
        np.concatenate([np.linspace(-10, -np.log(10), 16), np.linspace(-2.2, 12, 29)]),
        towards_zero(1e-3, 20, 25),
    ),
}


def cell_nodes(edges: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Five Gauss-Legendre nodes in every cell, and their weights, each (cells, 5)."""
    nodes, weights = np.polynomial.legendre.leggauss(5)
    half = np.diff(edges)[:, None] / 2
    return edges[:-1, None] + half * (nodes + 1), half * weights


def cell_probabilities(name: str, edges: tuple[np.ndarray, np.ndarray]) -> np.ndarray:
    (x, x_weights), (y, y_weights) = (cell_nodes(each) for each in edges)
    grid = np.stack(np.meshgrid(x.ravel(), y.ravel(), indexing="ij"), axis=-1)
    density = np.exp(TOYS[name].log_density(grid.reshape(-1, 2)))
    by_cell = density.reshape(*x.shape, *y.shape)
    return np.einsum("iajb,ia,jb->ij", by_cell, x_weights, y_weights)


@pytest.fixture(scope="module")
def probabilities():
    """Each density over its cells, computed once, since the quadratures are the slow part."""
    known: dict[str, np.ndarray] = {}

    def of(name: str) -> np.ndarray:
        if name not in known:
            known[name] = cell_probabilities(name, EDGES.get(name, (EVEN, EVEN)))
        return known[name]

    return of


def chi_square_p(points: np.ndarray, edges, cells: np.ndarray) -> float:
    """Chance of a fit no better than this one. Cells with under ten expected points are pooled."""
    observed = np.histogram2d(*points.T, bins=edges)[0].ravel()
    expected = len(points) * cells.ravel()
    order = np.argsort(-expected)
    own = order[: int((expected >= 10).sum()) - 1]  # the last one is pooled with the rest
    rest = len(points) - np.array([observed[own].sum(), expected[own].sum()])
    o, e = np.append(observed[own], rest[0]), np.append(expected[own], rest[1])
    return float(stats.chi2.sf(((o - e) ** 2 / e).sum(), len(own)))


def test_registry_has_the_papers_sets_and_two_more():
    assert sorted(TOYS) == sorted([*PAPER, "8gaussians", "checkerboard"])
    assert all(name == each.name and each.description for name, each in TOYS.items())
    assert {name for name, each in TOYS.items() if each.thin} == {"line", "cos"}


@pytest.mark.parametrize("name", TOYS)
def test_draws_follow_their_seed(name):
    first, again, other = (toy(name).sample(500, seed) for seed in (3, 3, 4))
    assert first.shape == (500, 2)
    assert first.dtype == np.float64
    np.testing.assert_array_equal(first, again)
    assert not np.isin(first, other).any()
    assert len(np.unique(first, axis=0)) == 500


def order_p(points: np.ndarray) -> float:
    """Smallest p-value, corrected for four tests, of the halves' equality and of no trend."""
    first, second = np.array_split(points, 2)
    same = [stats.ks_2samp(first[:, j], second[:, j]).pvalue for j in range(2)]
    lagged = [stats.spearmanr(points[:-1, j], points[1:, j]).pvalue for j in range(2)]
    return 4 * min(*same, *lagged)


@pytest.mark.parametrize("name", TOYS)
def test_draws_come_in_no_order(name):
    points = toy(name).sample(4_000, SEED)
    assert order_p(points) > FAILURE_RATE
    assert order_p(points[np.argsort(points[:, 0])]) < FAILURE_RATE


@pytest.mark.parametrize("name", TOYS)
def test_seeds_draw_from_one_distribution(name):
    first, second = (toy(name).sample(4_000, seed) for seed in (SEED, SEED + 1))
    p = [stats.ks_2samp(first[:, j], second[:, j]).pvalue for j in range(2)]
    control = [stats.ks_2samp(first[:, j], second[:, j] + 0.5).pvalue for j in range(2)]
    assert 2 * min(p) > FAILURE_RATE
    assert max(control) < FAILURE_RATE


@pytest.mark.parametrize("name", WITH_DENSITY)
def test_density_integrates_to_one(name, probabilities):
    assert probabilities(name).sum() == pytest.approx(1, abs=1e-3)


@pytest.mark.parametrize("name", WITH_DENSITY)
def test_density_agrees_with_draws(name, probabilities):
    edges, points = EDGES.get(name, (EVEN, EVEN)), toy(name).sample(50_000, SEED)
    p = chi_square_p(points, edges, probabilities(name))
    # Too good a fit is a failure as well: it is what points on a regular grid would show.
    assert FAILURE_RATE / 2 < p < 1 - FAILURE_RATE / 2
    assert chi_square_p(1.03 * points, edges, probabilities(name)) < FAILURE_RATE


@pytest.mark.parametrize(("name", "other"), [("Ring", "Multiring"), ("moons", "circles")])
def test_density_rejects_another_toys_draws(name, other, probabilities):
    edges = EDGES.get(name, (EVEN, EVEN))
    assert chi_square_p(toy(other).sample(2_000, SEED), edges, probabilities(name)) < FAILURE_RATE


@pytest.mark.parametrize("name", BOUNDED)
def test_density_vanishes_outside_the_support(name):
    assert toy(name).log_density(np.array([[9.0, 0.0], [-4.5, 0.5]])).tolist() == [-np.inf, -np.inf]


@pytest.mark.parametrize("name", [name for name in WITH_DENSITY if name not in BOUNDED])
def test_density_is_finite_in_the_far_tails_and_at_the_centre(name):
    values = toy(name).log_density(np.array([[0.0, 0.0], [30.0, -40.0], [-200.0, 100.0]]))
    assert np.isfinite(values).all()
    assert values[0] > values[1]


def test_density_of_no_points_is_empty():
    assert all(TOYS[name].log_density(np.empty((0, 2))).shape == (0,) for name in WITH_DENSITY)


def test_thin_sets_lie_on_their_curves():
    line, curve = toy("line").sample(1_000, 0), toy("cos").sample(1_000, 0)
    np.testing.assert_array_equal(line[:, 0], line[:, 1])
    np.testing.assert_array_equal(curve[:, 1], 2.5 * np.sin(curve[:, 0]))
    for x in (line[:, 0], curve[:, 0]):
        assert stats.kstest(x, stats.uniform(-2.5, 5).cdf).pvalue > FAILURE_RATE


def test_pinwheel_has_its_size_and_five_equal_blades():
    """No density is known, so the mean square and the blade of each point are checked."""
    points = toy("pinwheel").sample(20_000, SEED) / 2
    squared = (points**2).sum(axis=1)
    z = (squared - 1.1).mean() / (squared.std() / np.sqrt(len(squared)))
    assert abs(z) < stats.norm.isf(FAILURE_RATE / 2)  # E(along² + across²) = 1 + 0.09 + 0.01
    radius = np.sqrt(squared)
    # `across` hardly alters the radius, so the angle less 0.25 exp(radius) shows the blade.
    angle = np.arctan2(points[:, 1], points[:, 0]) - 0.25 * np.exp(radius)
    blades = np.bincount(np.rint(angle * 5 / (2 * np.pi)).astype(int) % 5, minlength=5)
    assert stats.chisquare(blades).pvalue > FAILURE_RATE


@pytest.mark.parametrize(
    ("asked", "suggested"),
    [
        ("Moons", "moons"),
        ("cosine", "Cosine"),
        ("COS", "cos"),
        ("ring", "Ring"),
        ("multi-ring", "Multiring"),
        ("swiss_roll", "swissroll"),
        ("8gaussian", "8gaussians"),
    ],
)
def test_unknown_name_suggests_the_nearest(asked, suggested):
    with pytest.raises(InputError, match=f"no toy data set '{asked}'; did you mean '{suggested}'"):
        toy(asked)


def test_name_far_from_all_lists_them():
    with pytest.raises(InputError, match=r"there are 2spirals, Banana, .*, checkerboard\."):
        toy("mnist")


def test_no_points_cannot_be_asked_for():
    with pytest.raises(InputError, match="0 points of moons were asked for; ask for at least one"):
        toy("moons").sample(0, seed=1)
