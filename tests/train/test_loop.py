"""The loop: it compiles once, goes on after bad data, stops when nothing helps, and vmaps."""

import io

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest
from flowjax.distributions import Normal
from rich.console import Console

from fenchel.arrays import to_table
from fenchel.build import build
from fenchel.config import Config, PotentialConfig, StartConfig
from fenchel.dynamics import CentredNormal, Chain, Leapfrog
from fenchel.errors import DivergenceError, InputError
from fenchel.estimators import FenchelBound
from fenchel.parameters import positive
from fenchel.potentials import DiagonalGaussian
from fenchel.report.progress import Bar
from fenchel.samplers import Embedding
from fenchel.stacking import stack, unstack
from fenchel.starts import Empirical, Flow
from fenchel.train import Batches, MaxMin, metrics_row, run, run_block
from fenchel.train.guard import all_finite
from fenchel.train.many import run_many

SMALL = Config(
    potential=PotentialConfig(width=4, depth=1),
    start=StartConfig(layers=1, width=4, depth=1, capacity=10),
)


def sampler(dynamics=None) -> Embedding:
    start = Flow(Normal(jnp.zeros(2), jnp.ones(2)), CentredNormal(2))
    return Embedding(start, Chain() if dynamics is None else dynamics)


def gaussian() -> DiagonalGaussian:
    return DiagonalGaussian(jnp.zeros(2), jnp.zeros(2))


def data(n: int = 30, seed: int = 0) -> jax.Array:
    return jnp.asarray(np.random.default_rng(seed).normal(size=(n, 2)) + 0.5, jnp.float32)


@pytest.mark.parametrize(("loop", "module"), [(run, "loop"), (run_many, "many")])
def test_want_of_memory_ends_a_loop_in_words(monkeypatch, loop, module):
    def large(*arguments):
        raise jax.errors.JaxRuntimeError("RESOURCE_EXHAUSTED: : CUDA_ERROR_OUT_OF_MEMORY: out of")

    monkeypatch.setattr(f"fenchel.train.{module}.compiled", lambda program: large)
    learner, batches = MaxMin(FenchelBound(), FenchelBound()), Batches(data(), 4)
    state = learner.init(gaussian(), sampler(), data(), jax.random.key(0))
    state = stack([state]) if loop is run_many else state
    with pytest.raises(InputError, match="too little memory left"):
        next(loop(learner, state, batches, 10))


class CountingBatches(eqx.Module):
    """Batches that count how often the loop's body is traced."""

    data: jax.Array
    traces: list = eqx.field(static=True)
    size: int = eqx.field(static=True, default=4)

    def draw(self, count, key):
        self.traces.append(1)
        return Batches(self.data, self.size).draw(count, key)


class Names(list):
    """A list that may be static."""

    __hash__ = object.__hash__


def test_blocks_of_equal_length_are_traced_once_and_a_tail_once_more():
    maxmin, batches = MaxMin(), CountingBatches(data(), Names())
    state = maxmin.init(gaussian(), sampler(), batches.data, jax.random.key(0))
    blocks, traces = [], []
    for block in run(maxmin, state, batches, 14, 3):
        blocks.append(block)
        traces.append(len(batches.traces))
    assert traces == [1, 1, 1, 1, 2]
    assert [block.iteration for block in blocks] == [3, 6, 9, 12, 14]
    assert [len(block.info.ess) for block in blocks] == [3, 3, 3, 3, 2]
    assert int(blocks[-1].state.iteration) == 14
    # From a block's state on, the run is the one it would have been, and compiles nothing new.
    again = list(run(maxmin, blocks[2].state, batches, 14, 3))
    assert [block.iteration for block in again] == [12, 14]
    assert len(batches.traces) == 2
    ours, theirs = (to_table(run[-1].state) for run in (blocks, again))
    assert all((ours[name] == theirs[name]).all() for name in ours)


def changed_types(make) -> list[str]:
    """The arrays of the state that a block hands back with another type than it got them with.

    `make` gives the potential, the sampler and their MaxMin. Nothing is computed, only traced.
    """

    def before_and_after():
        f, embedding, maxmin = make()
        batches = Batches(data(), 4)
        state = maxmin.init(f, embedding, batches.data, jax.random.key(0))
        return state, run_block(maxmin, state, batches, 2)[0]

    def types(tree):
        return {
            jax.tree_util.keystr(path): (leaf.shape, leaf.dtype, leaf.weak_type)
            for path, leaf in jax.tree_util.tree_leaves_with_path(tree)
            if isinstance(leaf, jax.ShapeDtypeStruct)
        }

    before, after = map(types, eqx.filter_eval_shape(before_and_after))
    assert before.keys() == after.keys()
    assert before
    return [name for name in before if before[name] != after[name]]


@pytest.mark.parametrize(
    "values",
    [
        {},
        {"potential__kind": "full-gaussian", "start__kind": "coupling"},
        {"start__kind": "planar", "dynamics__kind": "generalized-hmc+langevin"},
        {"start__kind": "deep-latent", "training__gradient": "bptt"},
        {"start__kind": "replay", "dynamics__metropolis": True},
    ],
)
def test_no_array_changes_its_type_in_a_block(values):
    """Or every run would compile its block twice."""
    config = SMALL.with_values(training__gradient_penalty=0.1, **values)
    assert changed_types(lambda: build(config, 2)) == []


def weak():
    return DiagonalGaussian(jnp.zeros(2), jnp.asarray(0.0)), sampler(), MaxMin()


def test_a_weakly_typed_parameter_of_the_users_is_made_definite():
    assert jnp.asarray(0.0).weak_type
    assert changed_types(weak) == []


def test_a_weakly_typed_parameter_would_be_seen(monkeypatch):
    """Negative control."""
    monkeypatch.setattr("fenchel.train.maxmin.definite", lambda tree: tree)
    assert ".potential.log_precision" in changed_types(weak)


def test_one_bad_row_of_data_is_met_and_survived():
    """Each event is at just the iteration, and of just the learner, whose batch held the row."""
    rows = data(40).at[17].set(jnp.nan)
    maxmin, batches = MaxMin(), Batches(rows, 4, noise=0.01)
    first = maxmin.init(gaussian(), sampler(), rows, jax.random.key(3))
    events, state = [], first
    for block in run(maxmin, first, batches, 60, 20):
        row = metrics_row(block, True, 1.0)
        assert row["skipped"] == sum(event["dropped"] for event in row["events"])
        assert row["log_likelihood"] is not None
        assert row["iteration"] == block.iteration
        events, state = events + row["events"], block.state

    @jax.jit
    @jax.vmap
    def is_bad(iteration):
        batch_key, _ = jax.random.split(jax.random.fold_in(first.key, iteration))
        return jnp.isnan(batches.draw(3, batch_key)).any(axis=(1, 2))

    expected = []
    for iteration, bad in enumerate(np.asarray(is_bad(jnp.arange(60))), start=1):
        if bad[:2].any():
            expected.append((iteration, "sampler", int(bad[:2].sum())))
        if bad[2]:
            expected.append((iteration, "potential", 1))
    assert len(expected) > 5  # or the test would be about nothing
    seen = [(event["iteration"], event["who"], event["dropped"]) for event in events]
    assert sorted(seen) == sorted(expected)
    assert [event["iteration"] for event in events] == sorted(e["iteration"] for e in events)
    assert all(0 < event["learning_rate"] < 1 for event in events)
    assert all_finite(tuple(state[:6]))


class NotANumber(eqx.Module):
    weight: jax.Array

    def __call__(self, x):
        return self.weight * jnp.sum(x) * jnp.nan


def test_a_potential_that_is_nowhere_finite_stops_the_run():
    maxmin, batches = MaxMin(sampler_steps=1), Batches(data(), 4)
    state = maxmin.init(NotANumber(jnp.ones(1)[0]), sampler(), batches.data, jax.random.key(0))
    blocks = []
    with pytest.raises(DivergenceError) as caught:
        blocks.extend(run(maxmin, state, batches, 80, 20))
    message = str(caught.value)
    assert "iteration 20: 20 steps of the potential in a row were not finite" in message
    assert "None of them was applied" in message
    for cure in ("smaller learning rates", "step size", "clip", "check that it is finite"):
        assert cure in message
    # What happened was handed out, to be recorded; nothing was applied.
    (block,) = blocks
    before, after = (to_table(tuple(each)[:6]) for each in (state, block.state))
    assert all((before[name] == after[name]).all() for name in before)
    row = metrics_row(block, True, 1.0)
    assert row["log_likelihood"] is None
    assert row["skipped"] == 40
    assert row["potential_rate"] == row["sampler_rate"] == 0.5**20
    assert [e["iteration"] for e in row["events"]] == [i for i in range(1, 21) for _ in range(2)]
    with Bar(Console(file=io.StringIO())) as bar:  # which can show such a row too
        bar.begin(80, 0)
        bar.block(row)


class SteepAtZero(eqx.Module):
    """Finite everywhere, but with an infinite gradient in its only parameter."""

    weight: jax.Array

    def __call__(self, x):
        return -(0.5 + jnp.sqrt(self.weight)) * jnp.sum(x**2)


def test_a_potential_whose_every_step_is_dropped_stops_the_run():
    maxmin, batches = MaxMin(sampler_steps=1), Batches(data(), 4)
    state = maxmin.init(SteepAtZero(jnp.zeros(1)[0]), sampler(), batches.data, jax.random.key(0))
    seen = []
    with pytest.raises(DivergenceError):
        seen.extend(run(maxmin, state, batches, 40, 20))
    # What happened was handed out, to be recorded, before the run was stopped.
    assert [int(np.sum(block.info.dropped_potential)) for block in seen] == [20]


def test_seeds_and_data_sets_at_once_are_the_separate_runs():
    """Four of them: two seeds on each of two data sets."""
    maxmin = MaxMin(sampler_steps=1)
    embedding = sampler(Leapfrog(positive(0.2)))
    runs = [
        (maxmin.init(gaussian(), embedding, data(), jax.random.key(seed)), Batches(data(seed=d), 4))
        for seed in (0, 1)
        for d in (5, 6)
    ]
    states, batches = (stack(column) for column in zip(*runs, strict=True))
    (block,) = run_many(maxmin, states, batches, 10, 10)
    alone = eqx.filter_jit(run_block)
    ends = []
    for index, (state, own) in enumerate(runs):
        expected, info = alone(maxmin, state, own, 10)
        ours, theirs = eqx.filter((unstack(block.state, index), expected), eqx.is_inexact_array)
        for one, other in zip(jax.tree.leaves(ours), jax.tree.leaves(theirs), strict=True):
            np.testing.assert_allclose(one, other, rtol=1e-5, atol=1e-5)
        np.testing.assert_allclose(
            block.info.log_likelihood[index], info.log_likelihood, rtol=1e-4, atol=1e-5
        )
        ends.append(np.asarray(expected.potential.mean))
    # And they are four different runs.
    assert all(np.abs(ends[i] - ends[j]).max() > 1e-4 for i in range(4) for j in range(i))


def test_what_cannot_work_together_is_refused():
    embedding = Embedding(Empirical(CentredNormal(2)), Chain())
    with pytest.raises(InputError, match=r"need a sampler with an exact density.*FenchelBound"):
        MaxMin(anchor=0.0).check(embedding)
    with pytest.raises(InputError, match=r"start with a density.*set the anchor to 0"):
        MaxMin(bound=FenchelBound()).check(embedding)
    MaxMin(bound=FenchelBound(), anchor=0.0).check(embedding)


def test_each_part_has_its_own_optimiser():
    """With a rate of zero for the start only the dynamics, and f, move."""
    maxmin = MaxMin(
        start_optimiser=optax.sgd(0.0), dynamics_optimiser=optax.sgd(0.1), sampler_steps=1
    )
    batches, embedding = Batches(data(), 4), sampler(Leapfrog(positive(0.2)))
    state = maxmin.init(gaussian(), embedding, batches.data, jax.random.key(0))
    after = next(run(maxmin, state, batches, 2, 2)).state
    before, after = (
        to_table((state.potential, embedding)),
        to_table((after.potential, after.sampler)),
    )
    moved = {name for name in before if (before[name] != after[name]).any()}
    learnt_by_others = {
        name for name in before if ".start" not in name and ".precision" not in name
    }
    assert any(".start" in name for name in before)
    assert moved == learnt_by_others


def test_batches_come_from_the_data_with_the_noise_asked_for():
    """A chi-squared over 4,000 normals within 4.5 standard deviations: fails 1 in 10⁵."""
    rows = jnp.arange(10.0).reshape(5, 2) * 100
    drawn = Batches(rows, 8).draw(3, jax.random.key(0))
    assert drawn.shape == (3, 8, 2)
    assert {tuple(row) for row in np.asarray(drawn).reshape(-1, 2)} <= {
        tuple(row) for row in np.asarray(rows)
    }
    noisy = np.asarray(Batches(rows, 2_000, noise=0.1).draw(1, jax.random.key(1)))[0]
    nearest = 200 * np.round(noisy[:, :1] / 200) + np.array([[0, 100]])
    spread = np.mean((noisy - nearest) ** 2) / 0.01
    assert abs(spread - 1) < 4.5 * (2 / 4_000) ** 0.5
