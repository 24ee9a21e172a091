"""What all tests share."""

import os
from pathlib import Path

import jax
import pytest
from jax.experimental.compilation_cache import compilation_cache

# The tests' programs run for moments and compile for seconds. In the environment too, for the
# processes that tests start: a run and its resumption must be compiled alike.
os.environ["JAX_DISABLE_MOST_OPTIMIZATIONS"] = "true"
jax.config.update("jax_disable_most_optimizations", True)
# Of XLA's two ways to write a CPU's loops the newer compiles for twice as long. A version of XLA
# that does not know a flag refuses to start: only those that do are asked.
if jax.__version_info__ < (0, 11):
    os.environ.setdefault("XLA_FLAGS", "--xla_cpu_use_fusion_emitters=false")

# A vector that meets a matrix by accident is an error, not a broadcast.
jax.config.update("jax_numpy_rank_promotion", "raise")


# The files that take longest begin first, so that no process is left alone with one at the end.
LONG = {
    "test_methods.py",
    "test_connections.py",
    "test_cli.py",
    "test_recovery.py",
    "test_readme.py",
    "test_runs.py",
    "test_fitting.py",
    "test_strain.py",
    "test_given_density.py",
}


def pytest_collection_modifyitems(items):
    items.sort(key=lambda item: item.path.name not in LONG)


@pytest.fixture(scope="module", autouse=True)
def forget_programs():
    """Each compiled program maps memory of its own, of which a process may have 65,530 pieces."""
    yield
    pieces = Path("/proc/self/maps")
    if pieces.exists() and pieces.read_text().count("\n") > 20_000:
        jax.clear_caches()


@pytest.fixture(scope="module")
def few_draws():
    """Summaries and figures of a fit need not be good where only their making is tested."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("fenchel.drawing.CHUNK", 64)
        patch.setattr("fenchel.partition.CHUNKS", 2)
        patch.setattr("fenchel.estimation.TRAJECTORIES", 2)
        patch.setattr("fenchel.estimation.SWEEPS", 2)
        patch.setattr("fenchel.estimation.FINE", 20)
        patch.setattr("fenchel.evidence.integral.NODES", {1: 101, 2: 41, 3: 11})
        patch.setattr("fenchel.report.summary.DRAWS", 128)
        patch.setattr("fenchel.report.summary.FRESH", 500)
        yield


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
