"""The latent variable model of pictures: its density by SciPy, its entropy, its weights.

The statistical tests use fixed seeds, so they pass or fail for good; the rates they state are those
at which a correct implementation would fail over the choice of those seeds.
"""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import paramax
import pytest
from scipy import stats

from fenchel.dynamics import CentredNormal, Chain
from fenchel.parameters import split
from fenchel.potentials import spectral
from fenchel.samplers import Embedding
from fenchel.starts import BATCH, DeepPicture, deconvolutional

pytestmark = pytest.mark.usefixtures("x64")

SHAPE, DIM, LATENT = (8, 8, 1), 64, 3
KEY = jax.random.key(0)
STANDARD_ERRORS = 4.5  # fails 1 in 10⁵


def picture_start(largest=1e-3):
    """With every learnt number moved off its start."""
    generator = eqx.filter_jit(deconvolutional)(SHAPE, LATENT, 4, spectral(jnp.float64), key=KEY)
    start = DeepPicture(generator, CentredNormal(DIM), LATENT, largest)
    numbers, rest = split(start)
    rng = np.random.default_rng(1)
    return eqx.combine(
        jax.tree.map(lambda leaf: leaf + 0.2 * rng.normal(size=leaf.shape), numbers), rest
    )


@eqx.filter_jit
def draws(start, keys):
    """As a sampler draws them."""
    start = paramax.unwrap(start)
    draw = jax.vmap(lambda key: start.draw(jnp.zeros(DIM), None, key), axis_name=BATCH)
    return draw(keys)


class Recorded(eqx.Module):
    """A generator that keeps the latent variables that it was asked for."""

    generator: eqx.Module
    asked: list = eqx.field(static=True)

    def __call__(self, z):
        self.asked.append(z)
        return self.generator(z)


def test_log_q_is_that_of_the_pixels_given_z_and_of_the_momentum():
    largest = 0.02
    start = paramax.unwrap(eqx.filter_jit(picture_start(largest).settled)(KEY))
    recorded = eqx.tree_at(lambda s: s.generator, start, Recorded(start.generator, []))
    for key in jax.random.split(jax.random.key(1), 3):
        x, v, log_q = recorded.draw(jnp.zeros(DIM), None, key)
        mean, spread = start.generator(recorded.generator.asked[-1])
        deviation = largest / (1 + np.exp(-np.asarray(spread)))
        pixels = stats.norm(mean, deviation).logpdf(x)
        momentum = stats.norm(0, start.momentum.scale).logpdf(v)
        np.testing.assert_allclose(log_q, pixels.sum() + momentum.sum(), rtol=1e-10)
        assert np.ptp(deviation) > 0.1 * largest  # each pixel has its own
        # Negative control: around another picture it is not what was drawn.
        assert stats.norm(0, deviation).logpdf(x).sum() < pixels.sum() - 10
    z = np.array(recorded.generator.asked)
    assert z.shape == (3, LATENT)
    assert len(np.unique(z)) == z.size


def test_a_draw_does_not_depend_on_its_batch_once_settled():
    """As a sampler hands it out; while it is learnt, it does."""
    start = picture_start()
    sampler = Embedding(start, Chain())
    settled = eqx.filter_jit(sampler.settled)(jax.random.key(3)).start
    keys = jax.random.split(jax.random.key(4), 8)
    others = jax.random.split(jax.random.key(5), 8).at[0].set(keys[0])
    for one, other in zip(draws(settled, keys), draws(settled, others), strict=True):
        np.testing.assert_allclose(one[0], other[0], rtol=1e-12)
    learning = [draws(start, each)[0][0] for each in (keys, others)]
    assert np.abs(learning[0] - learning[1]).max() > 1e-2
    # What was learnt is as it was, and still is what is learnt.
    for a, b in zip(
        jax.tree.leaves(split(start)[0]), jax.tree.leaves(split(settled)[0]), strict=True
    ):
        np.testing.assert_array_equal(a, b)


class Constant(eqx.Module):
    """A generator that does not care for z."""

    mean: jax.Array
    spread: jax.Array

    def __call__(self, z):
        return self.mean, self.spread


def test_the_mean_of_minus_log_q_is_the_entropy():
    """A mean of 4,000 draws within 4.5 standard errors: fails 1 in 10⁵."""
    spread = jnp.asarray(np.random.default_rng(2).normal(size=DIM))
    start = DeepPicture(
        Constant(jnp.linspace(-1, 1, DIM), spread), CentredNormal(DIM, 4.0), LATENT, 0.01
    )
    x, v, log_q = draws(start, jax.random.split(jax.random.key(6), 4_000))
    deviation = 0.01 / (1 + np.exp(-np.asarray(spread)))
    entropy = stats.norm(0, deviation).entropy().sum() + DIM * stats.norm(0, 0.5).entropy()
    error = np.std(log_q) / np.sqrt(len(log_q))
    # Twice the entropy's own noise is a chi-squared of 128 degrees.
    assert np.std(log_q) == pytest.approx(np.sqrt(DIM), rel=0.1)
    assert abs(np.mean(-log_q) - entropy) < STANDARD_ERRORS * error
    # A deviation that is 2 % larger than it says would be seen.
    assert abs(np.mean(-log_q) - entropy - DIM * np.log(1.02)) > STANDARD_ERRORS * error
    standard = (np.asarray(x) - np.linspace(-1, 1, DIM)) / deviation
    assert stats.kstest(standard[::8].ravel(), stats.norm.cdf).pvalue > 1e-5
    assert stats.kstest(np.asarray(v)[::8].ravel() / 0.5, stats.norm.cdf).pvalue > 1e-5


class Bent(eqx.Module):
    """One pixel, wherever z says."""

    def __call__(self, z):
        return jnp.tanh(z[:1]), 0.5 * z[1:2]


class Narrow(eqx.Module):
    def __call__(self, x):
        return -0.5 * jnp.sum((x - 0.2) ** 2) / 0.6**2


def test_the_weights_are_those_of_the_partition_function():
    """Though log_q says nothing of z, which is a variable of the model as well.

    A mean of 4,000 weights within 4.5 standard errors: fails 1 in 10⁵.
    """
    sampler = Embedding(DeepPicture(Bent(), CentredNormal(1), 2, 4.0), Chain())
    assert sampler.exact
    particles, _ = eqx.filter_jit(sampler.draw)(Narrow(), jnp.zeros((4_000, 1)), None, KEY)
    weights = np.exp(particles.log_weight)
    error = np.std(weights) / np.sqrt(len(weights))
    true = 0.6 * np.sqrt(2 * np.pi)
    assert abs(np.mean(weights) - true) < STANDARD_ERRORS * error
    assert abs(np.mean(weights) - 1.2 * true) > STANDARD_ERRORS * error  # negative control
    assert np.mean(particles.log_weight) < np.log(true)  # and the paper's is a lower bound
