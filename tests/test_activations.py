"""Activations against their definitions."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from fenchel.activations import leaky_relu, silu

POINTS = np.linspace(-40.0, 40.0, 161)


def derivative(f, order):
    for _ in range(order):
        f = jax.grad(f)
    return jax.vmap(f)


@pytest.mark.usefixtures("x64")
@pytest.mark.parametrize("order", [0, 1, 2, 3])
def test_silu_and_its_derivatives_are_the_usual_ones(order):
    x = jnp.asarray(POINTS)
    found, expected = (derivative(f, order)(x) for f in (silu, jax.nn.silu))
    np.testing.assert_allclose(found, expected, rtol=1e-12, atol=1e-12)


def test_silu_loses_no_digits_that_matter_in_single_precision():
    x = POINTS.astype(np.float32)
    exact = POINTS / (1 + np.exp(-POINTS))
    np.testing.assert_allclose(silu(x), exact, rtol=1e-6, atol=1e-5)
    assert float(silu(jnp.float32(-200.0))) == 0.0


def test_silu_is_as_good_as_its_precision_where_that_is_low():
    """Eight bits: a rounding is 0.4%, and a product of two roundings and more 1%."""
    x = jnp.asarray(POINTS[(POINTS > -10) & (POINTS != 0)], jnp.bfloat16)
    exact = np.asarray(x, float) / (1 + np.exp(-np.asarray(x, float)))
    np.testing.assert_allclose(np.asarray(silu(x), float), exact, rtol=1e-2)


def test_the_leaky_relu_has_the_papers_slope():
    np.testing.assert_allclose(leaky_relu(jnp.array([-2.0, 0.0, 3.0])), [-0.2, 0.0, 3.0], rtol=1e-6)


def test_the_leaky_relus_derivatives_in_both_modes():
    x = jnp.array([-2.0, -1e-30, 0.0, 1e-30, 3.0])
    expected = [0.1, 0.1, 0.1, 1.0, 1.0]
    np.testing.assert_allclose(derivative(leaky_relu, 1)(x), expected, rtol=1e-6)
    np.testing.assert_allclose(jax.jvp(leaky_relu, (x,), (2 * x,))[1], 2 * x * jnp.array(expected))
    np.testing.assert_allclose(derivative(leaky_relu, 2)(x), 0.0)
    curved = derivative(lambda x: leaky_relu(x) ** 2, 2)(x)
    np.testing.assert_allclose(curved, 2 * np.square(expected), rtol=1e-6)


def whole_arrays(activation):
    """How many a loop of scores, and the way back through it, hold beside what goes around."""

    def final(w, x):
        def f(x):
            return jnp.sum(activation(w * activation(w * x)))

        return jnp.sum(jax.lax.scan(lambda x, _: (x + jax.grad(f)(x), None), x, length=3)[0])

    w = jnp.ones(1_000)
    loops = [e for e in jax.make_jaxpr(jax.grad(final))(w, w).eqns if e.primitive.name == "scan"]
    held = [v.aval.shape for e in loops for v in e.invars[: e.params["num_consts"]]]
    assert len(loops) == 2
    return held.count(w.shape)


def test_a_loop_of_scores_holds_no_constants_of_the_leaky_relus():
    assert whole_arrays(leaky_relu) < whole_arrays(lambda x: jax.nn.leaky_relu(x, 0.1))
