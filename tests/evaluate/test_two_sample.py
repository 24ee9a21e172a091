"""The permutation tests against their definition, their level, and samples that are wrong.

Seeds are fixed, so that the statistical tests pass or fail for good; the rates they state are those
at which a correct implementation would fail over the choice of those seeds.
"""

import numpy as np
import pytest
from scipy.stats import binom

from fenchel.errors import InputError
from fenchel.evaluate import aggregated_mmd_test, kernel_scale, mmd_squared, mmd_test
from fenchel.evaluate.two_sample import KERNELS, _shuffled_signs, relabelled_mmds


def gaussian(n, seed, d=2):
    return np.random.default_rng(seed).normal(size=(n, d))


def heavy_tailed(n, seed):
    return np.random.default_rng(seed).standard_t(2.0, size=(n, 2))


def brute_force_mmd(points, is_first, gamma):
    kernel = np.exp(-gamma * ((points[:, None] - points[None]) ** 2).sum(axis=2))
    pairs = ~np.eye(len(points), dtype=bool)
    first = np.outer(is_first, is_first) & pairs
    second = np.outer(~is_first, ~is_first) & pairs
    between = np.outer(is_first, ~is_first)
    return kernel[first].mean() + kernel[second].mean() - 2.0 * kernel[between].mean()


@pytest.mark.parametrize("rows_per_block", [4, 7, 512])
def test_every_permutation_has_the_mmd_of_its_labels(rows_per_block, monkeypatch):
    """In one block or in many, the last of them in part empty."""
    monkeypatch.setattr("fenchel.evaluate.signed_sums.ROWS_PER_BLOCK", rows_per_block)
    points, signs = gaussian(17, 0, d=3), _shuffled_signs(7, 10, 5, seed=1)
    mmds = relabelled_mmds(points, signs, 0.1, kernels=3)
    expected = [
        [brute_force_mmd(points, labels == 1.0, gamma) for labels in signs.T]
        for gamma in (0.1, 0.4, 1.6)
    ]
    np.testing.assert_allclose(mmds, expected, atol=1e-6)


def test_signs_are_shuffles_of_the_given_ones():
    signs = _shuffled_signs(3, 5, 50, seed=0)
    np.testing.assert_array_equal(signs[:, 0], [1, 1, 1, -1, -1, -1, -1, -1])
    assert ((signs == 1.0).sum(axis=0) == 3).all()
    # Each place is a sample's 3 times in 8: within 4 standard errors, for 8 places.
    assert abs((signs[:, 1:] == 1.0).mean(axis=1) - 3 / 8).max() < 4 * np.sqrt(15 / 64 / 49)


def test_value_and_width_are_the_papers():
    x, y = gaussian(60, 0), gaussian(80, 1) + 0.5
    result = mmd_test(x, y, seed=0)
    assert result.gamma == pytest.approx(kernel_scale(np.concatenate([x, y])))
    assert result.value == pytest.approx(mmd_squared(x, y, result.gamma), abs=1e-6)
    assert (result.n, result.m, result.permutations) == (60, 80, 200)


def test_aggregated_p_value_is_the_rank_of_the_smallest():
    x, y, b = gaussian(20, 0), 0.6 * gaussian(25, 1), 40
    result = aggregated_mmd_test(x, y, permutations=b, seed=3)
    points, signs = np.concatenate([x, y]), _shuffled_signs(20, 25, b, seed=3)
    mmds = relabelled_mmds(points, signs, 0.5 / result.widths[0] ** 2, kernels=KERNELS)
    p_values = np.array([[np.mean(row >= value) for value in row] for row in mmds])
    z_scores = (mmds - mmds.mean(axis=1)[:, None]) / mmds.std(axis=1)[:, None]
    scores = [(p.min(), -z.max()) for p, z in zip(p_values.T, z_scores.T, strict=True)]
    assert result.p_values == pytest.approx(p_values[:, 0])
    assert result.z_scores == pytest.approx(z_scores[:, 0], abs=1e-3)
    assert result.p_value == np.mean([score <= scores[0] for score in scores])
    ratios = np.array(result.widths[1:]) / result.widths[:-1]
    np.testing.assert_allclose(ratios, 0.5)


@pytest.mark.parametrize("test", [mmd_test, aggregated_mmd_test])
def test_level_is_exact(test):
    """Rejections at 10% of 200 nulls are binomial: a false alarm in 1 of 1,000 on either side."""
    p_values = [
        test(
            heavy_tailed(100, 2 * run), heavy_tailed(60, 2 * run + 1), permutations=100, seed=run
        ).p_value
        for run in range(200)
    ]
    rejections = np.sum(np.array(p_values) <= 0.1)
    assert binom.ppf(0.001, 200, 0.1) <= rejections <= binom.ppf(0.999, 200, 0.1)


@pytest.mark.parametrize("test", [mmd_test, aggregated_mmd_test])
@pytest.mark.parametrize("wrong", [lambda x: x + 0.7, lambda x: 0.5 * x], ids=["shift", "narrow"])
def test_wrong_samples_are_rejected(test, wrong):
    assert test(wrong(gaussian(150, 0)), gaussian(150, 1), seed=0).p_value == 1 / 200


def test_aggregation_sees_what_one_kernel_misses_and_says_on_which_scale():
    """Samples on a fine grid: nothing is wrong with them but at the grid's own scale."""
    reference, spacing = gaussian(400, 2, d=1), 0.4
    on_grid = np.round(gaussian(400, 0, d=1) / spacing) * spacing
    blind = mmd_test(on_grid, reference, gamma=0.5, seed=0)
    result = aggregated_mmd_test(on_grid, reference, seed=0)
    assert blind.p_value > 0.1
    assert result.p_value == 1 / 200
    assert result.width < spacing


def test_shift_is_seen_on_a_wide_scale():
    result = aggregated_mmd_test(gaussian(150, 0) + 0.7, gaussian(150, 1), seed=0)
    assert result.width in result.widths[:2]


@pytest.mark.parametrize("test", [mmd_test, aggregated_mmd_test])
def test_no_unit_origin_or_direction_matters(test):
    x, y = gaussian(50, 0), gaussian(70, 1) + 0.3
    turn = np.array([[0.6, -0.8], [0.8, 0.6]])
    moved = [30.0 * points @ turn + 1e4 for points in (x, y)]
    here, there = test(x, y, seed=0), test(*moved, seed=0)
    assert there.p_value == pytest.approx(here.p_value, abs=0.011)  # ranks may change by rounding


def test_widths_do_not_depend_on_labels_or_order():
    x, y = gaussian(3_000, 0), 5.0 * gaussian(3_000, 1)
    both = np.random.default_rng(2).permutation(np.concatenate([x, y]))
    shuffled = mmd_test(both[:10], both[10:], permutations=2, seed=0)
    assert mmd_test(x, y, permutations=2, seed=0).gamma == pytest.approx(shuffled.gamma)


def test_same_seed_same_result():
    x, y = gaussian(30, 0), gaussian(30, 1)
    assert mmd_test(x, y, seed=5) == mmd_test(x, y, seed=5)
    assert aggregated_mmd_test(x, y, seed=5) == aggregated_mmd_test(x, y, seed=5)


@pytest.mark.parametrize("test", [mmd_test, aggregated_mmd_test])
@pytest.mark.parametrize(
    ("samples", "permutations", "message"),
    [
        (np.zeros(5), 200, "shape"),
        (np.zeros((5, 3)), 200, "columns"),
        (np.full((5, 2), np.inf), 200, "not finite"),
        (np.zeros((0, 2)), 200, "at least two points"),
        (np.ones((5, 2)), 200, "median distance"),
        (gaussian(5, 0), 1, "permutations is 1"),
    ],
)
def test_refuses_what_cannot_be_tested(test, samples, permutations, message):
    with pytest.raises(InputError, match=message):
        test(samples, np.ones((5, 2)), permutations=permutations, seed=0)


@pytest.mark.parametrize("gamma", [0.0, -1.0, np.nan, np.inf])
def test_refuses_a_kernel_without_width(gamma):
    with pytest.raises(InputError, match="gamma"):
        mmd_test(gaussian(5, 0), gaussian(5, 1), gamma=gamma, seed=0)


@pytest.mark.parametrize("test", [mmd_test, aggregated_mmd_test])
def test_points_too_large_for_squares_are_refused(test):
    x = 1e25 * np.random.default_rng(0).normal(size=(40, 2))
    with pytest.raises(
        InputError, match=r"samples reaches [0-9.]+e\+25, whose squares are too large"
    ):
        test(x[:20], x[20:], permutations=10, seed=0)
