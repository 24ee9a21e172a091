"""What pulls at the dynamics' numbers: one sum over points, however many steps there are."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import paramax
import pytest
from jax.extend.core import ClosedJaxpr, Jaxpr

from fenchel.dynamics import CentredNormal, Damped, Repeat
from fenchel.samplers import Embedding
from fenchel.starts import Empirical

KEY = jax.random.key(0)
POINTS, DIM = 7, 5
DATA = jax.random.normal(jax.random.key(1), (POINTS, DIM))


def potential(x):
    return -jnp.sum(jnp.cosh(x - 0.3))


def sampler(step_size, count):
    start = Empirical(CentredNormal(DIM))
    return Embedding(start, Repeat(Damped(step_size, jnp.asarray(0.9)), count))


def value(step_size, count):
    draw, _ = sampler(step_size, count).draw(potential, DATA, None, KEY)
    return jnp.mean(jnp.sum(draw.x**2, axis=-1))


def one_by_one(step_size, count):
    """The same, a point at a time and without any batch."""
    start_keys, move_keys = jax.random.split(KEY, (2, POINTS))
    embedding, total = paramax.unwrap(sampler(step_size, count)), 0.0
    for point, start_key, move_key in zip(DATA, start_keys, move_keys, strict=True):
        first = embedding._first(potential, point, None, start_key)
        total += jnp.sum(embedding.dynamics(potential, first, move_key).x ** 2)
    return total / POINTS


@pytest.mark.parametrize("count", [1, 3, 8])
def test_the_gradient_is_that_of_the_points_one_by_one(count):
    step_size = jnp.linspace(0.05, 0.2, DIM)
    found = jax.value_and_grad(value)(step_size, count)
    expected = jax.value_and_grad(one_by_one)(step_size, count)
    for ours, theirs in zip(found, expected, strict=True):
        np.testing.assert_allclose(ours, theirs, rtol=1e-5)
    assert np.abs(found[1]).min() > 1e-3


@pytest.mark.parametrize("count", [1, 8])
def test_points_are_summed_over_once(count):
    jaxpr = jax.make_jaxpr(jax.grad(value), static_argnums=1)(jnp.full(DIM, 0.1), count)
    assert sums_over_points(jaxpr.jaxpr) == 1


def sums_over_points(jaxpr):
    """How many sums are made of a number a point and a dimension to one a dimension."""
    found = 0
    for equation in jaxpr.eqns:
        if equation.primitive.name == "reduce_sum":
            shapes = equation.invars[0].aval.shape, equation.outvars[0].aval.shape
            found += shapes == ((POINTS, DIM), (DIM,))
        times = equation.params.get("length", 1)  # of a loop
        for inner in jax.tree.leaves(equation.params, is_leaf=_is_jaxpr):
            if _is_jaxpr(inner):
                found += times * sums_over_points(getattr(inner, "jaxpr", inner))
    return found


def _is_jaxpr(node):
    return isinstance(node, ClosedJaxpr | Jaxpr)


def test_matrices_stay_shared():
    """A copy of a net for every point would make each product many."""
    net = eqx.nn.Linear(DIM, DIM, key=KEY)

    class Pushed(Damped):
        net: eqx.nn.Linear = eqx.field(kw_only=True)

        def __call__(self, f, particle, key):
            return super().__call__(f, particle.kicked(self.net(particle.x), 0.0), key)

    push = Pushed(jnp.asarray(0.1), jnp.asarray(0.9), net=net)
    embedding = eqx.tree_at(lambda s: s.dynamics, sampler(0.1, 1), push)
    drawing = lambda: embedding.draw(potential, DATA, None, KEY)[0].x  # noqa: E731
    (product,) = (e for e in jax.make_jaxpr(drawing)().eqns if e.primitive.name == "dot_general")
    assert (DIM, DIM) in [operand.aval.shape for operand in product.invars]
