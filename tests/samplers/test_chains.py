"""Chains as samplers: they go on, they tune themselves, they stand side by side."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from fenchel.dynamics import CentredNormal, Options, hmc, langevin
from fenchel.errors import InputError
from fenchel.samplers import Embedding, Ensemble, Persistent, Tuned
from fenchel.starts import Empirical, begins_at_data

KEY = jax.random.key(4)


def narrow(x):
    return -0.5 * jnp.sum((x / 0.1) ** 2)


def kernel(step=0.1, metropolis=True):
    options = Options(steps=4, step_size=step, metropolis=metropolis, per_step=False)
    return hmc(2, options, KEY)


@eqx.filter_jit
def draw(sampler, f, points, state, key):
    return sampler.draw(f, points, state, key)


def test_chains_go_on_where_they_stopped():
    sampler = Persistent(kernel(0.02), 2, count=6)
    state = sampler.init(jnp.ones((3, 2)), KEY)
    np.testing.assert_array_equal(state.points, 1.0)
    batch = jnp.zeros((4, 2))
    particles, state = draw(sampler, narrow, batch, state, KEY)
    np.testing.assert_array_equal(state.points[:4], particles.x)  # these four have moved,
    np.testing.assert_array_equal(state.points[4:], 1.0)  # the others wait for their turn,
    _, later = draw(sampler, narrow, batch, state, jax.random.key(5))
    before, after = np.asarray(state.points), np.asarray(later.points)
    assert np.all(np.any(after[4:] != 1.0, axis=1))  # which is now,
    np.testing.assert_array_equal(after[2:4], before[2:4])  # and 0, 1 again
    assert np.all(np.any(after[:2] != before[:2], axis=1))


def test_a_chain_that_runs_off_starts_where_it_was():
    off = lambda x: jnp.where(x[0] > 0, jnp.nan, 0.0) * x[0]  # noqa: E731
    sampler = Persistent(langevin(2, Options(steps=1, per_step=False), KEY), 2, count=3)
    state = sampler.init(jnp.ones((3, 2)), KEY)
    _, after = draw(sampler, off, jnp.zeros((3, 2)), state, KEY)
    assert np.all(np.isfinite(after.points))


@pytest.mark.parametrize("step", [0.002, 1.5])
def test_step_sizes_find_the_acceptance(step):
    """From far too short and from far too long, to 0.8 within 0.07."""
    sampler = Tuned(Embedding(Empirical(CentredNormal(2)), kernel(step)))
    points = 0.1 * jax.random.normal(KEY, (256, 2))
    state = sampler.settled(narrow, points, sampler.init(points, KEY), KEY)
    particles, _ = draw(sampler, narrow, points, state, KEY)
    acceptance = np.sum(particles.accepted) / np.sum(particles.proposed)
    assert acceptance == pytest.approx(0.8, abs=0.07)


def test_without_a_metropolis_step_nothing_is_tuned():
    sampler = Tuned(Embedding(Empirical(CentredNormal(2)), kernel(metropolis=False)))
    points = jnp.zeros((8, 2))
    _, state = draw(sampler, narrow, points, sampler.init(points, KEY), KEY)
    assert state.log_factor == 0


def test_an_ensemble_shares_the_batch():
    still = Embedding(Empirical(CentredNormal(2)), kernel(1e-6))
    moving = Embedding(Empirical(CentredNormal(2)), kernel(0.1))
    sampler = Ensemble([still, moving])
    points = 0.1 * jax.random.normal(KEY, (7, 2))
    particles, _ = draw(sampler, narrow, points, sampler.init(points, KEY), KEY)
    moved = np.max(np.abs(particles.x - points), axis=1)
    assert particles.x.shape == (7, 2)
    assert np.all(moved[:4] < 1e-3)
    assert np.all(moved[4:] > 1e-3)
    assert begins_at_data(sampler)
    assert not begins_at_data(Persistent(kernel(), 2, 3))


def test_bad_settings():
    with pytest.raises(InputError, match="at least one"):
        Ensemble([])
    with pytest.raises(InputError, match="at least one"):
        Persistent(kernel(), 2, count=0)
