"""A trace begins at the start's draws, ends where `draw` ends, and has a frame a step."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.scipy.stats import norm

from fenchel.build import build_dynamics
from fenchel.dynamics import CentredNormal, Chain, Options, momentum_dimension
from fenchel.dynamics.unroll import WAYPOINTS
from fenchel.samplers import Embedding
from fenchel.starts import AbstractStatelessStart, Empirical

# name of the recipe, its options, how many frames after the first
CASES = {
    "hmc": ("hmc", {}, 3),
    "hmc, several leapfrogs": ("hmc", {"steps": 2, "leapfrogs": 3}, 6),
    "shared steps": ("langevin", {"per_step": False}, 3),
    "a box after each step": ("hmc", {"steps": 2, "box": (-1.0, 1.0)}, 4),
    "stack": ("hmc+langevin", {"steps": 2}, 4),
    "none": ("none", {}, 0),
}


def potential(x):
    return -0.1 * jnp.sum(x**4) - 0.5 * jnp.sum((x - 0.3) ** 2) + 0.4 * jnp.sin(2 * x[0]) * x[-1]


class Cloud(AbstractStatelessStart):
    """Normal points and momenta."""

    momentum: int

    @property
    def exact(self):
        return True

    def draw(self, point, state, key):
        drawn = jax.random.normal(key, (point.size + self.momentum,))
        return drawn[: point.size], drawn[point.size :], norm.logpdf(drawn).sum()


def embedding(kind, options):
    options = Options(step_size=0.3, **options)
    dynamics = build_dynamics(kind, options, 2, jax.random.key(1))
    return Embedding(Cloud(momentum_dimension(kind.split("+")[0], 2, options)), dynamics)


@pytest.mark.parametrize(("kind", "options", "steps"), CASES.values(), ids=CASES.keys())
def test_the_last_frame_is_the_draw_and_the_first_the_start(kind, options, steps):
    sampler = embedding(kind, options)
    arguments = (potential, jnp.zeros((3, 2)), None, jax.random.key(7))
    # Bit for bit: compiled in other pieces, a sum may be rounded otherwise.
    with jax.disable_jit():
        frames = np.asarray(sampler.trace(*arguments))
        drawn = np.asarray(sampler.draw(*arguments)[0].x)
        only_start = Embedding(sampler.start, Chain()).draw(*arguments)[0].x
    assert frames.shape == (steps + 1, 3, 2)
    np.testing.assert_array_equal(frames[-1], drawn)
    np.testing.assert_array_equal(frames[0], only_start)
    moves = np.abs(np.diff(frames, axis=0)).max(axis=(1, 2))
    assert steps == 0 or moves.max() > 0.01


def test_a_flow_in_time_is_seen_between_its_ends():
    sampler = embedding("continuous", {"solver": "fixed", "solver_steps": 2})
    arguments = (potential, jnp.zeros((3, 2)), None, jax.random.key(0))
    both = eqx.filter_jit(lambda *given: (sampler.trace(*given), sampler.draw(*given)[0].x))
    frames, drawn = map(np.asarray, both(*arguments))
    assert frames.shape == (WAYPOINTS + 1, 3, 2)
    np.testing.assert_allclose(frames[-1], drawn, rtol=1e-6)
    # Along the score of a smooth f, equal times are ways of like lengths.
    lengths = np.linalg.norm(np.diff(frames, axis=0), axis=2)
    assert (lengths.max(axis=0) < 3 * lengths.min(axis=0)).all()


def test_chains_from_data_begin_at_them():
    sampler = Embedding(Empirical(CentredNormal(2)), embedding("hmc", {}).dynamics)
    points = jax.random.normal(jax.random.key(3), (3, 2))
    with jax.disable_jit():
        frames = sampler.trace(potential, points, None, jax.random.key(0))
    np.testing.assert_array_equal(frames[0], points)
