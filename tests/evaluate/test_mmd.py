"""The MMD against its definition, its null, and samples that are wrong on purpose.

The statistical tests use fixed seeds, so they pass or fail for good; the rates they state are
those at which a correct implementation would fail over the choice of those seeds.
"""

import numpy as np
import pytest

from fenchel.errors import InputError
from fenchel.evaluate import kernel_scale, mmd_squared, mmd_z, null_distribution
from fenchel.evaluate.mmd import POINTS_FOR_MEDIAN, ROWS_PER_BLOCK


def two_modes(n: int, seed: int) -> np.ndarray:
    rng = np.random.default_rng(seed)
    return rng.normal(size=(n, 2)) + 6.0 * rng.integers(0, 2, size=(n, 1))


def squared_distances(x, y):
    return ((x[:, None, :] - y[None, :, :]) ** 2).sum(axis=2)


def brute_force(x, y, gamma):
    def kernel(a, b):
        return np.exp(-gamma * squared_distances(a, b))

    def off_diagonal_mean(k):
        return k[~np.eye(len(k), dtype=bool)].mean()

    return (
        off_diagonal_mean(kernel(x, x))
        + off_diagonal_mean(kernel(y, y))
        - 2.0 * kernel(x, y).mean()
    )


@pytest.mark.parametrize(("n", "m", "d"), [(2, 3, 1), (50, 70, 2), (ROWS_PER_BLOCK + 7, 300, 5)])
def test_agrees_with_the_definition(n, m, d):
    rng = np.random.default_rng(0)
    x, y = rng.normal(size=(n, d)), rng.normal(size=(m, d)) + 0.3
    assert mmd_squared(x, y, 0.7) == pytest.approx(brute_force(x, y, 0.7), abs=1e-6)


def test_keeps_its_digits_far_from_the_origin():
    x, y = two_modes(300, 0), two_modes(300, 1)
    assert mmd_squared(x + 1e5, y + 1e5, 0.5) == pytest.approx(brute_force(x, y, 0.5), abs=1e-6)


def test_scale_is_the_papers_rule():
    points = two_modes(101, 0)
    pairs = squared_distances(points, points)[np.triu_indices(101, k=1)]
    assert kernel_scale(points) == pytest.approx(0.5 / np.median(pairs) / 0.1)


def test_scale_of_many_points_is_that_of_an_even_subset():
    points = two_modes(3 * POINTS_FOR_MEDIAN, 0)
    assert kernel_scale(points) == kernel_scale(points[::3])
    assert kernel_scale(points) == pytest.approx(kernel_scale(points[1::3]), rel=0.1)


def test_is_unbiased_under_the_null():
    """Within 4 standard errors of zero: a false alarm in 1 of 16,000."""
    null = null_distribution(two_modes, 100, 0.3, replicates=400, seed=0)
    assert abs(null.mean()) < 4.0 * null.std(ddof=1) / np.sqrt(len(null))
    assert (null < 0.0).any()


def test_z_is_about_standard_normal_under_the_null():
    """Each bound fails for about 1 choice of seeds in 1,000, by resampling 3,000 nulls."""
    runs, replicates = 60, 40
    results = [
        mmd_z(two_modes(150, 10_000 + run), two_modes, replicates=replicates, seed=run)
        for run in range(runs)
    ]
    z = np.array([result.z for result in results])
    assert abs(z.mean()) < 4.0 * np.sqrt((1.0 + 1.0 / replicates) / runs)
    assert 0.6 < z.std(ddof=1) < 1.9
    # z > 2 is a false alarm in 1 of 17, not in 1 of 44: the right tail is heavier than a normal's.
    assert (z > 2.0).mean() < 0.2


def test_result_is_reproducible_and_says_how_it_was_made():
    samples = two_modes(80, 3)
    result = mmd_z(samples, two_modes, replicates=10, seed=7)
    assert result == mmd_z(samples, two_modes, replicates=10, seed=7)
    assert (result.n, result.replicates) == (80, 10)
    assert result.z == pytest.approx((result.value - result.null_mean) / result.null_std)


@pytest.mark.parametrize("fault", ["shifted", "lost mode"])
def test_detects_wrong_samples(fault):
    """Negative control: the score must be bad where the samples are."""
    truth = two_modes(4_000, 1)
    samples = truth[:1_000] + 0.4 if fault == "shifted" else truth[truth[:, 0] < 3.0][:1_000]
    assert mmd_z(samples, two_modes, replicates=30, seed=0).z > 5.0


@pytest.mark.parametrize(
    ("x", "message"),
    [
        (np.zeros(5), "shape"),
        (np.zeros((1, 2)), "at least two points"),
        (np.full((5, 2), np.nan), "not finite"),
        (np.zeros((5, 3)), "columns"),
    ],
)
def test_refuses_unusable_points(x, message):
    with pytest.raises(InputError, match=message):
        mmd_squared(x, np.ones((5, 2)), 1.0)


def test_refuses_a_truth_that_sets_no_scale():
    with pytest.raises(InputError, match="median distance"):
        kernel_scale(np.ones((10, 2)))


def test_refuses_a_truth_that_ignores_its_seed():
    with pytest.raises(InputError, match="depend on its seed"):
        mmd_z(two_modes(50, 0), lambda n, seed: two_modes(n, 1), replicates=3, seed=0)


def test_refuses_a_single_replicate():
    with pytest.raises(InputError, match="at least 2 replicates"):
        mmd_z(two_modes(50, 0), two_modes, replicates=1, seed=0)
