"""Nearest neighbours by their definition, also across blocks and for pictures."""

import numpy as np
import pytest

from fenchel.errors import InputError
from fenchel.evaluate import few_nearest, nearest


@pytest.fixture
def small_blocks(monkeypatch):
    monkeypatch.setattr("fenchel.evaluate.neighbours.ROWS_PER_BLOCK", 16)


@pytest.mark.parametrize(("n", "m"), [(1, 1), (40, 53), (5, 16), (17, 3)])
@pytest.mark.usefixtures("small_blocks")
def test_agrees_with_the_definition(n, m):
    rng = np.random.default_rng(0)
    queries, references = rng.normal(size=(n, 4)) + 50.0, rng.normal(size=(m, 4)) + 50.0
    distances = np.linalg.norm(queries[:, None] - references[None], axis=2)
    found = nearest(queries, references)
    np.testing.assert_array_equal(found.indices, distances.argmin(axis=1))
    np.testing.assert_allclose(found.distances, distances.min(axis=1), rtol=1e-4)


@pytest.mark.usefixtures("small_blocks")
def test_several_neighbours_are_in_order():
    rng = np.random.default_rng(0)
    queries, references = rng.normal(size=(5, 4)) + 50.0, rng.normal(size=(53, 4)) + 50.0
    distances = np.linalg.norm(queries[:, None] - references[None], axis=2)
    found = few_nearest(queries, references, 7)
    np.testing.assert_array_equal(found.indices, distances.argsort(axis=1)[:, :7])
    np.testing.assert_allclose(found.distances, np.sort(distances, axis=1)[:, :7], rtol=1e-4)
    for k in (0, 54):
        with pytest.raises(InputError, match=f"{k} neighbours among 53"):
            few_nearest(queries, references, k)


@pytest.mark.usefixtures("small_blocks")
def test_copies_are_found_and_their_distance_is_zero():
    pictures = np.random.default_rng(0).integers(0, 256, (60, 8, 8, 3), dtype=np.uint8)
    chosen = [59, 3, 17, 16]
    found = nearest(pictures[chosen], pictures)
    np.testing.assert_array_equal(found.indices, chosen)
    np.testing.assert_array_equal(found.distances, 0.0)


@pytest.mark.parametrize(
    ("queries", "references", "message"),
    [
        (np.zeros(3), np.zeros(3), "shape"),
        (np.zeros((3, 2)), np.zeros((3, 4)), "same axes"),
        (np.zeros((0, 2)), np.zeros((3, 2)), "at least one"),
        (np.zeros((3, 2)), np.zeros((0, 2)), "at least one"),
        (np.full((3, 2), np.nan), np.zeros((3, 2)), "not finite"),
    ],
)
def test_refuses_what_has_no_neighbours(queries, references, message):
    with pytest.raises(InputError, match=message):
        nearest(queries, references)
