"""Truth against truth, on the device and shared."""

import numpy as np
import pytest

from fenchel.bench import truth as module
from fenchel.bench.folder import BenchFolder
from fenchel.bench.scores import mean_value
from fenchel.bench.truth import Truth, truths
from fenchel.data import TOYS
from fenchel.evaluate import mmd_squared
from fenchel.evaluate.mmd import mmds_squared


@pytest.fixture(scope="module")
def rings():
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(module, "SIZES", (200,))
        patch.setattr(module, "POINTS_AT_ONCE", 10_000)  # the null comes in several draws
        patch.setattr(module, "PAPER_SIZE", 200)
        patch.setattr(module, "LOOKS", 20)
        patch.setattr(module, "PROTOCOLS", 5)
        yield Truth.of("Ring", 200)


def test_many_at_once_are_as_one_by_one():
    rng = np.random.default_rng(0)
    x, y = rng.normal(3.0, 1.0, (11, 60, 2)), rng.normal(3.1, 1.0, (11, 50, 2))
    gammas = np.linspace(0.1, 2.0, 11)
    one_by_one = [mmd_squared(*pair) for pair in zip(x, y, gammas, strict=True)]
    np.testing.assert_allclose(mmds_squared(x, y, gammas), one_by_one, atol=1e-6)


def test_a_point_that_is_not_finite_spoils_its_own_pair_only():
    x = np.random.default_rng(0).normal(size=(2, 30, 2))
    spoilt = x.copy()
    spoilt[0, 3] = np.nan
    values = mmds_squared(spoilt, x[::-1], np.ones(2))
    assert np.isnan(values[0])
    assert np.isfinite(values[1])


def test_the_truth_itself_is_within_range(rings):
    """50 means of z over fresh truth: beyond 0.6 (4 standard errors) once in 10,000 times."""
    fresh = TOYS["Ring"].sample(2 * 50 * 200, 99).reshape(50, 2, 200, 2)
    values = mmds_squared(fresh[:, 0], fresh[:, 1], np.full(50, rings.gamma))
    z = np.array([rings.nulls[200].z(value) for value in values])
    assert abs(z.mean()) < 0.6
    assert 0.6 < z.std() < 1.5


def test_a_model_is_judged_by_the_mean_of_its_blocks():
    rng = np.random.default_rng(1)
    x, y = rng.normal(size=(70, 2)), rng.normal(size=(70, 2))
    blocks = [mmd_squared(x[i : i + 30], y[i : i + 30], 0.5) for i in (0, 30)]  # and ten are left
    assert mean_value(x, y, 30, 0.5) == pytest.approx(np.mean(blocks), abs=1e-6)
    assert mean_value(x, y, 70, 0.5) == pytest.approx(mmd_squared(x, y, 0.5), abs=1e-6)


def test_the_best_of_many_looks_flatters_even_the_truth(rings):
    """The smallest of 20 is 1.9 standard deviations below; of five such, 1 is not once in 1e6."""
    null = rings.nulls[200]
    assert np.mean(rings.best) < null.mean - 0.9 * null.std


def test_another_distribution_is_not(rings):
    """Negative control."""
    shifted = TOYS["Ring"].sample(200, 5) + np.array([3.0, 0.0])
    value = mmds_squared(shifted[None], TOYS["Ring"].sample(200, 6)[None], np.array([rings.gamma]))
    assert rings.nulls[200].z(float(value[0])) > 10


def test_it_is_computed_once_for_all(tmp_path, monkeypatch, rings):
    calls = []
    monkeypatch.setattr(Truth, "of", lambda name, replicates: calls.append(name) or rings)
    folder = BenchFolder(tmp_path)
    first = truths(["Ring", "moons"], 9, folder, lambda done: None)
    again = truths(["moons", "Ring", "line"], 9, folder, lambda done: None)
    assert calls == ["Ring", "moons", "line"]
    assert first["Ring"] == again["Ring"] == rings
