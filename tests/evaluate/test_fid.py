"""The Fréchet distance in closed form, and how it behaves where sets are small."""

import numpy as np
import pytest
from scipy.linalg import sqrtm

from fenchel.errors import InputError
from fenchel.evaluate import FeatureMoments, feature_moments, frechet_distance


def normals(n, seed, d=5):
    return np.random.default_rng(seed).normal(size=(n, d))


def random_moments(seed, d=6):
    rng = np.random.default_rng(seed)
    root = rng.normal(size=(d, d))
    return FeatureMoments(rng.normal(size=d), root @ root.T, 1_000)


def test_moments_are_numpys_however_the_rows_come():
    rows = 3.0 * normals(50, 0) + 1e4
    for batches in ([rows], np.split(rows, [1, 20, 33]), iter(rows[:, None])):
        mean, covariance, count = feature_moments(batches)
        np.testing.assert_allclose(mean, rows.mean(axis=0), rtol=1e-12)
        np.testing.assert_allclose(covariance, np.cov(rows.T), rtol=1e-8)
        assert count == 50


def test_moments_are_in_double_precision():
    """In single precision 16 million and 1 are no more than 16 million."""
    rows = np.float32([[2**24], [2**24 + 2]])
    assert feature_moments([rows]).mean == 2**24 + 1
    assert feature_moments([rows]).covariance == 2.0


def test_distance_of_gaussians_with_common_axes():
    """Σ (m - m')² + Σ (σ - σ')²."""
    first = FeatureMoments(np.array([1.0, 2.0]), np.diag([4.0, 9.0]), 100)
    second = FeatureMoments(np.array([1.0, -1.0]), np.diag([1.0, 25.0]), 100)
    distance = frechet_distance(first, second)
    assert distance.of_means == pytest.approx(9.0)
    assert distance.of_covariances == pytest.approx((2 - 1) ** 2 + (3 - 5) ** 2)
    assert distance.value == pytest.approx(14.0)


def test_distance_is_that_of_the_matrix_square_root():
    first, second = random_moments(0), random_moments(1)
    expected = (
        np.sum((first.mean - second.mean) ** 2)
        + np.trace(first.covariance + second.covariance)
        - 2.0 * np.trace(sqrtm(first.covariance @ second.covariance)).real
    )
    assert frechet_distance(first, second).value == pytest.approx(expected)
    assert frechet_distance(second, first).value == pytest.approx(expected)


def test_distance_to_itself_is_zero():
    moments = random_moments(0)
    assert frechet_distance(moments, moments).value == pytest.approx(0.0, abs=1e-10)


def test_sets_smaller_than_their_features_have_a_distance():
    """Covariances of rank 1, along orthogonal axes: nothing is in common."""
    first = feature_moments([np.array([[1.0, 0.0, 0.0], [-1.0, 0.0, 0.0]])])
    second = feature_moments([np.array([[0.0, 2.0, 0.0], [0.0, -2.0, 0.0]])])
    assert frechet_distance(first, second).value == pytest.approx(2.0 + 8.0)
    assert frechet_distance(first, first).value == pytest.approx(0.0, abs=1e-10)


def test_baseline_is_what_chance_makes_of_one_distribution():
    """Means of 200 distances are known to about 3%: 4 standard errors are some 12%."""
    scales = np.array([3.0, 2.0, 1.0, 0.5, 0.1])
    pairs = [(normals(400, 2 * i) * scales, normals(800, 2 * i + 1) * scales) for i in range(200)]
    results = [frechet_distance(*(feature_moments([x]) for x in pair)) for pair in pairs]
    mean = np.mean([result.value for result in results])
    assert np.mean([result.baseline for result in results]) == pytest.approx(mean, rel=0.12)


def test_baseline_tells_the_truth_from_a_shift():
    """Negative control: the same pictures are near, others are not."""
    reference = feature_moments([normals(2_000, 0)])
    right = frechet_distance(feature_moments([normals(2_000, 1)]), reference)
    shifted = frechet_distance(feature_moments([normals(2_000, 1) + 0.3]), reference)
    narrow = frechet_distance(feature_moments([0.5 * normals(2_000, 1)]), reference)
    assert right.value < 3.0 * right.baseline
    assert shifted.of_means > 10.0 * shifted.baseline > 10.0 * shifted.of_covariances / 3.0
    assert narrow.of_covariances > 10.0 * narrow.baseline > 10.0 * narrow.of_means / 3.0


def test_fewer_pictures_are_farther_away():
    reference = feature_moments([normals(5_000, 0)])
    few, many = (frechet_distance(feature_moments([normals(n, 1)]), reference) for n in (100, 5000))
    assert few.value > 5.0 * many.value
    assert few.baseline > 5.0 * many.baseline


@pytest.mark.parametrize(
    ("batches", "message"),
    [
        ([], "at least two"),
        ([np.zeros((1, 3))], "at least two"),
        (np.zeros((4, 3)), "in a list"),
        ([np.zeros((2, 3)), np.zeros((2, 4))], "same d"),
        ([np.full((2, 3), np.nan)], "not finite"),
        ([np.zeros(())], "shape"),
    ],
)
def test_refuses_what_has_no_moments(batches, message):
    with pytest.raises(InputError, match=message):
        feature_moments(batches)


def test_refuses_features_of_two_networks():
    with pytest.raises(InputError, match="one network"):
        frechet_distance(random_moments(0, d=3), random_moments(0, d=4))
