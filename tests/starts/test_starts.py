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
from fenchel.starts import (
    BATCH,
    AbstractDensityStart,
    Buffer,
    Empirical,
    Noise,
    Occluded,
    Replay,
)

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
        draw = jax.vmap(lambda point, key: start.draw(point, state, key), axis_name=BATCH)
        return draw(points, keys)


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


def drawn(start, state, n, point=None, seed=1):
    """A batch of first points."""
    point = jnp.zeros(2) if point is None else point
    keys = jax.random.split(jax.random.key(seed), n)
    draw = jax.vmap(lambda key: start.draw(point, state, key)[0], axis_name=BATCH)
    return np.asarray(draw(keys))


def doubled(n):
    """So many points that tell which they are."""
    return jnp.stack([jnp.arange(float(n))] * 2, axis=1)


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
        fresh = drawn(replay, buffer, 500)
        for points in (buffer.points, fresh):
            # A right one fails once in 10,000 seeds; a normal one reaches beyond the box.
            assert stats.kstest(np.ravel(points), stats.uniform(-1, 2).cdf).pvalue > 1e-4
        assert not np.array_equal(buffer.points, fresh)

    def test_in_a_box_without_an_end_it_is_normal(self):
        buffer = self.replay(capacity=9, fresh=Noise(box=(0.0, np.inf))).init(
            jnp.zeros((4, 2)), jax.random.key(0)
        )
        assert np.all(np.isfinite(buffer.points))

    def test_chains_take_turns_and_go_back_to_their_places(self):
        replay = self.replay(capacity=5, restart=0.0)
        buffer = Buffer(doubled(5), jnp.zeros((), jnp.int32))
        for expected in ([0, 1, 2], [3, 4, 10], [11, 12, 13]):
            x = drawn(replay, buffer, 3)
            np.testing.assert_array_equal(x[:, 1], expected)
            buffer = replay.remember(buffer, x + 10)
        np.testing.assert_array_equal(buffer.points[:, 0], [20, 21, 22, 23, 14])
        assert buffer.cursor == 4
        assert buffer.cursor.dtype == jnp.int32
        # Of more than it can hold, the last are kept: 7 of them end with the chains 2, 3 and 4.
        buffer = replay.remember(buffer, doubled(7))
        np.testing.assert_array_equal(buffer.points[:, 0], [6, 2, 3, 4, 5])

    def test_no_chain_breeds_others(self):
        """With a small step each, all of them are still there after many batches."""
        replay = self.replay(capacity=50, restart=0.0)
        buffer = replay.init(jnp.zeros((1, 2)), jax.random.key(0))
        names = doubled(50)
        buffer = buffer._replace(points=names)
        for _ in range(40):
            buffer = replay.remember(buffer, drawn(replay, buffer, 16))
        np.testing.assert_array_equal(buffer.points, names)

    def test_reordered_chains_are_the_same_ones(self):
        replay = self.replay(capacity=30, restart=0.0)
        buffer = Buffer(jnp.arange(60.0).reshape(30, 2), jnp.array(7, jnp.int32))
        other = replay.reordered(buffer, jax.random.key(0))
        assert other.cursor == 0
        assert not np.array_equal(other.points, buffer.points)
        np.testing.assert_array_equal(np.sort(other.points[:, 0]), buffer.points[:, 0])

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
        x = drawn(replay, buffer, n, seed=3)
        fresh = np.all(x == 0, axis=1)

        def z(probability):
            return (fresh.mean() - probability) / np.sqrt(probability * (1 - probability) / n)

        # 4.5 standard errors: fails once in 150,000 runs. A rate of 0.25 would be seen.
        assert abs(z(restart)) < 4.5
        assert abs(z(0.25)) > 4.5
        # All others are points of the buffer, and each of them is met.
        assert {tuple(point) for point in x[~fresh]} == {tuple(p) for p in buffer.points.tolist()}

    def test_every_other_chain_may_begin_otherwise(self):
        """Half are nothing but noise, the others have one of two parts of a data point hidden."""
        n, masks = 4_000, jnp.array([[True, True, False], [False, True, True]])
        noise = Noise(box=(-1.0, 1.0))
        replay = self.replay(capacity=n, restart=1.0, fresh=noise, aside=Occluded(noise, masks))
        data = jnp.array([[5.0, 6.0, 7.0], [8.0, 9.0, 10.0]])
        buffer = replay.init(data, jax.random.key(0))
        new = drawn(replay, buffer, n, data[1])
        for points, known in ((buffer.points, data), (new, data[1:])):
            kept = np.asarray(points) > 1  # what is noise is within the box
            assert not kept[::2].any()
            patterns, counts = np.unique(kept[1::2], axis=0, return_counts=True)
            np.testing.assert_array_equal(patterns, [[0, 0, 1], [1, 0, 0]])
            # 4.5 standard errors of a half: 1 in 10⁵ fails; a third would be seen.
            np.testing.assert_allclose(2 * counts / n, [0.5, 0.5], atol=0.05)
            for row, column in zip(*np.nonzero(kept), strict=True):
                assert points[row, column] in known[:, column]
        assert set(np.asarray(buffer.points)[np.asarray(buffer.points) > 1]) == {5, 7, 8, 10}

    @pytest.mark.parametrize("capacity", [8, 9])
    def test_what_is_handed_out_has_no_chain_that_began_at_data(self, capacity):
        noise, hidden = Noise(box=(-1.0, 1.0)), jnp.array([[True, False]])
        aside = Occluded(noise, hidden)
        replay = self.replay(capacity=capacity, restart=0.5, fresh=noise, aside=aside)
        buffer = replay.init(jnp.full((1, 2), 5.0), jax.random.key(0))
        assert np.sum(np.asarray(buffer.points) == 5) == capacity // 2
        settled = replay.settled(jax.random.key(0))
        assert settled.restart == 0
        assert settled.settled(jax.random.key(0)) == settled
        buffer = settled.reordered(buffer, jax.random.key(1))
        chains = (capacity + 1) // 2
        for _ in range(3):  # so many draws that they come round again
            x = drawn(settled, buffer, chains)
            assert np.max(x) <= 1
            assert len(np.unique(np.asarray(x), axis=0)) == chains
            buffer = settled.remember(buffer, x)
        # Those that are not handed out lie where they lay.
        np.testing.assert_array_equal(np.asarray(buffer.points)[1::2, 1], 5.0)
