"""What all tests share."""

import jax
import pytest

# A vector that meets a matrix by accident is an error, not a broadcast.
jax.config.update("jax_numpy_rank_promotion", "raise")


@pytest.fixture
def x64():
    """64-bit arithmetic for one test."""
    before = jax.config.jax_enable_x64
    jax.config.update("jax_enable_x64", True)
    yield
    jax.config.update("jax_enable_x64", before)
