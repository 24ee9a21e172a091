"""What all tests share."""

import os
import sys
from pathlib import Path

import jax
import numpy as np
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

# Runs that are trained at once are spread over devices.
jax.config.update("jax_num_cpu_devices", 2)

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
    "test_toys.py",
    "test_pictures.py",
    "test_picture_evaluation.py",
    "test_evaluation.py",
    "test_standard_errors.py",
    "test_simultaneous.py",
    "test_gradient_flow.py",
    "test_embedding_density.py",
}


def pytest_collection_modifyitems(items):
    items.sort(key=lambda item: item.path.name not in LONG)


@pytest.fixture(scope="module", autouse=True)
def forget_programs():
    """Each compiled program maps memory of its own, of which a process may have 65,530 pieces."""
    yield
    pieces = Path("/proc/self/maps")
    if pieces.exists() and pieces.read_text().count("\n") > 40_000:
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


@pytest.fixture
def call(monkeypatch, capsys):
    """The exit code of `fenchel ARGUMENTS`, and what it said where."""
    from fenchel import cli

    def command(*arguments):
        monkeypatch.setattr(sys, "argv", ["fenchel", *map(str, arguments)])
        with pytest.raises(SystemExit) as stop:
            cli.main()
        said = capsys.readouterr()
        return stop.value.code or 0, said.out, " ".join(said.err.split())

    return command


@pytest.fixture(scope="session")
def tiny_inception(tmp_path_factory):
    """A file of the whole FID Inception network with random weights, and few channels."""
    from fenchel.evaluate.inception import BLOCKS, STEM, Fork, Named

    rng, arrays = np.random.default_rng(0), {}

    def chain(parts, prefix, channels):
        """Fill in the weights of a chain of layers, and count the channels that it gives."""
        for part in parts:
            if isinstance(part, Named):
                channels = convolution(prefix + part.name, channels, part.kernel[:2])
            elif isinstance(part, Fork):
                channels = sum(chain(branch, prefix, channels) for branch in part.chains)
        return channels

    def convolution(name, before, window):
        after = int(rng.integers(1, 4))
        scale = np.sqrt(2.0 / (before * np.prod(window)))
        arrays[f"{name}.weight"] = rng.normal(0.0, scale, (after, before, *window))
        arrays[f"{name}.beta"], arrays[f"{name}.mean"] = rng.normal(0.0, 0.1, (2, after))
        arrays[f"{name}.var"] = rng.uniform(0.5, 1.5, after)
        return after

    channels = chain(STEM, "", 3)
    for name, block in BLOCKS.items():
        channels = chain((block,), f"{name}.", channels)
    path = tmp_path_factory.mktemp("inception") / "tiny.npz"
    np.savez(path, **{name: array.astype(np.float32) for name, array in arrays.items()})
    return path
