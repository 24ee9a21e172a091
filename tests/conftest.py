"""What all tests share."""

import os

import jax
import pytest
from jax.experimental.compilation_cache import compilation_cache

# The tests' programs run for moments and compile for seconds. In the environment too, for the
# processes that tests start: a run and its resumption must be compiled alike.
os.environ["JAX_DISABLE_MOST_OPTIMIZATIONS"] = "true"
jax.config.update("jax_disable_most_optimizations", True)

# A vector that meets a matrix by accident is an error, not a broadcast.
jax.config.update("jax_numpy_rank_promotion", "raise")


@pytest.fixture(scope="module", autouse=True)
def forget_programs():
    """Each compiled program maps memory of its own, of which a process may have 65,530 pieces."""
    yield
    jax.clear_caches()


@pytest.fixture
def x64():
    """64-bit arithmetic for one test."""
    before = jax.config.jax_enable_x64
    jax.config.update("jax_enable_x64", True)
    yield
    jax.config.update("jax_enable_x64", before)


@pytest.fixture(scope="module")
def compiled_once(tmp_path_factory):
    """A program that several tests run is compiled by the first of them; the cache's folder."""
    names = ("jax_compilation_cache_dir", "jax_persistent_cache_min_compile_time_secs")
    before = [getattr(jax.config, name) for name in names]
    folder = tmp_path_factory.getbasetemp() / "compiled"
    for name, value in zip(names, (str(folder), 0.3), strict=True):
        jax.config.update(name, value)
    compilation_cache.reset_cache()
    yield folder
    for name, value in zip(names, before, strict=True):
        jax.config.update(name, value)
    compilation_cache.reset_cache()
