"""Discrete models against sums written out, and the graphs that they stand on."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from fenchel.errors import InputError
from fenchel.potentials import Ising, Potts, RestrictedBoltzmann, SelfNormalised, Within, graphs
from fenchel.states import all_states

KEY = jax.random.key(4)


def test_ising_is_its_sum():
    model = Ising(3, [(0, 1), (2, 1)])
    model = eqx.tree_at(
        lambda m: (m.couplings, m.fields), model, (jnp.array([0.5, -2.0]), jnp.array([1.0, 0, 3]))
    )
    assert model(jnp.array([1.0, -1.0, -1.0])) == pytest.approx(-0.5 - 2.0 + 1.0 - 3.0)


def test_potts_is_its_sum():
    model = Potts(3, 3, graphs.chain(3))
    fields = jnp.arange(9.0).reshape(3, 3)
    model = eqx.tree_at(lambda m: (m.couplings, m.fields), model, (jnp.array([0.5, -2.0]), fields))
    assert model(jnp.array([2.0, 2.0, 0.0])) == pytest.approx(0.5 + 2 + 5 + 6)
    assert model.states == (0.0, 1.0, 2.0)


def test_a_boltzmann_machine_sums_out_its_hidden_units():
    machine = RestrictedBoltzmann(3, 4, key=KEY)
    numbers = jax.random.normal(KEY, (4, 3)), jnp.array([0.3, -1, 2.0]), jnp.array([1.0, 0, -1, 2])
    machine = eqx.tree_at(lambda m: (m.weights, m.visible, m.hidden), machine, numbers)
    x = jnp.array([1.0, 0.0, 1.0])
    weights, visible, hidden = numbers
    joint = [visible @ x + h @ (hidden + weights @ x) for h in all_states((0.0, 1.0), 4)]
    assert machine(x) == pytest.approx(float(jax.nn.logsumexp(jnp.array(joint))), rel=1e-5)


def test_graphs():
    assert len(graphs.complete(5)) == 10
    np.testing.assert_array_equal(graphs.chain(3), [[0, 1], [1, 2]])
    assert {tuple(edge) for edge in graphs.grid(2, 3).tolist()} == {
        (0, 1), (1, 2), (3, 4), (4, 5), (0, 3), (1, 4), (2, 5),
    }  # fmt: skip


@pytest.mark.parametrize(
    ("edges", "words"), [([(0, 3)], "numbered from 0 to 2"), ([(0, 1), (1, 0)], "twice")]
)
def test_bad_graphs(edges, words):
    with pytest.raises(InputError, match=words):
        Ising(3, edges)


def test_a_potts_model_must_vary():
    with pytest.raises(InputError, match="at least 2"):
        Potts(3, 1)


def test_nothing_is_outside_of_a_box():
    model = Within(lambda x: -jnp.sum(x**2), 0.0, 1.0)
    import paramax

    f = paramax.unwrap(model)
    assert f(jnp.array([0.5, 0.2])) == pytest.approx(-0.29)
    assert f(jnp.array([0.5, 1.2])) == -jnp.inf
    np.testing.assert_allclose(jax.grad(f)(jnp.array([0.5, 0.2])), [-1.0, -0.4])
    assert jnp.all(jnp.isfinite(jax.grad(f)(jnp.array([0.5, 1.2]))))


def test_the_constant_is_learnt():
    model = SelfNormalised(lambda x: jnp.sum(x), 0.7)
    assert model(jnp.ones(2)) == pytest.approx(1.3)
    assert len(jax.tree.leaves(eqx.filter(model, eqx.is_inexact_array))) == 1
