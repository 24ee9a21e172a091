"""The guard: what is not finite is never applied, never hidden, and not the end of the run."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest
from flowjax.distributions import Normal

from fenchel.arrays import to_table
from fenchel.dynamics import CentredNormal, Leapfrog
from fenchel.parameters import positive
from fenchel.potentials import DiagonalGaussian
from fenchel.samplers import Embedding
from fenchel.starts import Flow
from fenchel.train import Guard, GuardState, MaxMin
from fenchel.train.guard import all_finite, total

PARAMS = {"a": jnp.array([1.0, -2.0]), "b": jnp.array(0.5)}
GRADS = {"a": jnp.array([0.3, 0.1]), "b": jnp.array(-1.0)}
NAN_STATE = optax.GradientTransformation(
    lambda params: jnp.zeros(()), lambda grads, state, params=None: (grads, state + jnp.nan)
)


def same_bits(one, other) -> bool:
    """Equal structure, types and bits, NaN included."""
    leaves, others = (list(to_table(tree).items()) for tree in (one, other))
    return len(leaves) == len(others) and all(
        name == other and a.dtype == b.dtype and a.tobytes() == b.tobytes()
        for (name, a), (other, b) in zip(leaves, others, strict=True)
    )


def guarded(grads=GRADS, loss=1.0, optimiser=None, state=None, guard=None):
    """One step on PARAMS: (guard state, outcome, whether parameters and memory stayed)."""
    guard = guard or Guard()
    optimiser = optimiser or optax.adam(0.1)
    memory = optimiser.init(PARAMS)
    params, new, state, outcome = guard.step(
        state or guard.init(), optimiser, jnp.asarray(loss), grads, PARAMS, memory
    )
    return params, state, outcome, same_bits((params, new), (PARAMS, memory))


def test_a_good_step_is_the_optimisers():
    params, state, outcome, stayed = guarded(optimiser=optax.sgd(0.1))
    assert not stayed
    assert not outcome.dropped
    assert outcome.grad_norm == pytest.approx(np.sqrt(0.09 + 0.01 + 1.0))
    np.testing.assert_allclose(params["a"], [0.97, -2.01], rtol=1e-6)
    assert (state.rate, state.streak) == (1.0, 0)


@pytest.mark.parametrize(
    "bad",
    [
        {"loss": jnp.nan},
        {"loss": jnp.inf},
        {"grads": {**GRADS, "b": jnp.array(jnp.nan)}},
        {"grads": {**GRADS, "a": jnp.array([0.0, jnp.inf])}},
        {"grads": {**GRADS, "b": jnp.array(-jnp.inf)}},
        {"optimiser": optax.scale(jnp.inf)},  # the update explodes, the gradient did not
        {"optimiser": optax.scale(3e38), "grads": {**GRADS, "b": jnp.array(-10.0)}},
        {"optimiser": NAN_STATE},  # parameters would be fine, the optimiser would not
    ],
)
def test_a_bad_step_changes_nothing(bad):
    before = GuardState(jnp.array(0.8), jnp.array(3, jnp.int32))
    _, state, outcome, stayed = guarded(**bad, state=before)
    assert stayed
    assert outcome.dropped
    assert state.rate == pytest.approx(0.4)
    assert state.streak == 4


def test_the_rate_multiplies_the_step():
    half = GuardState(jnp.array(0.5), jnp.array(0, jnp.int32))
    params, *_ = guarded(optimiser=optax.sgd(0.1), state=half)
    np.testing.assert_allclose(params["a"], [0.985, -2.005], rtol=1e-6)


def test_good_steps_let_the_rate_recover_up_to_one():
    guard = Guard(recovery=1.5)
    state, rates = GuardState(jnp.array(0.25), jnp.array(7, jnp.int32)), []
    for _ in range(5):
        _, state, *_ = guarded(state=state, guard=guard)
        rates.append(float(state.rate))
        assert state.streak == 0
    np.testing.assert_allclose(rates, [0.375, 0.5625, 0.84375, 1.0, 1.0])


def test_all_finite_sees_every_leaf():
    assert all_finite({"a": jnp.ones(3), "n": jnp.array(2), "none": None})
    assert not all_finite({"a": jnp.ones(3), "b": jnp.array([1.0, jnp.nan])})
    assert not all_finite({"a": jnp.array([jnp.inf, -jnp.inf])})  # which must not cancel
    assert not all_finite({"a": jnp.ones(3), "b": jnp.array([jnp.inf, 0, 0]), "c": -jnp.ones(3)})


def test_a_total_is_over_all_numbers_whatever_their_shapes():
    tree = {"a": jnp.ones(3), "b": jnp.full(3, -2.0), "c": jnp.full((3, 1), 3.0), "n": jnp.array(5)}
    assert float(total(jnp.square, tree)) == 3 * (1 + 4 + 9)
    assert float(total(jnp.abs, {})) == 0.0
    coarse = [jnp.ones(2, jnp.bfloat16)] * 1_000  # which would be lost if they were added up so
    assert float(total(jnp.abs, coarse)) == 2_000.0


# One iteration of Algorithm 1, with batches that are not finite where the test wants them so.


def counts(info):
    """Dropped in this iteration, and in a row: the potential's, the sampler's."""
    return (
        info.dropped_potential,
        info.dropped_sampler,
        info.potential_streak,
        info.sampler_streak,
    )


@pytest.fixture(scope="module")
def step():
    """(a state after a few good iterations, a compiled iteration)."""
    maxmin = MaxMin(decay=0.9)
    start = Flow(Normal(jnp.zeros(2), jnp.ones(2)), CentredNormal(2))
    sampler = Embedding(start, Leapfrog(positive(0.2)))
    f = DiagonalGaussian(jnp.zeros(2), jnp.zeros(2))
    state = maxmin.init(f, sampler, jnp.zeros((1, 2)), jax.random.key(0))
    compiled = eqx.filter_jit(maxmin.step)

    def iterate(state, bad=(), value=jnp.nan):
        """With this value in the batches named: 0 and 1 are the sampler's, 2 is f's."""
        batches = 0.5 + jax.random.normal(jax.random.fold_in(state.key, state.iteration), (3, 8, 2))
        for index in bad:
            batches = batches.at[index, 3, 1].set(value)
        return compiled(state, batches, jax.random.fold_in(state.key, state.iteration + 1_000))

    for _ in range(3):
        state, info = iterate(state)
        assert counts(info) == (0, 0, 0, 0)
    return state, iterate


@pytest.mark.parametrize("value", [jnp.nan, jnp.inf, -jnp.inf])
def test_an_iteration_that_is_bad_throughout_leaves_everything(step, value):
    before, iterate = step
    after, info = iterate(before, bad=(0, 1, 2), value=value)
    changed = {"potential_guard", "sampler_guard", "iteration"}
    for name in before._fields:
        assert same_bits(getattr(before, name), getattr(after, name)) == (name not in changed), name
    assert after.iteration == before.iteration + 1
    assert counts(info) == (1, 2, 1, 2)
    assert info.potential_rate == after.potential_guard.rate == before.potential_guard.rate * 0.5
    assert info.sampler_rate == after.sampler_guard.rate == before.sampler_guard.rate * 0.5**2


def test_a_bad_batch_of_the_potential_leaves_the_potential(step):
    before, iterate = step
    after, info = iterate(before, bad=(2,))
    assert (info.dropped_potential, info.dropped_sampler) == (1, 0)
    for name in ("potential", "potential_memory", "averages"):
        assert same_bits(getattr(before, name), getattr(after, name)), name
    assert not same_bits(before.sampler, after.sampler)  # its own steps were good
    assert all_finite((after.sampler, after.sampler_memory))


def test_a_bad_batch_of_the_sampler_costs_one_of_its_steps(step):
    before, iterate = step
    after, info = iterate(before, bad=(0,))
    good, _ = iterate(before)
    assert counts(info) == (0, 1, 0, 0)
    for name in ("potential", "sampler", "averages"):
        assert not same_bits(getattr(before, name), getattr(after, name)), name
    assert not same_bits(good.sampler, after.sampler)
    assert all_finite(tuple(after[:6]))
    assert after.sampler_guard.rate == pytest.approx(0.5 * 1.001, rel=1e-6)
    assert after.potential_guard.rate == 1


def test_good_steps_of_the_sampler_do_not_hide_a_stuck_potential(step):
    state, iterate = step
    for count in range(1, 4):
        state, info = iterate(state, bad=(2,))
        assert (info.potential_streak, info.sampler_streak) == (count, 0)
    assert (state.potential_guard.rate, state.sampler_guard.rate) == (0.5**3, 1)


def test_training_goes_on_after_bad_iterations(step):
    state, iterate = step
    for _ in range(3):
        state, _ = iterate(state, bad=(0, 1, 2))
    held, low = state, float(state.potential_guard.rate)
    assert (low, float(state.sampler_guard.rate)) == (0.5**3, 0.5**6)
    for _ in range(10):
        state, info = iterate(state)
        assert counts(info) == (0, 0, 0, 0)
        assert all_finite(tuple(state[:6]))
    assert state.potential_guard.rate == pytest.approx(low * 1.001**10, rel=1e-5)
    assert state.sampler_guard.rate == pytest.approx(low**2 * 1.001**20, rel=1e-5)
    assert not same_bits(held.potential, state.potential)
    assert not same_bits(held.averages, state.averages)
