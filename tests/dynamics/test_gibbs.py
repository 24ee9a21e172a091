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


def frequencies(f, kernel, states, chances):
    """How often each state is met after one sweep from exact draws."""
    start_key, move_key = jax.random.split(KEY)
    rows = jax.random.choice(start_key, len(states), (DRAWS,), p=chances)

    def one(x, key):
        return kernel(f, particle_at(f, x, jnp.zeros(0), jnp.zeros(())), key).x

    moved = jax.jit(jax.vmap(one))(states[rows], jax.random.split(move_key, DRAWS))
    same = jnp.all(moved[:, None] == states[None], axis=-1)
    assert bool(jnp.all(jnp.any(same, axis=1)))  # never off the states
    return np.bincount(np.argmax(same, axis=1), minlength=len(states))


@pytest.mark.parametrize("name", list(CASES))
def test_exact_draws_stay_exact(name):
    """A χ² test of 20,000 draws; it fails by chance once in 10,000."""
    make, kernel = CASES[name]
    f = make()
    states = jnp.asarray(all_states(f.states, 3 if name == "Potts" else 4), jnp.float32)
    chances = jax.nn.softmax(jax.vmap(f)(states))
    counts = frequencies(f, kernel, states, chances)
    expected = np.asarray(chances, np.float64)
    expected = expected / expected.sum() * DRAWS
    assert stats.chisquare(counts, expected).pvalue > 1e-4
    # Negative control: exact draws of another model do not pass for draws of this one.
    other = frequencies(f, kernel, states, jnp.ones(len(states)) / len(states))
    assert stats.chisquare(other, expected).pvalue < 1e-4


def test_sweeps_converge_from_anywhere():
    """Repeated, the kernel forgets where it began: the same χ², from one corner."""
    f = ising()
    states = jnp.asarray(all_states(f.states, 4), jnp.float32)
    expected = np.asarray(jax.nn.softmax(jax.vmap(f)(states)), np.float64)
    corner = jnp.zeros(16).at[0].set(1.0)
    counts = frequencies(f, Repeat(Gibbs(), 40), states, corner)
    assert stats.chisquare(counts, expected / expected.sum() * DRAWS).pvalue > 1e-4
