"""The log density that the library's own maps carry, against autodiff of those same maps.

Two steps of every recipe, with the second momentum as an explicit input: (x0, v0, ξ) goes to
(x2, v2, v1), v1 being the momentum that was retired. With densities of zero at the start, the
carried `log_q` must be minus the log-determinant of the whole Jacobian.
"""

from functools import lru_cache

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import paramax
import pytest

from fenchel.dynamics import RECIPES, Options, particle_at
from fenchel.parameters import split

pytestmark = pytest.mark.usefixtures("x64")

DIM = 2
CASES = {
    "hmc": {"clip_norm": 0.5},
    "hmc, 2 leapfrogs": {"leapfrogs": 2, "clip_value": 0.3},
    "langevin": {},
    "generalized-hmc": {"latent": 2},
    "generalized-hmc, latent 1": {"latent": 1},
    "generalized-hmc, latent 3": {"latent": 3},
    "generalized-langevin, latent 3": {"latent": 3, "per_dimension": False},
}


class Given(eqx.Module):
    """In the place of a momentum's distribution: this momentum, with a log density of zero."""

    v: jax.Array

    def draw(self, key):
        return self.v, jnp.zeros(())


def potential(x):
    return -0.1 * jnp.sum(x**4) - 0.5 * jnp.sum((x - 0.3) ** 2) + 0.4 * jnp.sin(2 * x[0]) * x[1]


def two_steps(name):
    options = Options(steps=2, step_size=0.3, **CASES[name])
    made = RECIPES[name.split(",")[0]](DIM, options, jax.random.key(1))
    numbers, rest = split(made)
    rng = np.random.default_rng(0)
    move = lambda leaf: np.asarray(leaf) + 0.3 * rng.normal(size=leaf.shape)  # noqa: E731
    moved = jax.tree.map(lambda leaf: jnp.asarray(move(leaf)), numbers)
    return paramax.unwrap(eqx.combine(moved, rest)), options.latent or DIM


@lru_cache
def carried_and_true(name):
    dynamics, latent = two_steps(name)
    first = jax.tree.map(lambda leaf: leaf[0] if eqx.is_array(leaf) else leaf, dynamics.layers)

    def path(u):
        x, v, fresh = jnp.split(u, [DIM, DIM + latent])
        given = eqx.tree_at(lambda d: d.between.momentum, dynamics, Given(fresh[None]))
        begin = particle_at(potential, x, v, jnp.zeros(()))
        retired = first(potential, begin, jax.random.key(0)).v
        end = given(potential, begin, jax.random.key(0))
        return jnp.concatenate([end.x, end.v, retired]), end.log_q

    u = jax.random.normal(jax.random.key(5), (DIM + 2 * latent,))
    jacobian, log_q = jax.jit(jax.jacfwd(path, has_aux=True))(u)
    return log_q, -np.linalg.slogdet(jacobian)[1]


@pytest.mark.parametrize("name", CASES)
def test_the_carried_density_is_that_of_the_jacobian(name):
    carried, true = carried_and_true(name)
    assert abs(carried - true) < 1e-8


@pytest.mark.parametrize("name", ["generalized-hmc", "generalized-langevin, latent 3"])
def test_a_density_that_forgot_its_scales_would_be_seen(name):
    """Negative control: the generalized maps do change volume, so a carried zero is wrong."""
    assert abs(carried_and_true(name)[1]) > 1e-3
