"""Precision, recall, density and coverage by their definitions, and what each of them sees."""

import numpy as np
import pytest

from fenchel.errors import InputError
from fenchel.evaluate import coverage
from fenchel.evaluate.coverage import (
    COLUMNS_FOR_TREE,
    ROWS_PER_BLOCK,
    _incidence_by_blocks,
    _incidence_by_tree,
)


def gaussian(n, seed, d=2):
    return np.random.default_rng(seed).normal(size=(n, d))


def two_modes(n, seed, d=2):
    rng = np.random.default_rng(seed)
    return rng.normal(size=(n, d)) + 20.0 * rng.integers(0, 2, size=(n, 1))


def brute_force(samples, reference, k):
    def inside(points, centres):
        """Whether each point is in the ball around each centre."""
        own = np.linalg.norm(centres[:, None] - centres[None], axis=2)
        distances = np.linalg.norm(points[:, None] - centres[None], axis=2)
        return distances <= np.sort(own, axis=1)[:, k] * (1 + 1e-9)

    in_reference, in_samples = inside(samples, reference), inside(reference, samples)
    return {
        "precision": in_reference.any(axis=1).mean(),
        "recall": in_samples.any(axis=1).mean(),
        "density": in_reference.sum() / k / len(samples),
        "coverage": in_reference.any(axis=0).mean(),
    }


def values(result):
    return {name: getattr(result, name) for name in ("precision", "recall", "density", "coverage")}


@pytest.mark.parametrize("d", [1, COLUMNS_FOR_TREE, COLUMNS_FOR_TREE + 1])
@pytest.mark.parametrize(("n", "m", "k"), [(4, 6, 3), (40, 30, 5), (300, ROWS_PER_BLOCK + 3, 1)])
def test_agrees_with_the_definitions(n, m, k, d):
    samples, reference = gaussian(n, 0, d) + 0.5, gaussian(m, 1, d)
    expected = brute_force(samples, reference, k)
    assert values(coverage(samples, reference, k=k)) == pytest.approx(expected)


@pytest.mark.parametrize("integers", [False, True], ids=["continuous", "discrete"])
def test_tree_and_blocks_find_the_same(integers):
    """Also where distances tie, so that many points lie at the very edge of a ball."""
    centres, points = 2.0 * gaussian(200, 0, d=3), 2.0 * gaussian(150, 1, d=3)
    if integers:
        centres, points = np.round(centres), np.round(points)
    for by_tree, by_blocks in zip(
        _incidence_by_tree(centres, points, 5),
        _incidence_by_blocks(centres, points, 5),
        strict=True,
    ):
        np.testing.assert_array_equal(by_tree, by_blocks)


@pytest.mark.parametrize("d", [2, 10])
def test_perfect_sampler_has_the_known_expectations(d):
    """Coverage 1 - 2^-k and density 1, in any dimension: 2,000 points know them to about 1%."""
    result = coverage(gaussian(2_000, 0, d), gaussian(2_000, 1, d), k=3)
    assert result.coverage == pytest.approx(1.0 - 0.5**3, abs=0.04)
    assert result.density == pytest.approx(1.0, abs=0.06)


@pytest.mark.parametrize("d", [2, 10])
def test_lost_mode_is_seen_by_recall_and_coverage_and_not_by_precision(d):
    reference, samples = two_modes(1_000, 0, d), two_modes(2_000, 1, d)
    one_mode = samples[samples[:, 0] < 10.0][:1_000]
    whole, part = coverage(samples[:1_000], reference), coverage(one_mode, reference)
    assert part.recall < 0.6 < whole.recall
    assert part.coverage < 0.6 < whole.coverage
    assert part.precision >= whole.precision - 0.02


@pytest.mark.parametrize("d", [2, 10])
def test_stray_samples_are_seen_by_precision_and_not_by_recall(d):
    reference, samples = gaussian(1_000, 0, d), gaussian(1_000, 1, d)
    samples[::2] += 20.0
    result = coverage(samples, reference)
    assert result.precision < 0.55
    assert result.density < 0.6
    assert result.recall > 0.7


def test_set_covers_itself():
    """Each point is in its own ball and in those of its neighbours: k + 1 balls a point."""
    points = gaussian(100, 0)
    result = coverage(points, points, k=4)
    assert values(result) == {"precision": 1.0, "recall": 1.0, "density": 1.25, "coverage": 1.0}


@pytest.mark.parametrize("d", [3, 8])
def test_no_unit_origin_or_order_matters(d):
    samples, reference = gaussian(80, 0, d), gaussian(90, 1, d)
    moved = coverage(40.0 * samples[::-1] + 1e4, 40.0 * reference + 1e4)
    assert values(moved) == values(coverage(samples, reference))


@pytest.mark.parametrize("d", [2, 8])
def test_sets_apart_cover_nothing(d):
    result = coverage(gaussian(50, 0, d), gaussian(50, 1, d) + 100.0)
    assert set(values(result).values()) == {0.0}


@pytest.mark.parametrize(
    ("samples", "k", "message"),
    [
        (np.zeros(5), 2, "shape"),
        (np.zeros((5, 3)), 2, "columns"),
        (np.full((5, 2), np.nan), 2, "not finite"),
        (np.zeros((5, 2)), 0, "k is 0"),
        (np.zeros((5, 2)), 5, "smaller k"),
    ],
)
def test_refuses_what_has_no_neighbours(samples, k, message):
    with pytest.raises(InputError, match=message):
        coverage(samples, np.ones((9, 2)), k=k)
