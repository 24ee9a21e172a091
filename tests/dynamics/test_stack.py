"""Steps one after the other: in a loop or written out, they are the same steps."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from fenchel.dynamics import Damped, Repeat, particle_at
from fenchel.dynamics.stack import LARGE, LONGEST, UNROLL

KEY = jax.random.key(0)


def potential(x):
    return -jnp.sum(jnp.cosh(x))


def moved(count, remat=False):
    steps = Repeat(Damped(jnp.asarray(0.1), jnp.asarray(0.9)), count, remat=remat)

    def final(x):
        return steps(potential, particle_at(potential, x, jnp.zeros_like(x), 0.0), KEY).x

    return final


def written_out(dim, count, remat=False):
    """How many steps at a time the loop has, by its own account."""
    equations = jax.make_jaxpr(moved(count, remat))(jnp.zeros(dim)).eqns
    (loop,) = (each for each in equations if each.primitive.name == "scan")
    return loop.params["unroll"]


@pytest.mark.parametrize(
    ("backend", "dim", "count", "remat", "expected"),
    [
        ("cpu", LARGE - 1, 9, False, UNROLL),
        ("cpu", LARGE, 9, False, 1),
        ("gpu", LARGE - 1, 9, False, UNROLL),
        ("gpu", LARGE, 9, False, 8),  # the last step is outside
        ("gpu", LARGE, LONGEST + 1, False, LONGEST),
        ("gpu", LARGE, LONGEST + 2, False, 1),
        ("gpu", LARGE, 9, True, 1),
    ],
)
def test_large_steps_are_written_out_on_a_gpu(monkeypatch, backend, dim, count, remat, expected):
    monkeypatch.setattr(jax, "default_backend", lambda: backend)
    assert written_out(dim, count, remat) == expected


def test_of_loops_in_loops_the_innermost_is_written_out(monkeypatch):
    monkeypatch.setattr(jax, "default_backend", lambda: "gpu")
    steps = Repeat(Repeat(Damped(jnp.asarray(0.1), jnp.asarray(0.9)), 4), 9)
    x = jnp.zeros(LARGE)
    start = particle_at(potential, x, x, 0.0)
    outer, last = loops(jax.make_jaxpr(lambda particle: steps(potential, particle, KEY))(start))
    (inner,) = loops(outer.params["jaxpr"])
    assert [each.params["unroll"] for each in (outer, inner, last)] == [1, 3, 3]


def loops(jaxpr):
    return [each for each in jaxpr.eqns if each.primitive.name == "scan"]


@pytest.mark.parametrize("count", [3, 9])
def test_written_out_they_lead_to_the_same_point(monkeypatch, count):
    x = jnp.linspace(-1.0, 1.0, LARGE)
    results = []
    for backend, unroll in (("cpu", 1), ("gpu", count - 1)):
        monkeypatch.setattr(jax, "default_backend", lambda name=backend: name)
        assert written_out(LARGE, count) == unroll
        final = moved(count)
        results.append((final(x), jax.grad(lambda x, final=final: jnp.sum(final(x) ** 2))(x)))
    for looped, written in zip(*results, strict=True):
        np.testing.assert_allclose(written, looped, rtol=1e-6, atol=1e-7)
    assert not np.allclose(results[0][0], moved(count + 1)(x))


@pytest.mark.parametrize(
    ("backend", "dim", "count", "barriers"),
    [
        ("cpu", LARGE, 9, False),
        ("cpu", LARGE - 1, 9, False),
        ("gpu", LARGE, UNROLL + 1, False),
        ("gpu", LARGE, UNROLL + 2, True),
    ],
)
def test_many_at_once_are_gone_back_through_one_at_a_time(
    monkeypatch, backend, dim, count, barriers
):
    """Or else a compiler makes kernels of the whole way, which take minutes to be made."""
    monkeypatch.setattr(jax, "default_backend", lambda: backend)
    final = moved(count)
    forward = jax.make_jaxpr(final)(jnp.zeros(dim))
    back = jax.make_jaxpr(jax.grad(lambda x: jnp.sum(final(x))))(jnp.zeros(dim))
    assert "optimization_barrier" not in str(forward)
    assert ("optimization_barrier" in str(back)) == barriers
