"""Pictures as networks get them: enlarged the old way, and in batches."""

import jax.numpy as jnp
import numpy as np
import pytest

from fenchel.errors import InputError
from fenchel.evaluate.pictures import SIZE, _one_ahead, in_batches, prepared, silent


def random_pictures(*shape, seed=0):
    return np.random.default_rng(seed).integers(0, 256, shape, dtype=np.uint8)


def enlarged_by_definition(picture):
    """At (i x old / new), without a shift by half a pixel, and not beyond the last pixel."""
    height, width, _ = picture.shape
    rows, columns = np.arange(SIZE) * height / SIZE, np.arange(SIZE) * width / SIZE
    top, left = rows.astype(int), columns.astype(int)
    bottom, right = np.minimum(top + 1, height - 1), np.minimum(left + 1, width - 1)
    down, across = (rows - top)[:, None, None], (columns - left)[None, :, None]
    picture = picture.astype(float)
    upper = picture[top][:, left] * (1 - across) + picture[top][:, right] * across
    lower = picture[bottom][:, left] * (1 - across) + picture[bottom][:, right] * across
    return upper * (1 - down) + lower * down


@pytest.mark.parametrize("size", [(1, 1), (5, 7), (32, 32), (299, 299), (400, 310)])
def test_enlarged_by_definition(size):
    picture = random_pictures(1, *size, 3)
    expected = (enlarged_by_definition(picture[0]) - 128.0) / 128.0
    np.testing.assert_allclose(prepared(jnp.asarray(picture))[0], expected, atol=1e-4)


@pytest.mark.usefixtures("x64")
def test_stays_in_single_precision():
    """As the network's weights are, whatever the rest of a program works in."""
    assert prepared(jnp.asarray(random_pictures(1, 5, 7, 3))).dtype == jnp.float32


def test_grey_is_three_equal_channels():
    grey = random_pictures(2, 6, 6, 1)
    colour = jnp.asarray(np.repeat(grey, 3, axis=-1))
    np.testing.assert_array_equal(prepared(jnp.asarray(grey)), prepared(colour))


def means(pictures):
    return jnp.mean(pictures.astype(float), axis=(1, 2))


@pytest.mark.parametrize("batch", [1, 3, 7, 100])
def test_batches_are_all_the_pictures_in_order(batch):
    pictures, heard = random_pictures(7, 4, 5, 3), []
    rows = in_batches(means, pictures, batch, lambda done, total: heard.append((done, total)))
    np.testing.assert_allclose(np.concatenate(list(rows)), pictures.mean(axis=(1, 2)), rtol=1e-5)
    counts = [done for done, _ in heard]
    assert counts == sorted(set(counts))
    assert heard[-1] == (7, 7)


def test_next_batch_is_begun_before_this_one_is_handed_over():
    begun = []
    seen = [(item, list(begun)) for item in _one_ahead(begun.append(i) or i for i in range(3))]
    assert seen == [(0, [0, 1]), (1, [0, 1, 2]), (2, [0, 1, 2])]


@pytest.mark.parametrize(
    ("pictures", "batch", "message"),
    [
        (np.zeros((2, 4, 4, 3)), 1, "uint8"),
        (np.zeros((4, 4), np.uint8), 1, "shape"),
        (np.zeros((2, 4, 4, 4), np.uint8), 1, "channels"),
        (np.zeros((0, 4, 4, 3), np.uint8), 1, "shape"),
        (np.zeros((2, 4, 4), np.uint8), 0, "batch is 0"),
    ],
)
def test_refuses_what_are_no_pictures(pictures, batch, message):
    with pytest.raises(InputError, match=message):
        list(in_batches(means, pictures, batch, silent))
