import jax.numpy as jnp
import numpy as np
import pytest

from fenchel.evidence import integral, integrated
from fenchel.potentials import FullGaussian


@pytest.mark.parametrize("dim", [1, 2, 3])
def test_a_gaussian_is_integrated_exactly(dim, x64, monkeypatch):
    monkeypatch.setattr(integral, "NODES", {1: 101, 2: 101, 3: 61})
    precision = np.eye(dim) + 0.3
    f = FullGaussian.from_precision(jnp.full(dim, 0.2), jnp.asarray(precision))
    found = integrated(f, jnp.full(dim, -9.0), jnp.full(dim, 9.0))
    assert found.estimate == pytest.approx(float(f.log_partition()), abs=1e-8)
    assert found.lower <= found.estimate <= found.upper
    assert found.caution == ""


def test_within_a_box_the_ends_count_half(x64):
    # exp(x) on [0, 1]: e - 1, to the square of the spacing.
    found = integrated(lambda x: x[0], jnp.zeros(1), jnp.ones(1))
    assert found.estimate == pytest.approx(np.log(np.e - 1), abs=1e-8)


def cauchy(x):
    return -0.5 * (1 + x.size) * jnp.log1p(jnp.sum(x**2))


@pytest.mark.parametrize(("dim", "truth"), [(1, np.log(np.pi)), (2, np.log(2 * np.pi))])
def test_what_lies_beyond_the_grid_is_in_the_bracket(dim, truth, x64, monkeypatch):
    monkeypatch.setattr(integral, "NODES", {1: 4_001, 2: 501})
    box = jnp.full(dim, -60.0), jnp.full(dim, 60.0)
    found = integrated(cauchy, *box, (-np.inf, np.inf))
    assert found.lower < truth < found.upper < found.lower + 0.1
    assert "falls off slowly" in found.caution
    # f is known up to a constant, however large.
    for shift in (-200.0, 200.0):
        moved = integrated(lambda x: cauchy(x) + shift, *box, (-np.inf, np.inf))  # noqa: B023
        assert moved.width == pytest.approx(found.width, rel=1e-6)
    # Without the look beyond, the bracket misses; where space itself ends there is nothing beyond.
    blind = integrated(cauchy, *box)
    assert blind.upper < truth
    assert integrated(cauchy, *box, (-60.0, 60.0)) == blind


@pytest.mark.parametrize("dim", [2, 3])
def test_the_last_nodes_are_the_ends_themselves(dim, monkeypatch):
    """In single precision: one rounding beyond, and f is minus infinity on a whole face."""
    monkeypatch.setattr(integral, "NODES", {2: 101, 3: 41})
    low, high = jnp.full(dim, -0.37), jnp.full(dim, 1.13)

    def flat(x):
        return jnp.where(jnp.all((low <= x) & (x <= high)), 0.0, -jnp.inf)

    found = integrated(flat, low, high, (-0.37, 1.13))
    assert found.estimate == pytest.approx(dim * np.log(1.5), abs=1e-5)
    assert found.caution == ""


def test_a_density_too_thin_for_the_grid_is_noticed(monkeypatch):
    monkeypatch.setattr(integral, "NODES", {1: 21})
    found = integrated(lambda x: -0.5 * (x[0] / 0.01) ** 2, jnp.full(1, -4.0), jnp.full(1, 4.0))
    assert "too steep an f" in found.caution
