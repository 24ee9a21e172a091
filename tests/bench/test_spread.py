"""Runs over devices: the tests have two, each a CPU's."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from fenchel.bench import spread

DEVICES = jax.devices()
KEY = jax.random.key(0)


def devices_of(array):
    return {shard.device for shard in array.addressable_shards}


@pytest.mark.parametrize(("runs", "devices"), [(1, 1), (2, 2), (3, 1), (4, 2)])
def test_as_many_devices_as_have_equal_parts(runs, devices):
    tree = {"x": jnp.arange(3.0 * runs).reshape(runs, 3), "keys": jax.random.split(KEY, runs)}
    put = spread.spread({**tree, "name": "moons"}, runs)
    assert put["name"] == "moons"
    for name, array in tree.items():
        assert devices_of(put[name]) == set(DEVICES[:devices])
        assert all(len(shard.data) == runs // devices for shard in put[name].addressable_shards)
        back = spread.gathered(put)[name]
        assert devices_of(back) == {DEVICES[0]}
        assert jnp.array_equal(back, array)


def test_runs_are_the_same_wherever_they_are():
    x = jax.random.normal(KEY, (4, 50, 3))
    fit = jax.jit(jax.vmap(lambda x: jnp.linalg.cholesky(x.T @ x)))
    here, there = fit(x), fit(spread.spread(x, 4))
    assert len(devices_of(there)) == 2
    np.testing.assert_allclose(here, there, rtol=1e-5)


def test_devices_are_left_as_they_are_once_they_are_used():
    spread.count_cores_as_devices()
    assert jax.devices() == DEVICES
