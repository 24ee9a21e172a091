"""The layers of convolutional networks, by their definitions."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from fenchel.evaluate.convolutions import AveragePool, Branches, Chain, Convolution, MaxPool


def random_maps(*shape, seed=0):
    return jnp.asarray(np.random.default_rng(seed).normal(size=shape), jnp.float32)


def windows(maps, size):
    """All size x size windows of (height, width, channels) maps."""
    return np.lib.stride_tricks.sliding_window_view(maps, (size, size), axis=(0, 1))


def test_convolution_is_the_sum_of_products_with_its_window():
    maps, weight, bias = random_maps(1, 6, 5, 2), random_maps(3, 3, 2, 4), random_maps(4)
    expected = np.einsum("ijcab,abck->ijk", windows(maps[0], 3), weight) + np.array(bias)
    layer = Convolution(weight, bias, (2, 2), "VALID", -1.0, 2.0)
    np.testing.assert_allclose(layer(maps)[0], np.clip(expected, -1, 2)[::2, ::2], atol=1e-5)


def test_convolution_is_rectified_unless_told():
    layer = Convolution(jnp.ones((1, 1, 1, 1)), jnp.zeros(1))
    np.testing.assert_array_equal(layer(jnp.array([[[[-3.0], [4e9]]]])), [[[[0.0], [4e9]]]])


def test_convolution_is_in_full_precision():
    layer = Convolution(random_maps(1, 1, 2, 2), random_maps(2))
    assert "Precision.HIGHEST" in str(jax.make_jaxpr(layer)(random_maps(1, 2, 2, 2)))


def test_pools_know_where_the_picture_ends():
    maps = random_maps(1, 5, 5, 2) - 10.0  # a zero from outside would be the largest
    outside = np.pad(maps[0], ((1, 1), (1, 1), (0, 0)), constant_values=np.nan)
    around = windows(outside, 3)
    same = (3, 3), (1, 1), "SAME"
    np.testing.assert_allclose(MaxPool(*same)(maps)[0], np.nanmax(around, (-1, -2)))
    np.testing.assert_allclose(AveragePool(*same)(maps)[0], np.nanmean(around, (-1, -2)), rtol=1e-5)
    halving = MaxPool((3, 3), (2, 2), "VALID")(maps)[0]
    np.testing.assert_allclose(halving, windows(maps[0], 3).max((-1, -2))[::2, ::2])


def test_layers_follow_and_accompany_each_other():
    maps = random_maps(1, 2, 2, 3)
    chained = Chain((lambda x: x + 1.0, lambda x: 2.0 * x))
    both = Branches((chained, lambda x: x))(maps)
    np.testing.assert_allclose(both, jnp.concatenate([2.0 * (maps + 1.0), maps], -1))


@pytest.mark.usefixtures("x64")
def test_layers_keep_the_precision_of_their_maps():
    layers = (
        Convolution(random_maps(1, 1, 3, 3), random_maps(3)),
        MaxPool((3, 3), (1, 1), "SAME"),
        AveragePool((3, 3), (1, 1), "SAME"),
    )
    assert Chain(layers)(random_maps(1, 4, 4, 3)).dtype == jnp.float32
