"""From a configuration to its objects, and what cannot be built."""

import re

import jax
import jax.numpy as jnp
import numpy as np
import paramax
import pytest
from flowjax.distributions import Normal

from fenchel.build import build
from fenchel.config import Config, PotentialConfig, StartConfig
from fenchel.dynamics import CentredNormal, Chain, Leapfrog, Options, generalized_hmc
from fenchel.errors import InputError
from fenchel.estimators import FenchelBound, WeightedBound
from fenchel.parameters import positive
from fenchel.potentials import DiagonalGaussian, FullGaussian, OnBase
from fenchel.samplers import BackPropagation, Truncated
from fenchel.starts import DeepLatent, Empirical, Flow, Replay

SMALL = Config(
    potential=PotentialConfig(width=4, depth=1),
    start=StartConfig(kind="planar", layers=1, width=4, depth=1, capacity=10),
)


def draw(parts, dim: int = 2):
    """Three particles of the built sampler."""
    points = jnp.zeros((3, dim))
    state = parts.sampler.init(points, jax.random.key(0))
    return parts.sampler.draw(parts.potential, points, state, jax.random.key(1))[0]


@pytest.mark.parametrize(("kind", "expected"), [("mlp", OnBase), ("gaussian", DiagonalGaussian)])
def test_potentials(kind, expected):
    assert isinstance(build(SMALL.with_values(potential__kind=kind), 2).potential, expected)


def test_a_full_gaussian_starts_at_the_identity():
    potential = build(SMALL.with_values(potential__kind="full-gaussian"), 3).potential
    assert isinstance(potential, FullGaussian)
    np.testing.assert_allclose(potential.precision, np.eye(3))


def test_no_base_measure():
    config = Config(potential=PotentialConfig(width=4, depth=1, base_scale=None))
    assert not isinstance(build(config, 2, start=Empirical(CentredNormal(2))).potential, OnBase)


@pytest.mark.parametrize(
    ("kind", "expected", "exact"),
    [
        ("planar", Flow, True),
        ("deep-latent", DeepLatent, True),
        ("empirical", Empirical, False),
        ("replay", Replay, False),
    ],
)
def test_starts_and_what_goes_with_them(kind, expected, exact):
    """No weights and no anchor where there is no density for them."""
    parts = build(SMALL.with_values(start__kind=kind), 2)
    assert isinstance(parts.sampler.start, expected)
    assert parts.sampler.exact == exact
    assert isinstance(parts.learner.bound, WeightedBound if exact else FenchelBound)
    assert parts.learner.anchor == (1.0 if kind == "planar" else 0.0)
    parts.learner.check(parts.sampler)  # and they do work together


@pytest.mark.parametrize(("dim", "weight"), [(1, 1.0), (2, 1.0), (8, 0.25)])
def test_the_anchor_grows_lighter_in_many_dimensions(dim, weight):
    """Unless it is given."""
    planar = SMALL.with_values(start__kind="planar")
    assert build(planar, dim).learner.anchor == weight
    assert build(planar.with_values(training__anchor=0.5), dim).learner.anchor == 0.5


def test_broken_densities_fall_back_on_the_plain_bound():
    for values in ({"dynamics__box": (-1.0, 1.0)}, {"dynamics__metropolis": True}):
        parts = build(SMALL.with_values(**values), 2)
        assert not parts.sampler.exact
        assert isinstance(parts.learner.bound, FenchelBound)
        assert parts.learner.anchor == 1.0  # the start's own density is untouched


@pytest.mark.parametrize("kind", ["none", "generalized-langevin", "hmc+generalized-hmc+langevin"])
def test_dynamics_and_their_momenta(kind):
    """Recipes of different momentum spaces are chained by fresh momenta."""
    config = SMALL.with_values(
        dynamics__kind=kind, dynamics__steps=2, dynamics__precision=(1.0, 2.0), dynamics__latent=3
    )
    particles = jax.eval_shape(lambda: draw(build(config, 2)))
    assert particles.log_q.shape == (3,)
    assert particles.v.shape == (3, 3 if kind == "generalized-langevin" else 2)


def test_objects_of_ones_own_are_taken_as_they_are():
    potential = DiagonalGaussian(jnp.zeros(2), jnp.zeros(2))
    start = Flow(Normal(jnp.zeros(2), jnp.ones(2)), CentredNormal(2))
    dynamics = Leapfrog(positive(0.1))
    names = {"potential__kind": "custom", "start__kind": "custom", "dynamics__kind": "custom"}
    parts = build(
        SMALL.with_values(**names), 2, potential=potential, start=start, dynamics=dynamics
    )
    assert parts.potential is potential
    assert parts.sampler.start is start
    assert parts.sampler.dynamics is dynamics


def test_own_dynamics_with_a_start_by_name():
    config = SMALL.with_values(dynamics__kind="custom")
    parts = build(config, 2, dynamics=Leapfrog(positive(0.1)))
    assert paramax.unwrap(parts.sampler.start.momentum).scale.shape == (2,)


def test_own_start_with_dynamics_by_name():
    start = Flow(Normal(jnp.zeros(2), jnp.ones(2)), CentredNormal(3))
    config = SMALL.with_values(
        start__kind="custom", dynamics__kind="generalized-hmc", dynamics__latent=3
    )
    assert build(config, 2, start=start).sampler.start is start


def test_the_same_seed_builds_the_same():
    one, two, other = (build(SMALL.with_values(seed=seed), 2) for seed in (1, 1, 2))
    at = jnp.array([0.3, -0.2])
    assert one.potential(at) == two.potential(at)
    assert one.potential(at) != other.potential(at)


def test_training_settings_arrive():
    config = SMALL.with_values(
        training__bound="fenchel",
        training__gradient="bptt",
        training__entropy=0.5,
        training__momentum=0.25,
        training__anchor=0.0,
        training__gradient_penalty=0.125,
        training__sampler_steps=3,
    )
    maxmin = build(config, 2).learner
    assert isinstance(maxmin.gradient, BackPropagation)
    assert (maxmin.bound.entropy, maxmin.bound.momentum) == (0.5, 0.25)
    assert (maxmin.dual.entropy, maxmin.dual.momentum) == (0.5, 0.25)
    assert (maxmin.anchor, maxmin.gradient_penalty, maxmin.sampler_steps) == (0.0, 0.125, 3)
    assert isinstance(build(SMALL, 2).learner.gradient, Truncated)


@pytest.mark.parametrize(
    ("part", "updates"),
    [("potential_optimiser", 1), ("start_optimiser", 3), ("dynamics_optimiser", 3)],
)
def test_learning_rates_fall_until_the_end_of_the_run_and_no_earlier(part, updates):
    config = SMALL.with_values(
        training__steps=10, training__sampler_steps=3, training__final_rate=0.1
    )
    optimiser = getattr(build(config, 2).learner, part)
    # Adam's steps are as long as its rate where the gradient is always the same.
    memory, gradient, lengths = optimiser.init(jnp.zeros(())), jnp.ones(()), []
    for _ in range(10 * updates + 1):
        step, memory = optimiser.update(gradient, memory)
        lengths.append(float(-step))
    assert lengths[-1] / lengths[0] == pytest.approx(0.1, rel=1e-4)
    middle = lengths[5 * updates] / lengths[0]
    assert middle == pytest.approx(0.55, rel=1e-4)  # of a cosine, the mean of its ends


@pytest.mark.parametrize(
    ("name", "wrong", "expected"),
    [
        ("method", "adee", "no method called 'adee' (did you mean ade?)"),
        ("potential__kind", "gausian", "did you mean gaussian?"),
        ("potential__activation", "sliu", "did you mean silu?"),
        ("start__kind", "spilne", "did you mean spline?"),
        ("dynamics__kind", "hcm", "did you mean hmc?"),
        ("dynamics__kind", "hmc+langevine", "did you mean langevin?"),
        ("training__bound", "weigted", "did you mean weighted?"),
        ("training__gradient", "trunkated", "did you mean truncated?"),
    ],
)
def test_unknown_names_with_the_nearest(name, wrong, expected):
    with pytest.raises(InputError, match=re.escape(expected)):
        build(SMALL.with_values(**{name: wrong}), 2)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("steps", 0),
        ("batch", -1),
        ("sampler_steps", -1),
        ("block", 0),
        ("checkpoint_every", 0),
        ("potential_rate", 0.0),
        ("start_rate", -1.0),
        ("dynamics_rate", float("nan")),
        ("averaging", 1.5),
        ("noise", -0.1),
    ],
)
def test_settings_out_of_their_range(name, value):
    with pytest.raises(InputError, match=f"training.{name} is "):
        build(SMALL.with_values(**{f"training__{name}": value}), 2)


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        ({"dynamics__kind": "langevin", "dynamics__metropolis": True}, "use it with hmc"),
        ({"dynamics__box": (1.0, -1.0)}, "is empty: give low < high"),
    ],
)
def test_options_that_contradict(values, expected):
    with pytest.raises(InputError, match=re.escape(expected)):
        build(SMALL.with_values(**values), 2)


def test_a_recipe_made_by_hand_is_the_one_by_name():
    by_hand = generalized_hmc(2, Options(), jax.random.key(0))
    by_name = build(SMALL.with_values(dynamics__kind="generalized-hmc"), 2).sampler.dynamics
    assert jax.tree.structure(by_hand) == jax.tree.structure(by_name)
    assert not isinstance(by_name, Chain)
