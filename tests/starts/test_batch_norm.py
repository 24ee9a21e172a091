"""Batch norms and the nets from a latent variable to a picture, while learnt and once settled."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import paramax
import pytest

from fenchel.layers import Convolution, Dense, Doubling, plain
from fenchel.parameters import flat, learnt, split
from fenchel.potentials import spectral
from fenchel.starts import BATCH, BatchNorm, SettledNorm, deconvolutional, residual_generator
from fenchel.starts.batch_norm import EPSILON
from fenchel.weights import rounded

KEY = jax.random.key(0)
LATENT = 3
MAKERS = {"deconvolutional": deconvolutional, "residual": residual_generator}


def inputs(n=5, channels=2, seed=0):
    """A batch of pictures whose channels have means and sizes of their own."""
    noise = np.random.default_rng(seed).normal(size=(n, 4, 6, channels))
    return jnp.asarray(3 + noise * np.arange(1, channels + 1))


@eqx.filter_jit
def together(layer, batch):
    """As a sampler calls it."""
    return jax.vmap(paramax.unwrap(layer), axis_name=BATCH)(batch)


@eqx.filter_jit
def settled_by(layer, batch):
    return layer.settled(batch)


@eqx.filter_jit
def alone(layer, batch):
    """With nobody to share statistics with."""
    return jax.vmap(paramax.unwrap(layer))(batch)


def made(name, shape, width, wrap=plain):
    """As one program: weight by weight it would be compiled for longer."""
    return eqx.filter_jit(lambda: MAKERS[name](shape, LATENT, width, wrap, key=KEY))()


def moved(tree):
    """With every learnt number moved off its start."""
    numbers, rest = split(tree)
    rng = np.random.default_rng(1)
    return eqx.combine(
        jax.tree.map(lambda leaf: leaf + 0.2 * rng.normal(size=leaf.shape), numbers), rest
    )


@pytest.mark.usefixtures("x64")
class TestBatchNorm:
    def test_channels_have_mean_zero_and_variance_one(self):
        batch = inputs()
        y = together(BatchNorm(2), batch)
        np.testing.assert_allclose(np.mean(y, axis=(0, 1, 2)), 0, atol=1e-12)
        variance = np.var(batch, axis=(0, 1, 2))
        expected = variance / (variance + EPSILON)
        np.testing.assert_allclose(np.var(y, axis=(0, 1, 2)), expected, rtol=1e-10)
        # Those of the whole batch, and not of each of its pictures.
        assert np.abs(np.mean(y, axis=(1, 2))).max() > 0.1

    def test_then_their_learnt_mean_and_size(self):
        layer = eqx.tree_at(
            lambda n: (n.gain, n.shift),
            BatchNorm(2),
            (jnp.array([2.0, -0.5]), jnp.array([1.0, 7.0])),
        )
        y = together(layer, inputs())
        np.testing.assert_allclose(np.mean(y, axis=(0, 1, 2)), [1, 7], atol=1e-12)
        np.testing.assert_allclose(np.std(y, axis=(0, 1, 2)), [2, 0.5], rtol=1e-4)

    def test_gradients_see_the_statistics(self):
        """The sum over a batch is 0 whatever the inputs, that of squares n s² / (s² + ε)."""
        batch = inputs()

        def gradient(layer, power):
            return jax.grad(lambda batch: jnp.sum(together(layer, batch) ** power))(batch)

        norm, settled = BatchNorm(2), BatchNorm(2).settled(batch)
        centred = np.asarray(batch) - np.asarray(jnp.mean(batch, axis=(0, 1, 2)))
        variance = np.mean(centred**2, axis=(0, 1, 2))
        np.testing.assert_allclose(gradient(norm, 1), 0, atol=1e-12)
        squares = 2 * centred * EPSILON / (variance + EPSILON) ** 2
        np.testing.assert_allclose(gradient(norm, 2), squares, atol=1e-12)
        for power in (1, 2):  # negative control
            assert np.abs(gradient(settled, power)).max() > 0.1

    def test_settled_is_the_same_on_the_batch_that_settled_it(self):
        layer, batch = moved(BatchNorm(2)), inputs()
        settled = layer.settled(batch)
        assert isinstance(settled, SettledNorm)
        np.testing.assert_allclose(alone(settled, batch), together(layer, batch), atol=1e-12)
        other = inputs(seed=2) * 2  # and another function of another batch
        assert not np.allclose(alone(settled, other), together(layer, other), atol=0.1)

    def test_the_statistics_are_given(self):
        assert flat(BatchNorm(2).settled(inputs()))[0].size == 4


def generator(name, wrap=plain):
    return moved(made(name, (8, 8, 1), 4, wrap))


def latent(n=6, seed=0):
    return jnp.asarray(np.random.default_rng(seed).normal(size=(n, LATENT)))


@pytest.mark.usefixtures("x64")
@pytest.mark.parametrize(
    ("name", "wrap"),
    [("deconvolutional", spectral(jnp.float64)), ("residual", plain)],
    ids=["deconvolutional, with norms", "residual"],
)
def test_a_settled_generator_draws_alone_what_it_drew_in_the_batch(name, wrap):
    net, z = generator(name, wrap), latent()
    settled = settled_by(net, z)
    for one, other in zip(together(net, z), alone(settled, z), strict=True):
        np.testing.assert_allclose(one, other, atol=1e-10)
        assert np.ptp(one) > 0.05
    # It is settled, and what was learnt of it still is.
    np.testing.assert_array_equal(flat(settled)[0], flat(net)[0])
    again = settled_by(settled, latent(seed=5))
    np.testing.assert_array_equal(alone(again, z)[0], alone(settled, z)[0])


@pytest.mark.usefixtures("x64")
def test_whom_one_is_drawn_with_matters_only_while_learning():
    net, z, others = generator("residual"), latent(), latent(seed=1).at[0].set(latent()[0])
    settled = settled_by(net, latent(n=20, seed=2))
    mean, spread = (out[0] for out in together(settled, z))
    for out, expected in zip(together(settled, others), (mean, spread), strict=True):
        np.testing.assert_array_equal(out[0], expected)
    learning = [together(net, batch)[0][0] for batch in (z, others)]
    assert np.abs(learning[0] - learning[1]).max() > 1e-2  # negative control


@pytest.mark.parametrize("name", MAKERS)
@pytest.mark.parametrize("shape", [(8, 8, 1), (12, 8, 3), (28, 28, 1), (32, 32, 3)], ids=str)
def test_pictures_of_any_even_size(name, shape):
    def drawn():
        return together(MAKERS[name](shape, LATENT, 2, key=KEY), jnp.zeros((2, LATENT)))

    mean, spread = eqx.filter_eval_shape(drawn)
    size = int(np.prod(shape))
    assert (mean.shape, spread.shape, mean.dtype) == ((2, size), (2, size), jnp.float32)


def test_means_are_pixels_and_begin_inside():
    mean, _ = together(made("deconvolutional", (8, 8, 1), 4), latent())
    assert 0.01 < np.abs(mean).max() < 0.9
    far, _ = together(
        eqx.tree_at(
            lambda net: net.layers[-1].bias, generator("deconvolutional"), jnp.array([9.0, 0.0])
        ),
        latent(),
    )
    assert 0.99 < far.min() <= far.max() <= 1


def test_the_papers_widths():
    """Pictures of 32 x 32 x 3: 512 channels of 4 x 4, then 256, 128, 64 at twice the size each."""
    net = eqx.filter_eval_shape(lambda: deconvolutional((32, 32, 3), 256, key=KEY))
    found = [layer.weight.shape for layer in net.layers if isinstance(layer, Dense | Doubling)]
    assert found == [(256, 4 * 4 * 512), (512, 4 * 256), (256, 4 * 128), (128, 4 * 64)]
    assert isinstance(net.layers[-1], Convolution)
    assert net.layers[-1].weight.shape == (3, 3, 64, 2 * 3)
    norms = [layer.gain.shape for layer in net.layers if isinstance(layer, BatchNorm)]
    assert norms == [(256,), (128,), (64,)]


def test_a_side_that_is_odd_after_halvings_begins_there():
    net = eqx.filter_eval_shape(lambda: deconvolutional((28, 28, 1), 10, 16, key=KEY))
    assert net.layers[0].weight.shape == (10, 7 * 7 * 64)


def test_half_the_precision_and_full_statistics():
    """bfloat16 costs less than 5 % of how much pictures vary; what is learnt is float32."""
    half, full = (
        made("deconvolutional", (8, 8, 1), 8, lambda weight, _, dtype=dtype: rounded(weight, dtype))
        for dtype in (jnp.bfloat16, jnp.float32)
    )
    assert {leaf.dtype for leaf in jax.tree.leaves(learnt(half))} == {jnp.dtype("float32")}
    z = latent(n=16).astype(jnp.float32)
    for net in (half, settled_by(half, z)):
        ours, true = together(net, z)[0], together(full, z)[0]
        assert ours.dtype == jnp.float32
        assert 0 < np.sqrt(np.mean((ours - true) ** 2)) < 0.05 * np.std(true)
