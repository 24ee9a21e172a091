"""The maps that say `exact = False`: the box and the Metropolis step.

The statistical tests use fixed seeds, so they pass or fail for good; the rates they state are
those at which a correct implementation would fail over the choice of those seeds.
"""

from functools import lru_cache

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import paramax
import pytest
from scipy.special import gamma

from fenchel.dynamics import (
    RECIPES,
    AbstractDynamics,
    Box,
    Chain,
    Leapfrog,
    Metropolis,
    Options,
    PerStep,
    Refresh,
    Repeat,
    hmc,
    particle_at,
)
from fenchel.errors import InputError

pytestmark = pytest.mark.usefixtures("x64")


def normal(x):
    return -0.5 * jnp.sum(x**2)


def quartic(x):
    return -0.25 * jnp.sum(x**4)


def start(f, x=(0.5, -1.5), v=(1.0, 0.3)):
    return particle_at(f, jnp.array(x), jnp.array(v), jnp.array(0.7))


class Teleport(AbstractDynamics):
    """To a given point, whatever the density there."""

    x: jax.Array

    @property
    def exact(self):
        return True

    def __call__(self, f, particle, key):
        return particle.moved(f, self.x, jnp.zeros_like(particle.f))


class TestBox:
    def test_it_clips_and_sees_f_at_the_new_point(self):
        box = paramax.unwrap(Box(-1.0, 1.0))
        particle = box(quartic, start(quartic), jax.random.key(0))
        np.testing.assert_array_equal(particle.x, [0.5, -1.0])
        np.testing.assert_array_equal(particle.v, jnp.array([1.0, 0.3]))
        assert particle.f == quartic(particle.x)
        np.testing.assert_array_equal(particle.score, -(particle.x**3))
        assert particle.log_q == start(quartic).log_q

    @pytest.mark.parametrize(("low", "high"), [(1.0, 1.0), (2.0, -2.0), (0.0, float("nan"))])
    def test_an_empty_one_is_refused(self, low, high):
        with pytest.raises(InputError, match="is empty: give low < high"):
            Box(low, high)

    def test_the_recipes_use_it(self):
        options = Options(steps=2, box=(-0.2, 0.2), step_size=1.0)
        dynamics = paramax.unwrap(hmc(2, options, jax.random.key(0)))
        particle = dynamics(quartic, start(quartic), jax.random.key(1))
        assert jnp.all(jnp.abs(particle.x) <= 0.2)
        assert not dynamics.exact


class TestExact:
    """One inexact part makes the whole inexact."""

    exact = Leapfrog(jnp.array(0.1))

    @pytest.mark.parametrize("part", [Box(-1.0, 1.0), Metropolis(exact)], ids=["box", "metropolis"])
    def test_an_inexact_part_anywhere(self, part):
        assert not part.exact
        assert not Chain([self.exact, part, self.exact]).exact
        assert not Repeat(part, 2).exact
        assert not Repeat(self.exact, 2, part).exact
        assert not PerStep.of([part, part], [Refresh(2)], False).exact

    def test_exact_parts_only(self):
        assert Chain().exact
        assert Chain([self.exact, Refresh(2)]).exact
        assert Repeat(self.exact, 2, Refresh(2)).exact
        assert PerStep.of([self.exact] * 2, [Refresh(2)], False).exact

    @pytest.mark.parametrize("name", RECIPES)
    def test_the_recipes_are_exact_by_default(self, name):
        assert RECIPES[name](2, Options(steps=2), jax.random.key(0)).exact


def one_move(proposal, f, seed=0):
    step = paramax.unwrap(Metropolis(proposal))
    return step(f, start(f), jax.random.key(seed))


class TestMetropolis:
    def test_a_better_point_is_taken_and_a_hopeless_one_is_not(self):
        taken = one_move(Teleport(jnp.zeros(2)), quartic)
        np.testing.assert_array_equal(taken.x, [0.0, 0.0])
        np.testing.assert_array_equal(taken.v, start(quartic).v)
        stayed = one_move(Teleport(jnp.full(2, 30.0)), quartic)
        np.testing.assert_array_equal(stayed.x, start(quartic).x)
        np.testing.assert_array_equal(stayed.v, -start(quartic).v)  # staying flips the momentum
        assert stayed.f == start(quartic).f
        assert (taken.accepted, taken.proposed) == (1, 1)
        assert (stayed.accepted, stayed.proposed) == (0, 1)

    @pytest.mark.parametrize("bad", [float("nan"), float("inf"), float("-inf")])
    def test_where_f_is_not_finite_is_never_gone_to(self, bad):
        def f(x):
            return jnp.where(x[0] > 5.0, bad, quartic(x))

        particle = one_move(Teleport(jnp.full(2, 6.0)), f)
        np.testing.assert_array_equal(particle.x, start(f).x)
        assert particle.accepted == 0

    def test_a_point_that_is_not_finite_is_never_gone_to(self):
        particle = one_move(Teleport(jnp.array([jnp.nan, 0.0])), quartic)
        np.testing.assert_array_equal(particle.x, start(quartic).x)

    def test_the_precision_counts(self):
        """λ scales what a change of momentum costs: here from |v|² = 1.09 to zero."""

        class Stop(Teleport):
            def __call__(self, f, particle, key):
                return particle.kicked(self.x, jnp.zeros_like(particle.f))

        particle = start(lambda x: 0.0 * jnp.sum(x), v=(0.0, 0.0))
        faster = Stop(jnp.array([2.0, 0.0]))  # costs 2 λ
        keys = jax.random.split(jax.random.key(0), 4000)
        for precision in (0.25, 1.0):
            step = paramax.unwrap(Metropolis(faster, precision))
            moves = jax.vmap(lambda key, step=step: step(lambda x: 0.0 * jnp.sum(x), particle, key))
            rate, exact = jnp.mean(moves(keys).accepted), np.exp(-2.0 * precision)
            # 4.5 standard errors: fails once in 150,000 runs.
            assert abs(rate - exact) < 4.5 * np.sqrt(exact * (1 - exact) / 4000)

    @pytest.mark.parametrize("name", ["langevin", "generalized-hmc", "generalized-langevin"])
    def test_it_is_refused_where_it_would_be_wrong(self, name):
        with pytest.raises(InputError, match=rf"keep volume, and {name} is not: use it with hmc"):
            RECIPES[name](2, Options(metropolis=True), jax.random.key(0))


def exact_normal(rng, n):
    return rng.normal(size=(n, 2))


def exact_quartic(rng, n):
    """exp(-x⁴/4): x⁴/4 is Gamma(1/4) distributed."""
    return rng.choice([-1.0, 1.0], (n, 2)) * (4 * rng.gamma(0.25, size=(n, 2))) ** 0.25


# exact draws from it, E x² and E x⁴
TARGETS = {
    "normal": (exact_normal, 1.0, 3.0),
    "quartic": (exact_quartic, 2 * gamma(0.75) / gamma(0.25), 1.0),
}


@lru_cache
def moves(metropolis):
    """Four steps of a large step size, compiled once for both targets."""
    options = Options(steps=4, metropolis=metropolis, step_size=1.3, clip_norm=4.0)
    dynamics = paramax.unwrap(hmc(2, options, jax.random.key(0)))

    def move(is_normal, x, v, key):
        f = lambda x: jnp.where(is_normal, normal(x), quartic(x))  # noqa: E731
        return dynamics(f, particle_at(f, x, v, 0.0), key)

    return jax.jit(jax.vmap(move, (None, 0, 0, 0)))


def after_four_steps(name, metropolis, n=4000):
    """Particles that began as exact draws."""
    rng = np.random.default_rng(3)
    x, v = TARGETS[name][0](rng, n), rng.normal(size=(n, 2))
    keys = jax.random.split(jax.random.key(1), n)
    return moves(metropolis)(name == "normal", x, v, keys)


def moment_z(name, metropolis):
    """z-scores of E x² and E x⁴ after those steps."""
    _, second, fourth = TARGETS[name]
    particles = after_four_steps(name, metropolis)

    def z(values, mean):
        return (np.mean(values) - mean) / (np.std(values) / np.sqrt(values.size))

    return np.array([z(particles.x**2, second), z(particles.x**4, fourth)])


@pytest.mark.parametrize("name", TARGETS)
class TestInvariance:
    """Two z-scores under 4.5: a correct kernel fails once in about 70,000 runs."""

    def test_with_metropolis_the_target_stays(self, name):
        assert np.all(np.abs(moment_z(name, metropolis=True)) < 4.5)

    def test_it_counts_over_steps(self, name):
        """And both outcomes are common, or the invariance would say little."""
        particles = after_four_steps(name, metropolis=True)
        np.testing.assert_array_equal(particles.proposed, 4)
        assert set(particles.accepted.tolist()) == {0.0, 1.0, 2.0, 3.0, 4.0}
        assert 0.2 < np.mean(particles.accepted) / 4 < 0.95

    def test_without_it_the_bias_shows(self, name):
        """The negative control: at this step size leapfrogs alone do not keep the target."""
        assert np.any(np.abs(moment_z(name, metropolis=False)) > 9.0)


def test_gradients_pass_a_rejected_proposal():
    """A finite gradient of what stays, with respect to f's parameters."""

    @eqx.filter_grad(has_aux=True)
    def gradient(scale):
        f = lambda x: -scale * jnp.sum(x**4)  # noqa: E731
        particle = one_move(Leapfrog(jnp.array(3.0)), f)
        return particle.f, particle.accepted

    derivative, accepted = gradient(jnp.array(0.25))
    assert accepted == 0
    np.testing.assert_allclose(derivative, 4 * start(quartic).f, atol=1e-12)
