"""Standardising is exact where float64 allows it, at any scale and however far the mean."""

import numpy as np
import pytest

from fenchel.data import Standardiser
from fenchel.errors import InputError

RNG_SEED = 5


def correlated(n: int = 2_000) -> np.ndarray:
    rng = np.random.default_rng(RNG_SEED)
    return rng.standard_normal((n, 3)) @ np.array(
        [[1.0, 0.5, 0.0], [0.0, 2.0, 1.0], [0.0, 0.0, 0.3]]
    )


@pytest.mark.parametrize("scale", [1e-200, 1e-6, 1e-3, 1.0, 1e3, 1e6, 1e200])
def test_any_scale_becomes_one(scale):
    x = scale * correlated()
    z = Standardiser.of(x).forward(x)
    np.testing.assert_allclose(z.mean(axis=0), 0, atol=1e-13)
    np.testing.assert_allclose(z.std(axis=0), 1, rtol=1e-13)


@pytest.mark.parametrize("scale", [1e-6, 1.0, 1e6])
def test_round_trip(scale):
    x = scale * (correlated() + 3)
    standardiser = Standardiser.of(x)
    np.testing.assert_allclose(standardiser.inverse(standardiser.forward(x)), x, rtol=1e-12)


@pytest.mark.parametrize("offset", [1e3, 1e6, 1e9])
def test_a_far_mean_does_not_swallow_the_spread(offset):
    """The textbook E(x²) - E(x)² has no digit left here; that is the negative control."""
    x = offset + 1e-3 * correlated()
    spread = (x - offset).std(axis=0)  # near equals: the subtraction is exact
    standardiser = Standardiser.of(x)
    np.testing.assert_allclose(standardiser.scale, spread, rtol=1e-12)
    rounding_of_the_mean = np.spacing(offset) / spread
    assert (np.abs(standardiser.forward(x).mean(axis=0)) <= rounding_of_the_mean + 1e-12).all()
    textbook = np.sqrt(np.abs((x**2).mean(axis=0) - x.mean(axis=0) ** 2))
    assert (np.abs(textbook / spread - 1) > 1e-6).all()


def test_log_scale_is_the_log_jacobian_of_the_inverse():
    standardiser = Standardiser.of(correlated() * [1e-6, 1.0, 1e6])
    origin = standardiser.inverse(np.zeros(3))
    jacobian = np.stack([standardiser.inverse(row) - origin for row in np.eye(3)])
    assert standardiser.log_scale == pytest.approx(np.linalg.slogdet(jacobian)[1], rel=1e-9)


def test_one_row_is_taken_as_well_as_many():
    standardiser, x = Standardiser.of(correlated()), correlated()
    np.testing.assert_array_equal(standardiser.forward(x[7]), standardiser.forward(x)[7])


@pytest.mark.parametrize("shape", [(10, 2), (10, 1), (2,), ()])
def test_other_columns_are_refused(shape):
    standardiser = Standardiser.of(correlated())
    given = shape[-1] if shape else 0
    message = f"The model was fitted to 3 columns and this data has {given}: give it the same"
    for use in (standardiser.check_dimension, standardiser.forward, standardiser.inverse):
        with pytest.raises(InputError, match=message):
            use(np.zeros(shape))


def test_a_constant_column_cannot_be_standardised():
    with pytest.raises(InputError, match="'x2' is constant"):
        Standardiser.of(np.column_stack([np.arange(5), np.ones(5)]))
