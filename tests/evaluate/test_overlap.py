"""The overlap of values of f against closed forms, its null, and values that differ.

Seeds are fixed, so that the statistical tests pass or fail for good; the rates they state are those
at which a correct implementation would fail over the choice of those seeds.
"""

import numpy as np
import pytest
from scipy.stats import binom, norm

from fenchel.errors import InputError
from fenchel.evaluate import energy_overlap


def normal(n, seed, mean=0.0, spread=1.0):
    return mean + spread * np.random.default_rng(seed).normal(size=n)


def true_overlap(mean, spread):
    grid = np.linspace(-20.0, 20.0, 400_001)
    return np.minimum(norm.pdf(grid), norm.pdf(grid, mean, spread)).sum() * (grid[1] - grid[0])


@pytest.mark.parametrize(
    ("mean", "spread"), [(0.5, 1.0), (2.0, 1.0), (0.0, 0.4), (0.0, 3.0), (1.0, 2.0)]
)
@pytest.mark.parametrize("n", [20_000, 5_000])
def test_overlap_is_that_of_the_densities(mean, spread, n):
    """Also where one set is the narrower, and no single threshold is the best guess."""
    result = energy_overlap(normal(n, 0, mean, spread), normal(20_000, 1))
    assert result.overlap == pytest.approx(true_overlap(mean, spread), abs=0.025)


def test_overlap_of_one_distribution_is_nearly_one():
    """Bins alone would make it 0.91 here; what is left below 1 is noise, clipped from above."""
    results = [energy_overlap(normal(500, 2 * run), normal(800, 2 * run + 1)) for run in range(100)]
    overlaps = np.array([result.overlap for result in results])
    assert overlaps.mean() > 0.98
    assert overlaps.max() == 1.0


@pytest.fixture(scope="module")
def nulls():
    return [energy_overlap(normal(90, 2 * run), normal(130, 2 * run + 1)) for run in range(200)]


def test_difference_has_its_standard_error(nulls):
    """The mean of z² is within 4 standard errors of Student's, 1.01: 1 false alarm in 16,000."""
    z = np.array([null.difference / null.standard_error for null in nulls])
    assert abs(np.mean(z**2) - 1.01) < 4.0 * np.sqrt(2.0 / len(nulls))


def test_difference_is_positive_where_samples_are_higher():
    assert energy_overlap(normal(100, 0, mean=3.0), normal(100, 1)).difference > 2.0


def test_level_of_the_kolmogorov_smirnov_test(nulls):
    """Rejections at 10% of 200 nulls are at most binomial: a false alarm in 1 of 1,000."""
    rejections = np.sum([null.ks_p_value <= 0.1 for null in nulls])
    assert 5 < rejections <= binom.ppf(0.999, len(nulls), 0.1)


@pytest.mark.parametrize(("mean", "spread"), [(0.6, 1.0), (0.0, 0.5)])
def test_wrong_samples_are_seen(mean, spread):
    result = energy_overlap(normal(400, 0, mean, spread), normal(400, 1))
    assert result.ks_p_value < 1e-4
    assert result.overlap < 0.85


def test_sets_apart_do_not_overlap():
    assert energy_overlap(normal(400, 0, mean=100.0), normal(700, 1)).overlap < 0.01


def test_overlap_depends_on_the_order_only():
    x, y = normal(300, 0, mean=0.5), normal(400, 1)
    overlap = energy_overlap(x, y).overlap
    assert energy_overlap(np.exp(3.0 * x), np.exp(3.0 * y)).overlap == overlap
    stray = x.copy()
    stray[np.argmax(x)] = 1e9
    assert energy_overlap(stray, y).overlap == overlap


def test_values_may_repeat():
    """f of a small discrete model takes few values: here 0 and 1, in other shares."""
    x, y = np.arange(4_000) % 10 < 3, np.arange(3_000) % 10 < 5
    rng = np.random.default_rng(0)
    result = energy_overlap(rng.permutation(x), rng.permutation(y))
    assert result.overlap == pytest.approx(0.8, abs=0.03)
    assert energy_overlap(np.ones(50), np.ones(60)).overlap == 1.0


@pytest.mark.parametrize(
    ("values", "message"),
    [
        (np.zeros((9, 2)), "one number a point"),
        (np.zeros(7), "8 or more"),
        (np.full(9, -np.inf), "not finite"),
    ],
)
def test_refuses_unusable_values(values, message):
    for arguments in ((values, np.zeros(9)), (np.zeros(9), values)):
        with pytest.raises(InputError, match=message):
            energy_overlap(*arguments)
