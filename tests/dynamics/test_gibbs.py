"""Gibbs samplers leave their model invariant: on all states at once, and on draws."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import stats

from fenchel.dynamics import Gibbs, HiddenGibbs, Repeat, particle_at
from fenchel.potentials import Ising, Potts, RestrictedBoltzmann
from fenchel.states import all_states

KEY = jax.random.key(4)


def ising():
    model = Ising(4)
    numbers = 0.7 * jax.random.normal(KEY, (10,))
    return eqx.tree_at(lambda m: (m.couplings, m.fields), model, (numbers[:6], numbers[6:]))


def potts():
    model = Potts(3, 3)
    return eqx.tree_at(
        lambda m: (m.couplings, m.fields),
        model,
        (jax.random.normal(KEY, (3,)), jax.random.normal(KEY, (3, 3))),
    )


def machine():
    model = RestrictedBoltzmann(4, 3, key=KEY)
    return eqx.tree_at(lambda m: m.weights, model, jax.random.normal(KEY, (3, 4)))


CASES = {
    "Ising": (ising, Gibbs()),
    "Ising, blocks of two sizes": (ising, Gibbs(blocks=((0, 3), (1,), (2,)))),
    "Potts": (potts, Gibbs((0.0, 1.0, 2.0))),
    "Boltzmann machine": (machine, HiddenGibbs()),
}
DRAWS = 20_000


def states_of(f, sites):
    return np.asarray(all_states(f.states, sites), np.float32)


@eqx.filter_jit
def after_a_sweep(f, kernel, states, chances):
    """Where draws with these chances of each state arrive."""
    start_key, move_key = jax.random.split(KEY)
    rows = jax.random.choice(start_key, len(states), (DRAWS,), p=chances)

    def one(x, key):
        return kernel(f, particle_at(f, x, jnp.zeros(0), jnp.zeros(())), key).x

    return jax.vmap(one)(states[rows], jax.random.split(move_key, DRAWS))


@eqx.filter_jit
def chances_of(f, states):
    return jax.nn.softmax(jax.vmap(f)(states))


def frequencies(f, kernel, states, chances):
    """How often each state is met after one sweep."""
    moved = np.asarray(after_a_sweep(f, kernel, states, chances))
    same = np.all(moved[:, None] == states[None], axis=-1)
    assert np.all(np.any(same, axis=1))  # never off the states
    return np.bincount(np.argmax(same, axis=1), minlength=len(states))


@pytest.mark.parametrize("name", list(CASES))
def test_exact_draws_stay_exact(name):
    """A χ² test of 20,000 draws; it fails by chance once in 10,000."""
    make, kernel = CASES[name]
    f = make()
    states = states_of(f, 3 if name == "Potts" else 4)
    chances = chances_of(f, states)
    counts = frequencies(f, kernel, states, chances)
    expected = np.asarray(chances, np.float64)
    expected = expected / expected.sum() * DRAWS
    assert stats.chisquare(counts, expected).pvalue > 1e-4
    # Negative control: exact draws of another model do not pass for draws of this one.
    other = frequencies(f, kernel, states, np.full_like(chances, 1 / len(states)))
    assert stats.chisquare(other, expected).pvalue < 1e-4


def test_sweeps_converge_from_anywhere():
    """Repeated, the kernel forgets where it began: the same χ², from one corner."""
    f = ising()
    states = states_of(f, 4)
    expected = np.asarray(chances_of(f, states), np.float64)
    corner = np.eye(16, dtype=np.float32)[0]
    counts = frequencies(f, Repeat(Gibbs(), 40), states, corner)
    assert stats.chisquare(counts, expected / expected.sum() * DRAWS).pvalue > 1e-4
