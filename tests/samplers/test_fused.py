"""Langevin chains in one kernel: its noise is normal, it is the loop, and the chains are right."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import stats

from fenchel.errors import InputError
from fenchel.samplers import FusedLangevin
from fenchel.samplers.counter_noise import normal, threefry

RATE = 1e-6  # of false alarms, in each statistical test


def double_well(x):
    return -2.0 * jnp.sum((x**2 - 1.0) ** 2)


def gaussian(x):
    return -0.5 * jnp.sum((x - 1.0) ** 2)


def words(seed=0):
    return jax.random.key_data(jax.random.key(seed))


def test_threefry_gives_the_words_that_its_authors_publish():
    """Known answers of the Random123 distribution, for 20 rounds of 2 x 32 bits."""
    known = {
        (0, 0, 0, 0): (0x6B200159, 0x99BA4EFE),
        (0xFFFFFFFF,) * 4: (0x1CB996FC, 0xBB002BE7),
        (0x13198A2E, 0x03707344, 0x243F6A88, 0x85A308D3): (0xC4923A9C, 0x483DF7A0),
    }
    for given, expected in known.items():
        a, b, c, d = map(jnp.uint32, given)
        found = tuple(int(word) for word in threefry((a, b), (c, d)))
        assert found == expected


def test_the_noise_is_standard_normal():
    counters = jnp.arange(40_000, dtype=jnp.uint32)
    key = tuple(words(3))
    drawn = np.asarray(normal(key, (counters, jnp.zeros_like(counters))))
    assert stats.kstest(drawn, "norm").pvalue > RATE
    assert stats.kstest(1.05 * drawn, "norm").pvalue < RATE
    # Neighbouring places, and neighbouring times, have nothing to do with each other.
    later = np.asarray(normal(key, (counters, jnp.ones_like(counters))))
    for other in (later, np.roll(drawn, 1)):
        assert abs(np.corrcoef(drawn, other)[0, 1]) < stats.norm.isf(RATE / 2) / 200


@pytest.mark.parametrize(("n", "dim"), [(64, 8), (5, 4), (33, 1)])
def test_the_kernel_is_the_loop(n, dim):
    sampler = FusedLangevin(6, 0.1)
    points = jax.random.normal(jax.random.key(1), (n, dim))
    by_kernel = sampler.kernel(double_well, points, words(), interpret=True)
    np.testing.assert_allclose(by_kernel, sampler.moved(double_well, points, words()), rtol=1e-5)


def test_a_gpu_gets_the_kernel_and_others_the_loop(monkeypatch):
    sampler, points, key = FusedLangevin(3, 0.1), jnp.ones((16, 8)), jax.random.key(0)

    def program(f, points):
        return jax.jit(lambda x, key: sampler.draw(f, x, None, key)[0].x).trace(points, key)

    def has_kernel(f, points):
        return "pallas_call" in str(program(f, points).jaxpr)

    assert has_kernel(double_well, points)
    on_cpu = program(double_well, points).lower(lowering_platforms=("cpu",))
    assert "triton" not in on_cpu.as_text()
    assert not has_kernel(double_well, jnp.ones((16, 6)))
    weight = jnp.arange(8.0)
    assert not has_kernel(lambda x: -jnp.sum((x - weight) ** 2), points)
    monkeypatch.setattr("fenchel.samplers.fused.triton", None)  # as where JAX has it no more
    assert not has_kernel(double_well, points)


def test_long_chains_reach_the_stationary_distribution():
    """Of x' = x - ε²/2 (x - 1) + ε noise: mean 1, variance ε² / (1 - (1 - ε²/2)²)."""
    step = 0.5
    particles, _ = FusedLangevin(80, step).draw(
        gaussian, jnp.zeros((4_000, 2)), None, jax.random.key(5)
    )
    x = np.asarray(particles.x).ravel()
    deviation = (step**2 / (1 - (1 - step**2 / 2) ** 2)) ** 0.5
    assert stats.kstest(x, stats.norm(1, deviation).cdf).pvalue > RATE
    assert stats.kstest(x, stats.norm(1, 1.25).cdf).pvalue < RATE


def test_what_is_drawn_carries_its_potential_and_depends_on_the_key():
    sampler, points = FusedLangevin(4, 0.1), jnp.ones((8, 2))
    one, two = (sampler.draw(double_well, points, None, jax.random.key(k))[0] for k in (0, 1))
    np.testing.assert_allclose(one.f, jax.vmap(double_well)(one.x), rtol=1e-6)
    np.testing.assert_allclose(one.score, jax.vmap(jax.grad(double_well))(one.x), rtol=1e-5)
    assert np.abs(one.x - two.x).max() > 0.01


@pytest.mark.parametrize("settings", [(0, 0.1), (3, 0.0)])
def test_settings_that_cannot_be(settings):
    with pytest.raises(InputError, match="both must be positive"):
        FusedLangevin(*settings)
