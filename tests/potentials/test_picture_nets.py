"""f of a picture, against the same nets written out in NumPy and SciPy."""

from itertools import pairwise

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import paramax
import pytest
from scipy import signal

from fenchel.activations import leaky_relu
from fenchel.errors import InputError
from fenchel.layers import Dense
from fenchel.parameters import flat, learnt, split
from fenchel.potentials import ConvNet, DiagonalGaussian, ResidualNet, Scaled, spectral
from fenchel.weights import rounded

KEY = jax.random.key(0)
NETS = {"convolutional": ConvNet, "residual": ResidualNet}
ACTIVATIONS = {
    "leaky": (leaky_relu, lambda y: np.where(y > 0, y, 0.1 * y)),
    "smooth": (jax.nn.silu, lambda y: y / (1 + np.exp(-y))),
}


def pictures(n, shape, seed=0):
    return np.random.default_rng(seed).uniform(-1, 1, (n, int(np.prod(shape))))


def made(kind, *args, **kwargs):
    """As one program: weight by weight it would be compiled for longer."""
    return eqx.filter_jit(lambda: kind(*args, **kwargs, key=KEY))()


def moved(net):
    """With every learnt number, biases too, moved off its start."""
    numbers, rest = split(net)
    rng = np.random.default_rng(1)
    shift = lambda leaf: leaf + 0.1 * rng.normal(size=leaf.shape).astype(leaf.dtype)  # noqa: E731
    return eqx.combine(jax.tree.map(shift, numbers), rest)


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
@pytest.mark.parametrize(
    ("name", "shape", "activation"),
    [("convolutional", (8, 12, 3), "leaky"), ("residual", (8, 8, 1), "smooth")],
    ids=["convolutional, leaky, in colour", "residual, smooth"],
)
def test_a_net_is_what_it_is_by_hand(name, shape, activation):
    act, same = ACTIVATIONS[activation]
    net = moved(made(NETS[name], shape, 4, act))
    points = pictures(3, shape)
    values = jax.jit(jax.vmap(net))(jnp.asarray(points))
    np.testing.assert_allclose(values, [by_hand(net, x, same) for x in points], rtol=1e-10)
    assert np.ptp(values) > 1e-4


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
    value = eqx.filter_eval_shape(lambda: NETS[name]((28, 28, 1), 4, key=KEY)(jnp.zeros(784)))
    assert (value.shape, value.dtype) == ((), jnp.float32)


def test_a_net_in_half_the_precision():
    """bfloat16 has 8 bits: after all layers 5 % of what f varies by, and the last bit of f itself.

    What is learnt, f itself and its score are in full precision.
    """
    shape = (8, 8, 3)

    def of(dtype):
        return made(ConvNet, shape, 4, jax.nn.silu, lambda weight, _: rounded(weight, dtype))

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


def test_a_spectral_weight_is_normed_rounded_and_learnt():
    layer = Dense(6, 5, spectral(jnp.bfloat16), key=KEY)
    plain = Dense(6, 5, key=KEY)
    inside = paramax.unwrap(layer).weight
    assert inside.dtype == jnp.bfloat16
    # 8 bits of each number, and a norm that ten power iterations found.
    assert np.linalg.norm(np.asarray(inside, float), 2) == pytest.approx(1, rel=0.05)
    assert np.linalg.norm(plain.weight, 2) > 1.2
    np.testing.assert_array_equal(flat(layer)[0], flat(plain)[0])
    assert paramax.unwrap(Dense(6, 5, spectral(), key=KEY)).weight.dtype == jnp.float32


def test_a_scale_is_learnt():
    inner = DiagonalGaussian(jnp.array([0.3, -0.2]), jnp.array([0.1, 0.5]))
    x = jnp.array([1.0, 2.0])
    value, gradient = jax.value_and_grad(lambda f: f(x))(Scaled(inner, jnp.asarray(30.0)))
    assert float(value) == pytest.approx(30 * float(inner(x)), rel=1e-6)
    assert float(gradient.scale) == pytest.approx(float(inner(x)), rel=1e-6)
