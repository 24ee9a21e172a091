"""f of a picture, against the same nets written out in NumPy and SciPy."""

from itertools import pairwise

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import paramax
import pytest
from scipy import signal

from fenchel.errors import InputError
from fenchel.layers import leaky_relu, plain
from fenchel.parameters import flat, learnt, split
from fenchel.potentials import ConvNet, ResidualNet, Scaled, spectral

KEY = jax.random.key(0)
NETS = {"convolutional": ConvNet, "residual": ResidualNet}
ACTIVATIONS = {
    "leaky": (leaky_relu, lambda y: np.where(y > 0, y, 0.1 * y)),
    "smooth": (jax.nn.silu, lambda y: y / (1 + np.exp(-y))),
}


def pictures(n, shape, seed=0):
    return np.random.default_rng(seed).uniform(-1, 1, (n, int(np.prod(shape))))


def moved(net):
    """With every learnt number, biases too, moved off its start."""
    numbers, rest = split(net)
    rng = np.random.default_rng(1)
    shift = lambda leaf: leaf + 0.1 * rng.normal(size=leaf.shape).astype(leaf.dtype)  # noqa: E731
    return eqx.combine(jax.tree.map(shift, numbers), rest)


def compiled(net):
    return eqx.filter_jit(paramax.unwrap(net))


# The nets by hand.


def convolved(layer, x):
    weight, before = np.asarray(layer.weight), (layer.weight.shape[0] - 1) // 2
    padded = np.pad(x, ((before, before), (before, before), (0, 0)))
    planes = [signal.correlate(padded, w, mode="valid") for w in np.moveaxis(weight, -1, 0)]
    return np.concatenate(planes, axis=-1) + np.asarray(layer.bias)


def pooled(x):
    return (x[::2, ::2] + x[1::2, ::2] + x[::2, 1::2] + x[1::2, 1::2]) / 4


def last(net, y):
    return y.mean(axis=(0, 1)) @ np.asarray(net.last.weight)[:, 0] + float(net.last.bias[0])


def by_hand(net, x, act):
    y = np.asarray(x, float).reshape(net.shape)
    if isinstance(net, ConvNet):
        one, two, three, four, five = net.layers
        y = pooled(act(convolved(two, act(convolved(one, y)))))
        y = pooled(act(convolved(four, act(convolved(three, y)))))
        return last(net, act(convolved(five, y)))
    y = convolved(net.first, y)
    for index, block in enumerate(net.blocks):
        side = convolved(block.second, act(convolved(block.first, act(y))))
        y = pooled(side + convolved(block.shortcut, y)) if index < 2 else side + y
    return last(net, act(y))


@pytest.mark.usefixtures("x64")
@pytest.mark.parametrize("activation", ACTIVATIONS)
@pytest.mark.parametrize("name", NETS)
@pytest.mark.parametrize("shape", [(8, 8, 1), (8, 12, 3)], ids=str)
def test_a_net_is_what_it_is_by_hand(name, shape, activation):
    act, same = ACTIVATIONS[activation]
    net = moved(NETS[name](shape, 4, act, key=KEY))
    points = pictures(3, shape)
    values = jax.vmap(compiled(net))(jnp.asarray(points))
    np.testing.assert_allclose(values, [by_hand(net, x, same) for x in points], rtol=1e-10)
    assert np.ptp(values) > 1e-4


@pytest.mark.usefixtures("x64")
@pytest.mark.parametrize("name", NETS)
def test_only_a_smooth_activation_gives_f_a_curvature(name):
    """With leaky ReLUs f is piecewise linear."""

    def curvature(act):
        net = NETS[name]((8, 8, 1), 4, act, key=KEY)
        x, direction = jnp.asarray(pictures(2, (8, 8, 1)))
        score, change = jax.jit(lambda x, d: jax.jvp(jax.grad(net), (x,), (d,)))(x, direction)
        assert np.abs(score).max() > 1e-3
        return np.abs(change).max()

    assert curvature(leaky_relu) == 0
    assert curvature(jax.nn.silu) > 1e-3


def test_the_papers_widths():
    """Table 4, for pictures of 32 x 32 x 3."""
    net = eqx.filter_eval_shape(lambda: ConvNet((32, 32, 3), key=KEY))
    widths = (3, 64, 128, 128, 256, 256)
    convolutions = [(3, 3, *pair) for pair in pairwise(widths)]
    assert [layer.weight.shape for layer in net.layers] == convolutions
    assert net.last.weight.shape == (256, 1)


def test_a_residual_block_has_a_shortcut_where_it_changes_the_shape():
    net = eqx.filter_eval_shape(lambda: ResidualNet((8, 8, 1), 4, key=KEY))
    assert [block.halves for block in net.blocks] == [True, True, False, False]
    assert [block.shortcut is None for block in net.blocks] == [False, False, True, True]


@pytest.mark.parametrize("name", NETS)
def test_sides_must_be_multiples_of_four(name):
    with pytest.raises(InputError, match=r"30 x 28, and this net halves them twice: crop or pad"):
        NETS[name]((30, 28, 1), 4, key=KEY)
    with pytest.raises(InputError, match=r"28 x 30.*to multiples of 4\."):
        NETS[name]((28, 30, 1), 4, key=KEY)
    value = eqx.filter_eval_shape(NETS[name]((28, 28, 1), 4, key=KEY), jnp.zeros(784))
    assert (value.shape, value.dtype) == ((), jnp.float32)


@pytest.mark.parametrize("name", NETS)
def test_a_net_in_half_the_precision(name):
    """bfloat16 has 8 bits, an error of 0.4 % each time: after all layers, 5 % of what f varies by.

    What is learnt, f itself and its score are in full precision.
    """
    shape = (8, 8, 3)

    def of(dtype):
        return NETS[name](shape, 4, jax.nn.silu, wrap=spectral(dtype), key=KEY)

    full, half = of(jnp.float32), of(jnp.bfloat16)
    assert {leaf.dtype for leaf in jax.tree.leaves(learnt(half))} == {jnp.dtype("float32")}
    np.testing.assert_array_equal(flat(half)[0], flat(full)[0])
    inside = [leaf for leaf in jax.tree.leaves(paramax.unwrap(half)) if leaf.ndim > 1]
    assert {leaf.dtype for leaf in inside} == {jnp.dtype("bfloat16")}

    points = jnp.asarray(pictures(16, shape), jnp.float32)
    values, scores = zip(
        *(
            jax.jit(jax.vmap(jax.value_and_grad(paramax.unwrap(net))))(points)
            for net in (full, half)
        ),
        strict=True,
    )
    assert values[1].dtype == scores[1].dtype == jnp.float32
    error = np.abs(values[1] - values[0]).max()
    assert 0 < error < 0.05 * np.std(values[0]) + 2**-8 * np.abs(values[0]).max()
    cosines = np.sum(scores[0] * scores[1], axis=1) / np.prod(
        [np.linalg.norm(score, axis=1) for score in scores], axis=0
    )
    assert 0.99 < cosines.min() < 1 - 1e-7


@pytest.mark.usefixtures("x64")
@pytest.mark.parametrize("name", NETS)
def test_a_spectral_norm_takes_the_size_of_the_weights_away(name):
    """Seven times as large weights make no other f; without the norms they do."""
    x = jnp.asarray(pictures(1, (8, 8, 1))[0])

    def values(wrap):
        net = NETS[name]((8, 8, 1), 4, wrap=wrap, key=KEY)
        numbers, rest = split(net)
        larger = eqx.combine(jax.tree.map(lambda leaf: 7 * leaf, numbers), rest)
        return [float(compiled(each)(x)) for each in (net, larger)]

    before, after = values(spectral(jnp.float64))
    assert after == pytest.approx(before, rel=1e-10)
    before, after = values(plain)
    assert after != pytest.approx(before, rel=0.5)


def test_a_scale_is_learnt():
    net = Scaled(ConvNet((8, 8, 1), 4, wrap=spectral(), key=KEY), jnp.asarray(30.0))
    x = jnp.asarray(pictures(1, (8, 8, 1))[0], jnp.float32)
    inner = float(compiled(net.potential)(x))
    value, gradient = eqx.filter_jit(eqx.filter_value_and_grad(lambda net: paramax.unwrap(net)(x)))(
        net
    )
    assert float(value) == pytest.approx(30 * inner, rel=1e-5)
    assert float(gradient.scale) == pytest.approx(inner, rel=1e-5)
    assert flat(net)[0].size == flat(net.potential)[0].size + 1
