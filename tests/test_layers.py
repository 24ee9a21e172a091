"""Layers of pictures, against SciPy's correlations, JAX's transposed convolution and NumPy."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax
from scipy import signal, stats

from fenchel.layers import FEW, Convolution, Dense, Doubling, OfDoubled, doubled, halved

pytestmark = pytest.mark.usefixtures("x64")

KEY = jax.random.key(0)
FAILURE_RATE = 1e-5


def normal(*shape, seed=0):
    return np.random.default_rng(seed).normal(size=shape)


def with_bias(layer):
    """A bias of zeros would prove nothing."""
    return eqx.tree_at(lambda m: m.bias, layer, jnp.asarray(normal(layer.bias.size, seed=1)))


def convolution(inputs, size=3, outputs=4):
    return with_bias(Convolution(inputs, outputs, size, key=KEY))


def correlated(x, layer):
    """By SciPy: zeros around, more of them after than before where the size is even."""
    size = layer.weight.shape[0]
    padded = np.pad(x, [((size - 1) // 2, size // 2)] * 2 + [(0, 0)])
    planes = [
        signal.correlate(padded, np.asarray(layer.weight)[..., output], mode="valid")[..., 0]
        for output in range(layer.weight.shape[-1])
    ]
    return np.stack(planes, axis=-1) + np.asarray(layer.bias)


@pytest.fixture(params=[True, False], ids=["cpu", "other"])
def on_cpu(request, monkeypatch):
    monkeypatch.setattr("fenchel.layers._on_cpu", lambda: request.param)
    return request.param


@pytest.mark.parametrize("size", [1, 2, 3])
@pytest.mark.parametrize("inputs", [1, FEW, FEW + 1])
def test_a_convolution_is_a_correlation(on_cpu, inputs, size):
    layer, x = convolution(inputs, size), normal(6, 5, inputs)
    np.testing.assert_allclose(layer(jnp.asarray(x)), correlated(x, layer), atol=1e-12)
    batch = normal(3, 6, 5, inputs, seed=2)
    each = np.stack([correlated(one, layer) for one in batch])
    np.testing.assert_allclose(jax.vmap(layer)(jnp.asarray(batch)), each, atol=1e-12)


def test_few_channels_go_another_way_and_on_a_cpu_all(on_cpu):
    """So both ways were tested above."""

    def operations(inputs):
        return str(jax.make_jaxpr(convolution(inputs))(jnp.zeros((6, 5, inputs))))

    assert "conv_general_dilated" not in operations(FEW)
    assert ("conv_general_dilated" in operations(FEW + 1)) == (not on_cpu)


def halved_after(layer, x):
    return halved(layer(x))


def of_the_doubled(layer, x):
    return layer(doubled(x))


WAYS = {  # of a layer: in one, and what that stands for
    "plain": (Convolution.__call__, Convolution.__call__),
    "halved": (Convolution.halved, halved_after),
    "of the doubled": (lambda layer, x: OfDoubled(layer)(x), of_the_doubled),
}


@pytest.mark.parametrize("size", [1, 2, 3, 4])
@pytest.mark.parametrize("inputs", [2, FEW + 1])
def test_a_halved_convolution_is_a_convolution_halved(on_cpu, inputs, size):
    layer, x = convolution(inputs, size), jnp.asarray(normal(6, 8, inputs))
    np.testing.assert_allclose(layer.halved(x), halved_after(layer, x), atol=1e-12)
    batch = jnp.asarray(normal(3, 6, 8, inputs, seed=2))
    expected = jax.vmap(lambda x: halved_after(layer, x))(batch)
    np.testing.assert_allclose(jax.vmap(layer.halved)(batch), expected, atol=1e-12)


@pytest.mark.parametrize("inputs", [2, FEW + 1])
def test_a_convolution_of_the_doubled_is_one_of_what_was_doubled(on_cpu, inputs):
    layer, x = convolution(inputs), jnp.asarray(normal(5, 6, inputs))
    np.testing.assert_allclose(layer.of_doubled(x), of_the_doubled(layer, x), atol=1e-12)
    batch = jnp.asarray(normal(3, 5, 6, inputs, seed=2))
    expected = jax.vmap(lambda x: of_the_doubled(layer, x))(batch)
    np.testing.assert_allclose(jax.vmap(OfDoubled(layer))(batch), expected, atol=1e-12)


@pytest.mark.parametrize("way", WAYS)
def test_all_ways_have_the_same_derivatives(monkeypatch, way):
    layer, x = convolution(2), jnp.asarray(normal(6, 8, 2))
    in_one, apart = WAYS[way]
    c = normal(*apart(layer, x).shape, seed=3)

    def derivatives(call, layer, x):
        def loss(layer, x):
            return jnp.sum(c * jnp.sin(call(layer, x)))

        score = jax.grad(loss, argnums=1)
        through = jax.grad(lambda layer: jnp.sum(score(layer, x) ** 2))  # as a sampler learns
        return jax.tree.leaves((jax.grad(loss)(layer, x), score(layer, x), through(layer)))

    expected = jax.jit(lambda *args: derivatives(apart, *args))(layer, x)
    by_patches = jax.jit(lambda *args: derivatives(in_one, *args))(layer, x)
    monkeypatch.setattr("fenchel.layers._on_cpu", lambda: False)
    by_rows = jax.jit(lambda *args: derivatives(in_one, *args))(layer, x)
    monkeypatch.setattr("fenchel.layers.FEW", 0)
    by_library = jax.jit(lambda *args: derivatives(in_one, *args))(layer, x)
    for each, *others in zip(expected, by_patches, by_rows, by_library, strict=True):
        assert np.abs(each).max() > 1e-3
        for other in others:
            np.testing.assert_allclose(other, each, atol=1e-11)


def test_a_doubling_is_a_transposed_convolution():
    """JAX writes its kernel the other way round."""
    layer, x = with_bias(Doubling(3, 4, key=KEY)), jnp.asarray(normal(5, 6, 3))
    kernel = layer.weight.reshape(3, 2, 2, 4).transpose(1, 2, 0, 3)

    def transposed(kernel):
        y = lax.conv_transpose(
            x[None], kernel, (2, 2), "VALID", dimension_numbers=("NHWC", "HWIO", "NHWC")
        )
        return y[0] + jnp.broadcast_to(layer.bias, y.shape[1:])

    np.testing.assert_allclose(layer(x), transposed(kernel[::-1, ::-1]), atol=1e-12)
    assert not np.allclose(layer(x), transposed(kernel))  # which pixel is where does matter
    np.testing.assert_allclose(jax.vmap(layer)(x[None])[0], layer(x), atol=1e-12)


def test_a_dense_layer():
    layer, x = with_bias(Dense(5, 3, key=KEY)), normal(5)
    np.testing.assert_allclose(layer(jnp.asarray(x)), x @ layer.weight + layer.bias, atol=1e-12)


def test_halves_and_doubles():
    x, y = normal(6, 4, 3), normal(3, 2, 3, seed=1)
    half = np.asarray(halved(jnp.asarray(x)))
    assert half.shape == (3, 2, 3)
    np.testing.assert_allclose(half[1, 0], x[2:4, 0:2].mean(axis=(0, 1)), atol=1e-15)
    double = np.asarray(doubled(jnp.asarray(y)))
    np.testing.assert_array_equal(double, np.kron(y, np.ones((2, 2, 1))))
    np.testing.assert_allclose(halved(doubled(jnp.asarray(y))), y, atol=1e-15)
    # Up to a factor of four, the one is the other's transpose.
    assert np.sum(half * y) == pytest.approx(np.sum(x * double) / 4, rel=1e-12)


MADE = {
    "convolution": (lambda: Convolution(6, 80, 3, key=KEY), 54),
    "doubling": (lambda: Doubling(40, 30, key=KEY), 40),
    "dense": (lambda: Dense(60, 70, key=KEY), 60),
}


@pytest.mark.parametrize("name", MADE)
def test_fresh_weights_have_hes_variance(name):
    """A chi-squared of some 4,000 normals: fails 1 in 10⁵ seeds, and this one is fixed."""
    make, inputs = MADE[name]
    layer = make()

    def p_value(variance):
        total = np.sum(np.square(layer.weight)) / variance
        law = stats.chi2(layer.weight.size)
        return 2 * min(law.cdf(total), law.sf(total))

    assert p_value(2 / inputs) > FAILURE_RATE
    assert p_value(2 / inputs * 1.15) < FAILURE_RATE  # negative control
    assert np.all(layer.bias == 0)


@pytest.mark.parametrize("name", MADE)
def test_a_layer_computes_in_the_precision_of_its_weight(name):
    layer = with_bias(MADE[name][0]())
    inputs = (layer.weight.shape[2],) if name == "convolution" else layer.weight.shape[:1]
    x = jnp.asarray(normal(*(() if name == "dense" else (4, 4)), *inputs))
    coarse = eqx.tree_at(lambda m: m.weight, layer, layer.weight.astype(jnp.bfloat16))
    assert layer(x).dtype == jnp.float64
    assert coarse(x).dtype == jnp.bfloat16
    error = np.abs(np.asarray(coarse(x), float) - layer(x)).max()
    assert 1e-4 < error < 2**-5 * np.abs(layer(x)).max()
