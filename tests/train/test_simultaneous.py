"""Both at once: two gradients of one draw, a guard for each, and norms that move on in between."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import optax
import paramax
import pytest
from flowjax.distributions import Normal

from fenchel.arrays import to_table
from fenchel.dynamics import CentredNormal, Chain, ClipNorm, Damped, Repeat
from fenchel.errors import InputError
from fenchel.estimators import FenchelBound, Pairs, WeightedBound, gradient_penalty
from fenchel.layers import Dense
from fenchel.parameters import fraction, learnt, positive
from fenchel.potentials import ConvNet, DiagonalGaussian, Scaled, spectral
from fenchel.samplers import BackPropagation, Detached, Embedding
from fenchel.starts import DeepLatent, DeepPicture, Flow, deconvolutional, deep_latent
from fenchel.train import Batches, MaxMin, Simultaneous, Wait, run
from fenchel.train.guard import all_finite
from fenchel.weights import SpectralNorm, renewed

KEY = jax.random.key(0)
NEVER = Wait(nats=float("inf"))
BOUND = FenchelBound(entropy=0.7, momentum=0.9)
PLAIN = {"anchor": 0.0, "wait": NEVER, "bound": BOUND, "dual": BOUND}
GRADIENTS = {"through": BackPropagation(), "detached": Detached()}


def gaussian():
    return DiagonalGaussian(jnp.array([0.3, -0.2]), jnp.array([0.1, 0.5]))


def dynamics(box=None):
    return Repeat(Damped(positive(0.3, (2,)), fraction(0.6), ClipNorm(1.0), box), 2)


def sampler(box=None):
    return Embedding(deep_latent(2, 2, width=4, depth=1, key=KEY), dynamics(box))


def data(n=8, seed=0):
    return jnp.asarray(np.random.default_rng(seed).normal(size=(n, 2)) + 0.5)


def descending(rate=1.0, **values):
    """With plain steps, so that a step is a gradient."""
    return {
        "potential_optimiser": optax.sgd(rate),
        "start_optimiser": optax.sgd(rate),
        "dynamics_optimiser": optax.sgd(rate),
        **values,
    }


def leaves(tree):
    return [np.asarray(leaf) for leaf in jax.tree.leaves(learnt(tree))]


def same_bits(one, other):
    ours, theirs = to_table(one), to_table(other)
    return ours.keys() == theirs.keys() and all(
        ours[name].tobytes() == theirs[name].tobytes() for name in ours
    )


# The two gradients.


def objective(gradient, f, sampler, batch, key):
    """As the paper writes it: E_D f - E_q [f - a kinetic - b log q]."""
    particles, _ = gradient.draw(sampler, f, batch, None, key)
    f = paramax.unwrap(f)
    kinetic, log_q = BOUND.momentum * particles.kinetic, BOUND.entropy * particles.log_q
    return jnp.mean(jax.vmap(f)(batch)) - jnp.mean(particles.f - kinetic - log_q), particles


@pytest.mark.usefixtures("x64")
@pytest.mark.parametrize("name", GRADIENTS)
def test_f_ascends_and_its_sampler_descends(name):
    """By the objective less its penalty, as far as it trusts its sampler, who knows of neither."""
    gradient, batch, key, penalty = GRADIENTS[name], data(), jax.random.key(7), 0.3
    learner = Simultaneous(
        gradient=gradient,
        gradient_penalty=penalty,
        **{**PLAIN, "wait": Wait(nats=0.5, per_dimension=0.0)},
        **descending(),
    )
    before = learner.init(gaussian(), sampler(), batch, KEY)
    after, info = eqx.filter_jit(learner.step)(before, batch[None], key)

    @eqx.filter_jit
    def by_hand():
        def of_f(f):
            value, particles = objective(gradient, f, before.sampler, batch, key)
            points = jax.lax.stop_gradient(jnp.concatenate([batch[::2], particles.x[::2]]))
            steepness = gradient_penalty(f, points)
            return value - penalty * steepness, (value, particles, steepness)

        def of_sampler(sampler):
            return objective(gradient, before.potential, sampler, batch, key)[0]

        ascent, drawn = eqx.filter_grad(of_f, has_aux=True)(before.potential)
        return ascent, eqx.filter_grad(of_sampler)(before.sampler), *drawn

    ascent, descent, value, particles, steepness = by_hand()
    for new, old, step in zip(
        *map(leaves, (after.potential, before.potential, ascent)), strict=True
    ):
        np.testing.assert_allclose(new - old, info.trust * step, atol=1e-12)
        assert np.abs(step).max() > 1e-3
    for new, old, step in zip(*map(leaves, (after.sampler, before.sampler, descent)), strict=True):
        np.testing.assert_allclose(old - new, step, atol=1e-12)
    norms = [np.sqrt(sum(np.sum(g**2) for g in leaves(side))) for side in (ascent, descent)]
    assert float(info.potential_grad_norm) == pytest.approx(norms[0], rel=1e-9)
    assert float(info.sampler_grad_norm) == pytest.approx(norms[1], rel=1e-9)
    assert min(norms) > 1e-2
    assert 0.01 < info.trust < 0.99
    # And the report is of that one draw.
    at_data, log_w = np.mean(jax.vmap(gaussian())(batch)), np.asarray(particles.log_weight)
    expected = {
        "loss": penalty * steepness - value,
        "log_likelihood": value,
        "potential_data": at_data,
        "potential_draws": np.mean(particles.f),
        "log_partition_lower": np.mean(log_w),
        "lag": abs(at_data - np.mean(particles.f)),  # its entropy coefficient is not 1
        "dropped_potential": 0,
        "dropped_sampler": 0,
    }
    for field, number in expected.items():
        assert float(getattr(info, field)) == pytest.approx(float(number), rel=1e-9), field


@pytest.mark.usefixtures("x64")
@pytest.mark.parametrize("name", GRADIENTS)
def test_with_pairs_f_has_a_criterion_of_its_own_and_the_sampler_has_not(name):
    gradient, batch, key = GRADIENTS[name], data(), jax.random.key(7)
    learner = Simultaneous(gradient=gradient, **{**PLAIN, "bound": Pairs()}, **descending())
    before = learner.init(gaussian(), sampler(), batch, KEY)
    after, info = eqx.filter_jit(learner.step)(before, batch[None], key)

    @eqx.filter_jit
    def by_hand():
        def of_f(f):
            particles, _ = gradient.draw(before.sampler, f, batch, None, key)
            odds = jnp.exp(jax.vmap(paramax.unwrap(f))(batch) - particles.f)
            return jnp.mean(jnp.log(odds / (1 + odds)))

        def of_sampler(sampler):
            return objective(gradient, before.potential, sampler, batch, key)[0]

        pairs, ascent = eqx.filter_value_and_grad(of_f)(before.potential)
        return pairs, ascent, *eqx.filter_value_and_grad(of_sampler)(before.sampler)

    pairs, ascent, value, descent = by_hand()
    for new, old, step in zip(
        *map(leaves, (after.potential, before.potential, ascent)), strict=True
    ):
        np.testing.assert_allclose(new - old, step, atol=1e-12)
        assert np.abs(step).max() > 1e-3
    for new, old, step in zip(*map(leaves, (after.sampler, before.sampler, descent)), strict=True):
        np.testing.assert_allclose(old - new, step, atol=1e-12)
    assert float(info.loss) == pytest.approx(-float(pairs), rel=1e-9)
    assert float(info.log_likelihood) == pytest.approx(float(value), rel=1e-9)


@pytest.mark.usefixtures("x64")
def test_the_lag_is_by_weights_where_there_are_any_and_by_f_elsewhere():
    embedding, learner = sampler(), Simultaneous()
    particles, _ = eqx.filter_jit(embedding.draw)(gaussian(), data(), None, KEY)
    at_data, log_w = jnp.mean(jax.vmap(gaussian())(data())), np.asarray(particles.log_weight)
    by_energy = float(abs(at_data - jnp.mean(particles.f)))
    by_weights = float(np.log(np.mean(np.exp(log_w))) - np.mean(log_w))
    assert abs(by_energy - by_weights) > 1e-2
    exact = learner.init(gaussian(), embedding, data(), KEY)
    boxed = exact._replace(sampler=sampler((-1.0, 1.0)))
    for state, lag in ((exact, by_weights), (boxed, by_energy)):
        assert float(learner.lag(state, at_data, particles)) == pytest.approx(lag, rel=1e-9)
    # What a small entropy coefficient teaches is not exp f, whose weights then tell nothing.
    cold = Simultaneous(dual=FenchelBound(entropy=1e-5))
    assert float(cold.lag(exact, at_data, particles)) == pytest.approx(by_energy, rel=1e-9)


class Counted(Embedding):
    """A sampler that counts how often it is asked."""

    asked: list = eqx.field(static=True)

    def __init__(self, sampler, asked):
        super().__init__(sampler.start, sampler.dynamics)
        self.asked = asked

    def draw(self, *args):
        self.asked.append(1)
        return super().draw(*args)


class Names(list):
    """A list that may be static."""

    __hash__ = object.__hash__


@pytest.mark.parametrize(("kind", "draws"), [(Simultaneous, 1), (MaxMin, 2)])
def test_one_draw_an_iteration(kind, draws):
    """Of Algorithm 1 there are two in the program: the sampler's loop has one, f the other."""
    learner, asked = kind(**PLAIN), Names()
    state = learner.init(gaussian(), Counted(sampler(), asked), data(), KEY)
    eqx.filter_eval_shape(learner.step, state, jnp.zeros((learner.batches, 8, 2)), KEY)
    assert len(asked) == draws
    assert learner.batches == {Simultaneous: 1, MaxMin: 3}[kind]


def test_only_the_papers_objective():
    flow = Embedding(Flow(Normal(jnp.zeros(2), jnp.ones(2)), CentredNormal(2)), Chain())
    message = r"or for pairs: use the FenchelBound for both, and no anchor"
    for values in (
        {"anchor": 1.0},
        {"bound": WeightedBound()},
        {"bound": FenchelBound(entropy=0.5)},
        {"dual": FenchelBound(momentum=0.5)},
    ):
        with pytest.raises(InputError, match=message):
            Simultaneous(**values).init(gaussian(), flow, data(), KEY)
    with pytest.raises(InputError, match=r"start with a density.*set the anchor to 0"):
        Simultaneous(anchor=1.0).check(sampler())
    Simultaneous().check(flow)
    half = FenchelBound(entropy=0.5)
    Simultaneous(bound=half, dual=half).check(sampler())


# Steps that are not finite.


@pytest.fixture(scope="module")
def step():
    """(a state after a few good iterations, a compiled iteration)."""
    learner = Simultaneous(gradient=Detached(), decay=0.9, **PLAIN)
    compiled = eqx.filter_jit(learner.step)
    state = learner.init(gaussian(), sampler(), data(), KEY)
    for index in range(2):
        state, info = compiled(state, data(seed=index)[None], jax.random.key(index))
        assert (info.dropped_potential, info.dropped_sampler) == (0, 0)
    return state, compiled


@pytest.mark.parametrize("value", [jnp.nan, jnp.inf, -jnp.inf])
def test_bad_data_change_nothing(step, value):
    before, compiled = step
    after, info = compiled(before, data().at[3, 1].set(value)[None], KEY)
    changed = {"potential_guard", "sampler_guard", "iteration"}
    for name in before._fields:
        assert same_bits(getattr(before, name), getattr(after, name)) == (name not in changed), name
    assert (info.dropped_potential, info.dropped_sampler) == (1, 1)
    assert (info.potential_streak, info.sampler_streak) == (1, 1)
    assert after.potential_guard.rate == 0.5 * before.potential_guard.rate
    assert after.sampler_guard.rate == 0.5 * before.sampler_guard.rate
    # And then it goes on.
    on, info = compiled(after, data()[None], KEY)
    assert (info.dropped_potential, info.potential_streak, info.sampler_streak) == (0, 0, 0)
    assert all_finite(tuple(on[:6]))
    for name in ("potential", "sampler", "averages"):
        assert not same_bits(getattr(after, name), getattr(on, name)), name


class SteepAtZero(eqx.Module):
    """Finite everywhere, but with an infinite gradient in its only parameter."""

    weight: jax.Array

    def __call__(self, x):
        return -(0.5 + jnp.sqrt(self.weight)) * jnp.sum(x**2)


def test_each_has_a_guard_of_its_own():
    learner = Simultaneous(gradient=Detached(), **PLAIN)
    before = learner.init(SteepAtZero(jnp.zeros(())), sampler(), data(), KEY)
    after, info = eqx.filter_jit(learner.step)(before, data()[None], KEY)
    assert (info.dropped_potential, info.dropped_sampler) == (1, 0)
    assert (after.potential_guard.rate, after.sampler_guard.rate) == (0.5, 1)
    assert same_bits((before.potential, before.averages), (after.potential, after.averages))
    assert not same_bits(before.sampler, after.sampler)
    assert all_finite(tuple(after[:6]))


# Spectral norms in both nets.


class SmallNet(eqx.Module):
    """f with a norm."""

    layer: Dense

    def __call__(self, x):
        return 3 * jnp.sum(jnp.sin(self.layer(x))) - 0.5 * jnp.sum(x**2)


def normed_parts():
    decoder = Dense(2, 2, spectral(), key=jax.random.key(1))
    start = DeepLatent(decoder, CentredNormal(2, 10.0), CentredNormal(2))
    return SmallNet(Dense(2, 5, spectral(), key=KEY)), Embedding(start, dynamics())


def norms(tree):
    is_norm = lambda node: isinstance(node, SpectralNorm)  # noqa: E731
    return [node for node in jax.tree.leaves(tree, is_leaf=is_norm) if is_norm(node)]


@pytest.fixture(scope="module", params=[Simultaneous, MaxMin])
def iteration(request):
    """The states before and after one iteration."""
    learner = request.param(gradient=Detached(), **PLAIN, **descending(0.1))
    before = learner.init(*normed_parts(), data(), KEY)
    batches = jnp.broadcast_to(data(), (learner.batches, 8, 2))
    after, info = eqx.filter_jit(learner.step)(before, batches, KEY)
    assert (info.dropped_potential, info.dropped_sampler) == (0, 0)
    return before, after


def test_a_norm_moves_on_once_an_iteration(iteration):
    """By one power iteration of the weight as it is by now, whoever learnt and how often."""
    before, after = iteration
    for side in ("potential", "sampler"):
        (old,), (new,) = (norms(getattr(state, side)) for state in (before, after))
        assert not np.array_equal(old.weight, new.weight)
        matrix = np.asarray(new.weight, np.float64)
        right = matrix.T @ np.asarray(paramax.unwrap(old.left))
        right /= np.linalg.norm(right)
        left = matrix @ right / np.linalg.norm(matrix @ right)
        np.testing.assert_allclose(paramax.unwrap(new.left), left, atol=1e-6)
        np.testing.assert_allclose(paramax.unwrap(new.right), right, atol=1e-6)
        # Negative control: one iteration more, or none, would be seen.
        for other in (renewed(new), old):
            assert np.abs(paramax.unwrap(other.left) - left).max() > 1e-4


def test_f_is_one_function_as_long_as_a_trajectory_lasts():
    """The wrappers are gone before the first step: so is it with a net that never had any."""
    f, embedding = normed_parts()
    f = eqx.tree_at(lambda f: f.layer.weight.numbers.weight, f, jnp.arange(10.0).reshape(2, 5) / 9)

    @eqx.filter_jit
    def drawn(f):
        return embedding.draw(f, data(), None, KEY)[0]

    wrapped, plain, moved_on = drawn(f), drawn(paramax.unwrap(f)), drawn(renewed(f))
    np.testing.assert_allclose(wrapped.x, plain.x, atol=1e-6)
    np.testing.assert_allclose(wrapped.f, jax.vmap(paramax.unwrap(f))(plain.x), atol=1e-5)
    assert np.abs(wrapped.x - moved_on.x).max() > 1e-3  # negative control


def test_what_is_handed_out_has_norms_that_fit_its_averages(iteration):
    """Averages lag behind the weights that the vectors followed."""
    _, after = iteration
    rng = np.random.default_rng(0)
    elsewhere = jax.tree.map(
        lambda leaf: jnp.asarray(leaf + rng.normal(size=leaf.shape), leaf.dtype),
        learnt((after.potential, after.sampler)),
    )
    state = after._replace(averages=elsewhere)

    def largest(tree):
        return np.array([np.linalg.norm(paramax.unwrap(norm), 2) for norm in norms(tree)])

    f, embedding = state.handed_out(KEY)
    np.testing.assert_allclose(largest((f, embedding)), 1, atol=1e-3)
    assert np.all(np.abs(largest(state.averaged()) - 1) > 0.01)  # negative control
    assert same_bits(learnt((f, embedding)), elsewhere)


# Pictures.

SHAPE = (8, 8, 1)


def picture_parts():
    """In half the precision, with everything that the paper's pictures have."""
    wrap = spectral(jnp.bfloat16)
    f = Scaled(ConvNet(SHAPE, 2, wrap=wrap, key=KEY), jnp.asarray(10.0))
    generator = deconvolutional(SHAPE, 3, 2, key=jax.random.key(1))
    step = Damped(positive(0.05), fraction(0.5), ClipNorm(1.0), (-1.0, 1.0))
    return f, Embedding(DeepPicture(generator, CentredNormal(64), 3, 0.1), step)


class CountingBatches(eqx.Module):
    """Batches that count how often the loop's body is traced."""

    data: jax.Array
    traces: list = eqx.field(static=True)

    def draw(self, count, key):
        self.traces.append(1)
        return Batches(self.data, 4).draw(count, key)


def test_blocks_of_pictures_are_compiled_once_and_keep_their_types():
    rows = jnp.asarray(np.random.default_rng(0).uniform(-1, 1, (8, 64)), jnp.float32)
    learner, batches = (
        Simultaneous(gradient=Detached(), **PLAIN),
        CountingBatches(rows, Names()),
    )
    # As one program: the nets' many small ones would take longer than their training.
    first = eqx.filter_jit(lambda: learner.init(*picture_parts(), batches.data, KEY))()
    blocks = list(run(learner, first, batches, 4, 2))
    assert len(batches.traces) == 1
    assert [block.iteration for block in blocks] == [2, 4]
    before, after = to_table(first), to_table(blocks[-1].state)
    assert before.keys() == after.keys()
    for name in before:
        assert (before[name].dtype, before[name].shape) == (after[name].dtype, after[name].shape)
    assert all_finite(tuple(blocks[-1].state[:6]))
    moved = [not np.array_equal(before[name], after[name]) for name in before if ".left" in name]
    assert sum(moved) >= len(moved) - 1  # a weight to one number has but one direction
