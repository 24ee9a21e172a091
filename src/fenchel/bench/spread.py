"""Stacked runs over all devices: several GPUs, or the cores of a CPU, each of which is one here.

Runs have nothing to say to each other, and the matrix products of a small net are too short to be
shared: a core that has runs of its own does more than one that helps with everybody's.
"""

import os
from typing import TypeVar

import equinox as eqx
import jax
import numpy as np
from jax.sharding import Mesh, NamedSharding, PartitionSpec, Sharding, SingleDeviceSharding

T = TypeVar("T")
RUNS = "runs"


def count_cores_as_devices() -> None:
    """Where JAX has not been used yet; afterwards its devices are what they are."""
    try:
        jax.config.update("jax_num_cpu_devices", _cores())
    except RuntimeError:
        return


def _cores() -> int:
    """Those that this process may use, where the system tells; else all."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def spread(tree: T, runs: int) -> T:
    """Its arrays, stacked from so many runs, in equal parts over as many devices as can be."""
    shares = max(n for n in range(1, jax.device_count() + 1) if runs % n == 0)
    mesh = Mesh(np.array(jax.devices()[:shares]), (RUNS,))
    return _put(tree, NamedSharding(mesh, PartitionSpec(RUNS)))


def gathered(tree: T) -> T:
    """Its arrays on the first device alone, as code that knows of one run expects them."""
    return _put(tree, SingleDeviceSharding(jax.devices()[0]))


def _put(tree: T, sharding: Sharding) -> T:
    arrays, rest = eqx.partition(tree, eqx.is_array)
    return eqx.combine(jax.device_put(arrays, sharding), rest)
