"""The sliced Wasserstein distance against closed forms, SciPy's, and its own invariances."""

import numpy as np
import pytest
from scipy.stats import wasserstein_distance

from fenchel.errors import InputError
from fenchel.evaluate import sliced_wasserstein


def gaussian(n, seed, d=2):
    return np.random.default_rng(seed).normal(size=(n, d))


@pytest.mark.parametrize(("n", "m"), [(1, 1), (3, 5), (40, 40), (40, 60), (101, 7)])
def test_is_scipys_on_a_line(n, m):
    x, y = gaussian(n + 1, 0, d=1), 2.0 * gaussian(m + 3, 1, d=1) + 0.3
    result = sliced_wasserstein(x, y, p=1.0, projections=3, seed=0)
    assert result.value == pytest.approx(wasserstein_distance(x[:, 0], y[:, 0]))
    assert result.standard_error == pytest.approx(0.0, abs=1e-12)


@pytest.mark.parametrize("p", [1.0, 2.0, 3.5])
def test_each_power_on_a_line(p):
    """Sorted, 0 goes to 1 and 3 to 7: gaps of 1 and 4."""
    x, y = np.array([[3.0], [0.0]]), np.array([[1.0], [7.0], [1.0], [7.0]])
    result = sliced_wasserstein(x, y, p=p, projections=2, seed=0)
    assert result.value == pytest.approx((0.5 * (1.0 + 4.0**p)) ** (1 / p))


def test_of_a_shift_is_its_length_over_root_d():
    """E_θ[(θ·μ)²] = |μ|² / d: within 4 standard errors, a false alarm in 1 of 16,000."""
    x, shift = gaussian(50, 0, d=5), np.array([1.0, -2.0, 0.0, 2.0, 0.0])
    result = sliced_wasserstein(x + shift, x, projections=400, seed=0)
    assert 0.0 < result.standard_error < 0.1
    assert abs(result.value - 3.0 / np.sqrt(5.0)) < 4.0 * result.standard_error


def test_of_gaussians_is_the_closed_form():
    """Along each direction N(θ·μ, 4) against N(0, 1) has W_2² = (θ·μ)² + 1."""
    x, y = 2.0 * gaussian(20_000, 0) + np.array([3.0, 0.0]), gaussian(10_000, 1)
    result = sliced_wasserstein(x, y, projections=400, seed=0)
    assert abs(result.value - np.sqrt(9.0 / 2.0 + 1.0)) < 4.0 * result.standard_error + 0.02


def test_standard_error_is_the_spread_over_directions():
    """The spread of 200 values is known to 5%: 4 standard errors, a false alarm in 1 of 16,000."""
    x, y = gaussian(20, 0) + np.array([1.0, 0.0]), gaussian(20, 1)
    results = [sliced_wasserstein(x, y, projections=50, seed=seed) for seed in range(200)]
    spread = np.std([result.value for result in results])
    assert np.mean([result.standard_error for result in results]) == pytest.approx(spread, rel=0.2)


def test_baseline_tells_the_truth_from_a_shift():
    reference = gaussian(2_000, 0)
    right = sliced_wasserstein(gaussian(2_000, 1), reference, seed=0)
    wrong = sliced_wasserstein(gaussian(2_000, 1) + 0.3, reference, seed=0)
    assert right.value < 1.5 * right.baseline
    assert wrong.value > 3.0 * wrong.baseline


def test_is_a_metric_in_the_units_of_the_data():
    x, y = gaussian(30, 0), gaussian(45, 1) + 1.0
    value = sliced_wasserstein(x, y, seed=0).value
    assert sliced_wasserstein(y, x, seed=0).value == pytest.approx(value)
    assert sliced_wasserstein(7.0 * x + 2.0, 7.0 * y + 2.0, seed=0).value == pytest.approx(
        7 * value
    )
    assert sliced_wasserstein(x[::-1], y, seed=0).value == pytest.approx(value)


def test_is_zero_between_a_set_and_its_double():
    x = gaussian(30, 0)
    result = sliced_wasserstein(x, np.concatenate([x, x]), seed=0)
    assert (result.value, result.standard_error) == (0.0, 0.0)


@pytest.mark.parametrize(
    ("samples", "options", "message"),
    [
        (np.zeros(5), {}, "shape"),
        (np.zeros((5, 3)), {}, "columns"),
        (np.full((5, 2), np.nan), {}, "not finite"),
        (np.zeros((5, 2)), {"p": 0.5}, "p is 0.5"),
        (np.zeros((5, 2)), {"p": np.inf}, "p is inf"),
        (np.zeros((5, 2)), {"projections": 1}, "projections is 1"),
    ],
)
def test_refuses_what_has_no_distance(samples, options, message):
    with pytest.raises(InputError, match=message):
        sliced_wasserstein(samples, np.ones((5, 2)), seed=0, **options)


def test_refuses_a_reference_without_halves():
    with pytest.raises(InputError, match="reference points"):
        sliced_wasserstein(np.zeros((5, 2)), np.ones((3, 2)), seed=0)
