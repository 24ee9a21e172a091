"""Spectral norms against singular value decompositions, and weights in two precisions."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import paramax
import pytest

from fenchel.parameters import flat, given, learnt
from fenchel.weights import Rounded, SpectralNorm, renewed, rounded

SHAPES = {"convolution": (3, 3, 2, 5), "dense": (7, 5), "to one number": (6, 1)}
KEY = jax.random.key(0)


def weight_of(shape, ratio=0.5):
    """With the singular values 3, 3 ratio, 3 ratio², ..., so that convergence has a known rate."""
    rng = np.random.default_rng(1)
    rows, columns = int(np.prod(shape[:-1])), shape[-1]
    left, right = (np.linalg.qr(rng.normal(size=(n, columns)))[0] for n in (rows, columns))
    return jnp.asarray((left * (3 * ratio ** np.arange(columns))) @ right.T).reshape(shape)


def spectral(shape, ratio=0.5):
    return SpectralNorm(weight_of(shape, ratio), key=KEY)


def matrix(weight):
    return np.asarray(weight).reshape(-1, weight.shape[-1])


def vectors(norm):
    return [np.asarray(paramax.unwrap(vector)) for vector in (norm.left, norm.right)]


def norm_of(norm):
    """What it divides by."""
    return float(np.ravel(norm.weight)[0] / np.ravel(paramax.unwrap(norm))[0])


@pytest.mark.usefixtures("x64")
class TestSpectralNorm:
    @pytest.mark.parametrize("shape", SHAPES.values(), ids=SHAPES)
    def test_the_largest_singular_value_is_one(self, shape):
        """Errors shrink by 4 an iteration: after 50 there is none left."""
        unwrapped = paramax.unwrap(renewed(spectral(shape), times=50))
        assert unwrapped.shape == shape
        values = np.linalg.svd(matrix(unwrapped), compute_uv=False)
        np.testing.assert_allclose(values, 0.5 ** np.arange(shape[-1]), atol=1e-12)

    def test_the_norm_grows_to_the_true_one_and_never_beyond(self):
        """|W v| of a power iteration never falls; here it converges slowly."""
        norms = [spectral((7, 5), ratio=0.97)]
        for _ in range(300):
            norms.append(renewed(norms[-1]))
        values = np.array([norm_of(norm) for norm in norms])
        assert np.all(np.diff(values) > -1e-12)
        assert values[0] < 2.999 < values[-1] < 3 + 1e-12  # the first is yet to converge

    def test_a_fresh_norm_is_already_near(self):
        """A random pair of vectors would give a part of the norm only, of either sign."""
        rng = np.random.default_rng(2)
        weight = jnp.asarray(rng.normal(size=(36, 8)))
        true = np.linalg.svd(weight, compute_uv=False)[0]
        fresh = [norm_of(SpectralNorm(weight, key=key)) for key in jax.random.split(KEY, 10)]
        assert 0.9 * true < min(fresh) <= max(fresh) <= true + 1e-9

    @pytest.mark.parametrize("shape", SHAPES.values(), ids=SHAPES)
    def test_renewed_is_one_power_iteration(self, shape):
        before = spectral(shape, ratio=0.97)
        after = renewed(before)
        right = matrix(before.weight).T @ vectors(before)[0]
        right /= np.linalg.norm(right)
        left = matrix(before.weight) @ right
        left /= np.linalg.norm(left)
        np.testing.assert_allclose(vectors(after)[0], left, atol=1e-12)
        np.testing.assert_allclose(vectors(after)[1], right, atol=1e-12)
        np.testing.assert_array_equal(after.weight, before.weight)
        if shape[-1] > 1:  # else there is one direction only, and it is known at once
            assert np.abs(vectors(after)[1] - vectors(before)[1]).max() > 1e-3

    @pytest.mark.parametrize("shape", SHAPES.values(), ids=SHAPES)
    def test_its_gradient_is_that_of_the_weight_by_its_norm(self, shape):
        """Though the vectors stand still: the norm is stationary in them (envelope theorem)."""
        norm = renewed(spectral(shape), times=50)
        c = jnp.asarray(np.random.default_rng(3).normal(size=shape))

        def by_vectors(weight, norm=norm):
            norm = eqx.tree_at(lambda s: s.weight, norm, weight)
            return jnp.sum(c * jnp.sin(paramax.unwrap(norm)))

        def by_decomposition(weight):
            size = jnp.linalg.norm(weight.reshape(-1, shape[-1]), 2)
            return jnp.sum(c * jnp.sin(weight / size))

        def by_a_constant(weight):
            return jnp.sum(c * jnp.sin(weight / 3))

        ours, true, other = (
            jax.grad(f)(norm.weight) for f in (by_vectors, by_decomposition, by_a_constant)
        )
        np.testing.assert_allclose(ours, true, atol=1e-9)
        assert np.abs(other - true).max() > 1e-2  # negative control: the norm matters
        if shape[-1] > 1:  # and so does it that the vectors fit
            early = jax.grad(by_vectors)(norm.weight, spectral(shape, ratio=0.97))
            assert np.abs(early - true).max() > 1e-3

    def test_nothing_but_the_weight_is_learnt(self):
        norm = spectral((7, 5))
        leaves = jax.tree.leaves(learnt(norm))
        assert len(leaves) == 1
        np.testing.assert_array_equal(leaves[0], norm.weight)
        assert flat(norm)[0].size == 35
        gradient = jax.grad(lambda norm: jnp.sum(paramax.unwrap(norm) ** 3))(norm)
        assert all(np.all(vector == 0) for vector in vectors(gradient))
        assert np.abs(gradient.weight).max() > 1e-3

    def test_the_size_of_the_weight_does_not_matter(self):
        norm = spectral((3, 3, 2, 5), ratio=0.97)
        larger = eqx.tree_at(lambda s: s.weight, norm, 7 * norm.weight)
        np.testing.assert_allclose(paramax.unwrap(larger), paramax.unwrap(norm), rtol=1e-12)
        after, as_before = renewed(larger), renewed(norm)
        np.testing.assert_allclose(vectors(after)[0], vectors(as_before)[0], atol=1e-12)


def test_renewed_finds_every_norm_of_a_tree_and_leaves_the_rest():
    """Within other wrappers, and of weights that are given, too."""
    tree = {
        "plain": jnp.arange(3.0),
        "name": "net",
        "norm": spectral((7, 5), 0.97),
        "rounded": rounded(spectral((3, 3, 2, 5), 0.97), jnp.bfloat16),
        "given": given(spectral((7, 5), 0.97)),
    }
    after = renewed(tree, times=2)
    np.testing.assert_array_equal(after["plain"], tree["plain"])
    assert after["name"] == "net"
    assert jax.tree.structure(after) == jax.tree.structure(tree)
    for find in (lambda t: t["norm"], lambda t: t["rounded"].numbers):
        for vector, expected in zip(
            vectors(find(after)), vectors(renewed(renewed(find(tree)))), strict=True
        ):
            np.testing.assert_array_equal(vector, expected)
        assert np.abs(vectors(find(after))[0] - vectors(find(tree))[0]).max() > 1e-4
    np.testing.assert_allclose(vectors(after["given"])[0], vectors(after["norm"])[0], atol=1e-6)
    assert jax.tree.leaves(learnt(after["given"])) == []


def test_weights_are_used_in_one_precision_and_learnt_in_another():
    numbers = jnp.asarray(1 + 2.0 ** -np.arange(12), jnp.float32)
    wrapped = rounded(numbers, jnp.bfloat16)
    assert isinstance(wrapped, Rounded)
    assert paramax.unwrap(wrapped).dtype == jnp.bfloat16
    np.testing.assert_array_equal(paramax.unwrap(wrapped)[8:], 1)  # 8 bits are all there are
    (kept,) = jax.tree.leaves(learnt(wrapped))
    np.testing.assert_array_equal(kept, numbers)
    gradient = jax.grad(lambda wrapped: jnp.sum(paramax.unwrap(wrapped).astype(float) ** 2))(
        wrapped
    )
    assert gradient.numbers.dtype == jnp.float32
    np.testing.assert_allclose(gradient.numbers, 2 * numbers, rtol=2**-7)


def test_a_rounded_spectral_norm_is_divided_first():
    """In full precision, and rounded once."""
    norm = spectral((7, 5))
    np.testing.assert_array_equal(
        paramax.unwrap(rounded(norm, jnp.bfloat16)), paramax.unwrap(norm).astype(jnp.bfloat16)
    )
