"""A flow whose steps are too long: the run says so, and shortens them."""

from functools import cache

import jax
import jax.numpy as jnp
import numpy as np
import paramax
import pytest

from fenchel.build import build
from fenchel.config import Config
from fenchel.parameters import fixed, positive, times
from fenchel.report.progress import describe_event
from fenchel.train import Batches, metrics_row, run

SMALL = Config().with_values(
    potential__kind="gaussian",
    start__kind="planar",
    start__layers=1,
    training__steps=20,
    training__batch=16,
    dynamics__steps=2,
)


@cache
def learner(kind):
    """Built once, since what is built anew is compiled anew."""
    return build(SMALL.with_values(dynamics__kind=kind), 2).learner


def trained(kind, **values):
    """(the sampler before, the sampler after, its moving average, all events)."""
    config = SMALL.with_values(dynamics__kind=kind, **values)
    parts = build(config, 2)
    data = jax.random.normal(jax.random.key(0), (100, 2))
    state = learner(kind).init(parts.potential, parts.sampler, data, jax.random.key(1))
    events = []
    for block in run(learner(kind), state, Batches(data, 16, 0.0), 20, 10):
        events += metrics_row(block, True, 1.0)["events"]
    return parts.sampler, block.state.sampler, block.state.averaged()[1], events


def step_of(sampler):
    return paramax.unwrap(sampler.dynamics.layers.step_size)


def test_steps_that_may_fold_are_halved_until_they_cannot():
    """η = 12.5 on a normal of curvature 1: η δ is above 12 from the beginning."""
    before, after, average, events = trained("deterministic", dynamics__step_size=5.0)
    strained = [event for event in events if event["who"] == "flow"]
    count = len(strained)
    assert 3 <= count <= 10
    assert [event["iteration"] for event in strained] == list(range(1, count + 1))
    assert all(event["strain"] >= 1 for event in strained)
    ratio = float(jnp.max(step_of(after)) / jnp.max(step_of(before)))
    assert ratio == pytest.approx(0.5**count, rel=0.15)  # and what was learnt meanwhile
    # The average must not remember steps that fold.
    np.testing.assert_allclose(step_of(average), step_of(after), rtol=0.2)
    assert "shortened by half" in describe_event(strained[0])
    assert f"iteration {strained[0]['iteration']}" in describe_event(strained[0])


def test_steps_that_cannot_are_left_alone():
    before, after, _, events = trained("deterministic")
    assert events == []
    np.testing.assert_allclose(step_of(after), step_of(before), rtol=0.15)


def test_a_solver_that_gives_up_is_met_by_the_guard_and_by_a_shorter_flow():
    before, after, _, events = trained("continuous", dynamics__step_size=30.0)
    kinds = {event["who"] for event in events}
    assert "flow" in kinds
    last = max(event["iteration"] for event in events)
    assert last < 20  # it recovered
    time = lambda sampler: float(paramax.unwrap(sampler.dynamics.time))  # noqa: E731
    assert time(after) < 0.5 * time(before)


def test_a_parameter_is_multiplied_however_it_is_wrapped():
    for wrapped in (positive(3.0), fixed(3.0), jnp.asarray(3.0)):
        assert paramax.unwrap(times(wrapped, 0.5)) == pytest.approx(1.5)
        assert type(times(wrapped, 0.5)) is type(wrapped)
    assert times(None, 0.5) is None
