"""The paper's released settings, part by part."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import optax
import paramax
import pytest

from fenchel.bench import jobs
from fenchel.bench.clipped_adam import clipped_adam
from fenchel.bench.planar import Planar
from fenchel.bench.presets import PRESETS
from fenchel.dynamics import step_sizes
from fenchel.parameters import learnt


@pytest.fixture(scope="module")
def prepared():
    small = PRESETS["ade-paper"].config.with_values(start__layers=3, potential__width=40)
    return jobs.prepare(PRESETS["ade-paper"]._replace(config=small), jobs.Job("Uniform", 1), 500)


@pytest.fixture(scope="module")
def parts(prepared):
    return prepared.preset.parts(prepared.config, prepared.points)


def test_samples_stay_in_the_datas_range(prepared, parts):
    particles, _ = draw(parts, prepared.points)
    low, high = prepared.points.min(), prepared.points.max()
    assert particles.x.min() >= low
    assert particles.x.max() <= high
    # Negative control: the flow begins wide enough to leave it.
    flow = paramax.unwrap(parts.sampler.start)
    start = jax.vmap(lambda key: flow.draw(None, None, key)[0])
    first = start(jax.random.split(jax.random.key(3), 500))
    assert (jnp.abs(first) > high).any()


@eqx.filter_jit
def draw(parts, points):
    return parts.sampler.draw(parts.potential, points, None, jax.random.key(0))


def test_every_leapfrog_is_a_proposal(prepared, parts):
    particles, _ = draw(parts, prepared.points)
    np.testing.assert_array_equal(particles.proposed, 5)
    assert 0 < particles.accepted.sum() <= 5 * len(prepared.points)


def test_step_sizes_are_learnt_as_they_are_and_momenta_are_not(parts):
    np.testing.assert_allclose(step_sizes(parts.sampler), 0.01, rtol=1e-6)
    leaves = jax.tree.leaves(learnt(parts.sampler))
    # For three planar layers w, u and b, and for five steps two sizes.
    assert sorted(leaf.size for leaf in leaves) == [1, 1, 1, 2, 2, 2, 2, 2, 2, 10]


def test_weights_begin_within_glorots_limits_and_fill_them(parts):
    for layer in parts.potential.net.layers:
        outputs, inputs = layer.weight.shape
        for numbers, ends in ((layer.weight, inputs + outputs), (layer.bias, 1 + outputs)):
            limit = (6 / ends) ** 0.5
            assert np.abs(numbers).max() <= limit
            if numbers.size >= 40:  # the largest of 40 is below half the limit once in 1e12 times
                assert np.abs(numbers).max() > limit / 2


def test_the_flow_begins_within_glorots_limits(parts):
    layers = parts.sampler.start.distribution.bijection.bijections
    assert len(layers) == 3
    for layer in layers:
        assert np.abs(np.concatenate([layer.w, layer.u])).max() <= 1.5**0.5
        assert np.abs(layer.b) <= 3**0.5


@pytest.mark.usefixtures("x64")
@pytest.mark.parametrize("along", [-3.0, 0.0, 4.0])
def test_a_planar_layer_is_the_papers(along):
    """Its stretch along w, and its log-determinant by autodiff."""
    layer = Planar(jnp.array([1.0, 2.0]), jnp.array([along, 0.0]), jnp.array(0.3))
    assert layer.w @ layer.direction == pytest.approx(np.log1p(np.exp(along)) - 1)
    x = jnp.array([0.4, -0.7])
    y, log_det = layer.transform_and_log_det(x)
    jacobian = jax.jacobian(lambda x: layer.transform_and_log_det(x)[0])(x)
    assert log_det == pytest.approx(np.linalg.slogdet(jacobian)[1], abs=1e-12)
    np.testing.assert_allclose(y - x, layer.direction * np.tanh(layer.w @ x + 0.3))


def test_nothing_is_averaged(parts):
    assert parts.learner.decay == 0.0
    assert parts.learner.dual.momentum == 0.0


def test_the_normalising_flow_has_no_dynamics(prepared):
    nf = PRESETS["nf"]
    sampler = paramax.unwrap(nf.parts(nf.config, prepared.points).sampler)
    assert sampler.exact
    assert sampler.dynamics.in_order() == []


def test_adam_is_its_usual_self_while_gradients_are_like_those_before():
    gradients = [0.09, -0.05, 0.08]
    plain, clipped = (run(rule(0.1), gradients) for rule in (optax.adam, clipped_adam))
    np.testing.assert_allclose(clipped, plain, rtol=1e-5)


def test_a_gradient_is_cut_at_three_deviations_and_a_tenth():
    """Five squares of six are known when the sixth gradient comes."""
    usual = [0.09] * 5
    square = 0.09**2 * (1 - 0.999**5) / (1 - 0.999**6)
    found = run(clipped_adam(0.1), [*usual, 1_000.0])
    as_cut = run(optax.adam(0.1), [*usual, 3 * square**0.5 + 0.1])
    np.testing.assert_allclose(found, as_cut, rtol=1e-5)
    assert abs(found - run(optax.adam(0.1), [*usual, 1_000.0])) > 1e-3


def run(optimiser, gradients):
    params = jnp.zeros(())
    state = optimiser.init(params)
    for gradient in gradients:
        updates, state = optimiser.update(jnp.asarray(gradient), state, params)
        params = optax.apply_updates(params, updates)
    return params
