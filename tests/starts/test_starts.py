"""Starts: their densities against Jacobians, integrals and SciPy; points without a density.

The statistical test uses fixed seeds, so it passes or fails for good; the rate it states is that
at which a correct implementation would fail over the choice of those seeds.
"""

from functools import lru_cache

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import paramax
import pytest
from scipy import stats

from fenchel.build import build_start
from fenchel.config import StartConfig
from fenchel.dynamics import CentredNormal
from fenchel.parameters import split
from fenchel.starts import AbstractDensityStart, Buffer, Empirical, Noise, Occluded, Replay

# kind: whether its density is exact, and whether it can be evaluated at any point
KINDS = {
    "planar": (True, True),
    "coupling": (True, True),
    "spline": (True, True),
    "deep-latent": (True, False),
    "empirical": (False, False),
    "replay": (False, False),
}
FLOWS = [kind for kind, (_, density) in KINDS.items() if density]
LATENT, PRECISION, SCALE = 2, 2.0, 1.5

pytestmark = pytest.mark.usefixtures("x64")


@lru_cache
def start_of(kind, dim):
    """With every learnt number moved off its start."""
    config = StartConfig(kind, layers=2, width=8, depth=1, capacity=16)
    start = build_start(config, dim, LATENT, PRECISION, SCALE, jax.random.key(0))
    numbers, rest = split(start)
    rng = np.random.default_rng(1)
    # Not far, for the sake of the quadrature: a spline that bends more has spikes.
    # In NumPy: a sum in JAX is a program for each shape.
    move = lambda leaf: np.asarray(leaf) + 0.1 * rng.normal(size=leaf.shape)  # noqa: E731
    numbers = jax.tree.map(lambda leaf: jnp.asarray(move(leaf)), numbers)
    return paramax.unwrap(eqx.combine(numbers, rest))


def log_normal(x, scale, mean=0.0):
    return stats.norm(mean, scale).logpdf(x).sum(axis=-1)


def draws(start, dim, n=2):
    points = jnp.arange(n * dim, dtype=float).reshape(n, dim)
    state = start.init(points, jax.random.key(1))
    keys = jax.random.split(jax.random.key(2), n)
    with jax.disable_jit():  # to compile takes far longer than to run once
        return jax.vmap(lambda point, key: start.draw(point, state, key))(points, keys)


@pytest.mark.parametrize("kind", KINDS)
def test_flags_and_shapes(kind):
    start = start_of(kind, 2)
    assert start.exact == KINDS[kind][0]
    assert isinstance(start, AbstractDensityStart) == KINDS[kind][1]
    x, v, log_q = draws(start, 2)
    assert (x.shape, v.shape, log_q.shape) == ((2, 2), (2, LATENT), (2,))
    assert np.all(np.isfinite(log_q))
    if not start.exact:  # the momentum only
        np.testing.assert_allclose(log_q, log_normal(v, start.momentum.scale), atol=1e-10)


@pytest.mark.parametrize("dim", [1, 2])
@pytest.mark.parametrize("kind", FLOWS)
def test_a_flow_carries_its_density(kind, dim):
    start = start_of(kind, dim)
    bijection = start.distribution.bijection

    @jax.jit
    @jax.vmap
    def by_hand(noise):
        return bijection.transform(noise), jax.jacfwd(bijection.transform)(noise)

    noise = np.random.default_rng(2).normal(size=(8, dim))
    points, jacobians = by_hand(noise)
    x, v, log_q = draws(start, dim)
    axis = np.linspace(-15.0, 15.0, {1: 20_001, 2: 301}[dim])
    grid = np.stack(np.meshgrid(*[axis] * dim), axis=-1).reshape(-1, dim)
    log_density = np.asarray(
        jax.jit(jax.vmap(start.log_density))(np.concatenate([points, x, grid]))
    )
    at_points, at_draws, on_grid = np.split(log_density, [len(points), len(points) + len(x)])

    exact = log_normal(noise, 1.0) - np.linalg.slogdet(jacobians)[1]
    np.testing.assert_allclose(at_points, exact, atol=1e-8)
    assert not np.allclose(exact, log_normal(noise, 1.0) - dim * np.log(SCALE))  # it bends
    # A draw's density is that of its point and its momentum.
    np.testing.assert_allclose(log_q, at_draws + log_normal(v, start.momentum.scale), atol=1e-8)
    integral = np.exp(on_grid).sum() * (axis[1] - axis[0]) ** dim
    assert integral == pytest.approx(1, abs=1e-3)


@pytest.mark.parametrize("dim", [1, 2])
def test_the_deep_latent_model_carries_its_joint_density(dim):
    start = start_of("deep-latent", dim)
    x, v, log_q = draws(start, dim)
    noise = log_normal(x, start.noise.scale, jax.vmap(start.decoder)(v))
    np.testing.assert_allclose(log_q, noise + log_normal(v, start.momentum.scale), atol=1e-10)


def test_fresh_momenta_have_the_models_own_scale():
    momentum = paramax.unwrap(CentredNormal(3, 4.0))
    np.testing.assert_allclose(momentum.scale, 0.5)
    v, log_q = momentum.draw(jax.random.key(0))
    np.testing.assert_allclose(log_q, log_normal(v, 0.5), atol=1e-12)


def test_the_empirical_start_is_the_given_point():
    x, v, _ = draws(paramax.unwrap(Empirical(CentredNormal(2))), 2)
    np.testing.assert_array_equal(x, np.arange(4.0).reshape(2, 2))
    assert len(np.unique(v)) == 4  # each with a momentum of its own


class TestReplay:
    @staticmethod
    def replay(**values):
        return paramax.unwrap(Replay(CentredNormal(2), **values))

    def test_it_begins_as_noise(self):
        buffer = self.replay(capacity=500, fresh=Noise(3.0)).init(
            jnp.zeros((4, 2)), jax.random.key(0)
        )
        assert buffer.points.shape == (500, 2)
        assert buffer.points.dtype == jnp.zeros(0).dtype
        assert buffer.cursor == 0
        # 1,000 numbers: the relative error of their deviation is 2 %; six times that.
        assert np.std(buffer.points) == pytest.approx(3.0, rel=0.13)

    def test_in_a_box_the_noise_is_uniform(self):
        replay = self.replay(capacity=500, restart=1.0, fresh=Noise(box=(-1.0, 1.0)))
        buffer = replay.init(jnp.zeros((4, 2)), jax.random.key(0))
        keys = jax.random.split(jax.random.key(1), 500)
        fresh, _, _ = jax.vmap(lambda key: replay.draw(jnp.zeros(2), buffer, key))(keys)
        for points in (buffer.points, fresh):
            # A right one fails once in 10,000 seeds; a normal one reaches beyond the box.
            assert stats.kstest(np.ravel(points), stats.uniform(-1, 2).cdf).pvalue > 1e-4
        assert not np.array_equal(buffer.points, fresh)

    def test_in_a_box_without_an_end_it_is_normal(self):
        buffer = self.replay(capacity=9, fresh=Noise(box=(0.0, np.inf))).init(
            jnp.zeros((4, 2)), jax.random.key(0)
        )
        assert np.all(np.isfinite(buffer.points))

    def test_the_oldest_points_go_first(self):
        replay = self.replay(capacity=5)
        buffer = Buffer(jnp.full((5, 2), -1.0), jnp.zeros((), jnp.int32))
        batches = [jnp.full((3, 2), float(value)) for value in (1, 2, 3)]
        buffer = replay.remember(buffer, batches[0])
        np.testing.assert_array_equal(buffer.points[:, 0], [1, 1, 1, -1, -1])
        buffer = replay.remember(buffer, batches[1])
        np.testing.assert_array_equal(buffer.points[:, 1], [2, 1, 1, 2, 2])
        assert buffer.cursor == 1
        buffer = replay.remember(buffer, batches[2])
        np.testing.assert_array_equal(buffer.points[:, 0], [2, 3, 3, 3, 2])
        assert buffer.cursor == 4
        assert buffer.cursor.dtype == jnp.int32

    @pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
    def test_a_point_that_ran_off_is_not_stored(self, bad):
        old = jnp.arange(8.0).reshape(4, 2)
        buffer = Buffer(old, jnp.zeros((), jnp.int32))
        batch = jnp.array([[10.0, 11.0], [bad, 12.0], [bad, bad]])
        points = self.replay(capacity=4).remember(buffer, batch).points
        np.testing.assert_array_equal(points[0], batch[0])
        # Nor half of it: what was there stays as it was.
        np.testing.assert_array_equal(points[1:], old[1:])

    def test_it_restarts_as_often_as_it_should(self):
        n, restart = 4000, 0.2
        replay = self.replay(capacity=7, restart=restart, fresh=Noise(0.0))
        buffer = Buffer(1.0 + jnp.arange(14.0).reshape(7, 2), jnp.zeros((), jnp.int32))
        keys = jax.random.split(jax.random.key(3), n)
        x = np.asarray(
            jax.jit(jax.vmap(lambda key: replay.draw(buffer.points[0], buffer, key)[0]))(keys)
        )
        fresh = np.all(x == 0, axis=1)

        def z(probability):
            return (fresh.mean() - probability) / np.sqrt(probability * (1 - probability) / n)

        # 4.5 standard errors: fails once in 150,000 runs. A rate of 0.25 would be seen.
        assert abs(z(restart)) < 4.5
        assert abs(z(0.25)) > 4.5
        # All others are points of the buffer, and each of them is met.
        assert {tuple(point) for point in x[~fresh]} == {tuple(p) for p in buffer.points.tolist()}

    def test_occluded_chains_keep_a_part_of_their_data_point(self):
        """Half begin as nothing but noise, a quarter each with one of two parts hidden."""
        n, masks = 4_000, jnp.array([[True, True, False], [False, True, True]])
        noise = Noise(box=(-1.0, 1.0))
        replay = self.replay(capacity=n, restart=1.0, fresh=Occluded(noise, masks))
        data = jnp.array([[5.0, 6.0, 7.0], [8.0, 9.0, 10.0]])
        buffer = replay.init(data, jax.random.key(0))
        keys = jax.random.split(jax.random.key(1), n)
        drawn = jax.vmap(lambda key: replay.draw(data[1], buffer, key)[0])(keys)
        for points, known in ((buffer.points, data), (drawn, data[1:])):
            kept = np.asarray(points) > 1  # what is noise is within the box
            patterns, counts = np.unique(kept, axis=0, return_counts=True)
            np.testing.assert_array_equal(patterns, [[0, 0, 0], [0, 0, 1], [1, 0, 0]])
            # 4.5 standard errors of a half and of a quarter, 1 in 10⁵ fails; a third would be seen.
            np.testing.assert_allclose(counts / n, [0.5, 0.25, 0.25], atol=0.035)
            for row, column in zip(*np.nonzero(kept), strict=True):
                assert points[row, column] in known[:, column]
        assert set(np.asarray(buffer.points)[np.asarray(buffer.points) > 1]) == {5, 7, 8, 10}

    def test_what_is_handed_out_keeps_no_part_of_the_data(self):
        noise = Noise(box=(-1.0, 1.0))
        replay = self.replay(capacity=9, restart=1.0, fresh=Occluded(noise, jnp.ones((1, 2), bool)))
        settled = replay.settled(jax.random.key(0))
        assert settled.fresh == noise
        assert settled.capacity == 9
        plain = self.replay(capacity=9)
        assert plain.settled(jax.random.key(0)) == plain
