"""log q at a given point: round trips, integrals, and what has no inverse."""

from functools import lru_cache

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from fenchel.build import build_dynamics
from fenchel.config import DynamicsConfig
from fenchel.dynamics import (
    CentredNormal,
    Chain,
    GradientStep,
    Options,
    Repeat,
    undo,
)
from fenchel.errors import InputError
from fenchel.samplers import Embedding
from fenchel.starts import Empirical, Flow, affine_coupling, residual

pytestmark = pytest.mark.usefixtures("x64")

KEY = jax.random.key(11)


def potential(x):
    """Two wells, with a Hessian that is bounded everywhere."""
    return -0.3 * jnp.sum(x**2) + 0.5 * jnp.cos(2 * x[0]) + 0.3 * jnp.sin(x[0] + 2 * x[1])


def start(kind="flow"):
    momentum = CentredNormal(0)
    if kind == "residual":
        return residual(2, momentum, 3, 1.2, 8, 1, key=KEY)
    return Flow(affine_coupling(2, 2, 1.2, 8, 1, key=KEY), momentum)


DYNAMICS = {
    "deterministic": {"steps": 3, "step_size": 0.5},
    "continuous": {"steps": 2, "step_size": 0.6},
    "generalized-continuous": {"steps": 2, "step_size": 0.6},
    "deterministic+continuous": {"steps": 2, "step_size": 0.5},
    "none": {},
}


DRAWS = 20
SIDE = np.linspace(-5, 5, 51)
GRID = np.stack(np.meshgrid(SIDE, SIDE), -1).reshape(-1, 2)


def embedding(kind, start_kind):
    options = Options(**DYNAMICS[kind], tolerance=1e-8, max_steps=4_000)
    return Embedding(start(start_kind), build_dynamics(kind, options, 2, KEY))


def drawn_and_undone(sampler):
    """Particles, with log q and the miss of their points; and the same two on the grid."""

    @jax.jit
    def all_of_them(key):
        particles, _ = sampler.draw(potential, jnp.zeros((DRAWS, 2)), None, key)
        points = jnp.concatenate([particles.x, GRID])
        log_q, miss = sampler.log_density(potential, points, KEY)
        return particles, log_q, miss

    particles, log_q, miss = all_of_them(KEY)
    return particles, (log_q[:DRAWS], miss[:DRAWS]), (log_q[DRAWS:], miss[DRAWS:])


@lru_cache
def undone(kind, start_kind):
    return drawn_and_undone(embedding(kind, start_kind))


@pytest.mark.parametrize(
    ("kind", "start_kind"),
    [*((kind, "flow") for kind in DYNAMICS), ("deterministic", "residual"), ("none", "residual")],
)
def test_what_was_drawn_is_found_again(kind, start_kind):
    """Forward, then back: the density of a draw is the one that the draw carried."""
    particles, (log_q, miss), _ = undone(kind, start_kind)
    np.testing.assert_allclose(log_q, particles.log_q, atol=1e-6)
    assert np.max(miss) < 1e-10
    assert embedding(kind, start_kind).exact
    assert np.max(particles.strain) < 1


@pytest.mark.parametrize("kind", list(DYNAMICS))
def test_the_density_integrates_to_one(kind):
    _, _, (log_q, miss) = undone(kind, "residual" if kind == "none" else "flow")
    assert np.max(miss) < 1e-6
    total = np.sum(np.exp(log_q)) * (SIDE[1] - SIDE[0]) ** 2
    assert total == pytest.approx(1.0, abs=1e-3)


def test_shared_steps_and_chains_are_undone_too():
    """(A flow in a chain is in the table above.)"""
    step = GradientStep(jnp.array([0.1, 0.2]))
    sampler = Embedding(start(), Chain([Repeat(step, 3), GradientStep(jnp.array(0.3))]))
    particles, (log_q, _), _ = drawn_and_undone(sampler)
    np.testing.assert_allclose(log_q, particles.log_q, atol=1e-6)


def test_a_map_that_folds_is_not_undone():
    """x + η ∇f with η δ far above 1: the iteration does not arrive, and the miss says so."""
    steep = lambda x: -0.5 * jnp.sum(x**2)  # noqa: E731
    undone = undo(GradientStep(jnp.array(2.5)), steep, jnp.array([1.0, 2.0]), KEY)
    assert not undone.miss < 1e-3
    fine = undo(GradientStep(jnp.array(0.9)), steep, jnp.array([1.0, 2.0]), KEY)
    assert fine.miss < 1e-10


@pytest.mark.parametrize("kind", ["hmc", "continuous+hmc", "langevin"])
def test_momenta_have_no_density_of_x_alone(kind):
    config = DynamicsConfig(kind=kind)
    sampler = Embedding(start(), build_dynamics(kind, config, 2, KEY))
    with pytest.raises(InputError, match="without momenta"):
        sampler.log_density(potential, jnp.zeros((1, 2)), KEY)


def test_neither_has_a_start_at_data_points():
    sampler = Embedding(Empirical(CentredNormal(0)), GradientStep(jnp.array(0.1)))
    with pytest.raises(InputError, match="start that has one"):
        sampler.log_density(potential, jnp.zeros((1, 2)), KEY)
