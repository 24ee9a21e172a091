"""Scores that are pushes of their own: against autodiff of the same chain written out by hand."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import paramax
import pytest
from jax import lax

from fenchel.dynamics import (
    CentredNormal,
    ClipNorm,
    Damped,
    Options,
    Repeat,
    damped,
    kinetic_energy,
)
from fenchel.dynamics.stack import UNROLL
from fenchel.parameters import fraction, learnt, positive, split
from fenchel.samplers import BackPropagation, Detached, Embedding, Truncated
from fenchel.samplers.gradients import Straight
from fenchel.starts import Empirical

pytestmark = pytest.mark.usefixtures("x64")

POINTS = np.array([[-1.0, 0.5], [0.2, 1.0], [0.4, -0.8]])
KEY = jax.random.key(4)
STEPS = 2
CLIP = ClipNorm(1.0)  # some of the scores are longer, and some are not


class Bent(eqx.Module):
    """With a curvature that depends on x, and one number that is learnt as a logarithm."""

    weight: jax.Array
    stiffness: jax.Array

    def __call__(self, x):
        bend = jnp.sin(self.weight @ x)
        return -0.5 * self.stiffness * jnp.sum(x**2) - 0.1 * jnp.sum(x**4) + jnp.sum(bend)


def potential():
    weight = jnp.asarray(np.random.default_rng(0).normal(size=(3, 2)))
    return Bent(weight, positive(0.8))


def sampler():
    step = Damped(positive(0.3, (2,)), fraction(0.6), CLIP)
    return Embedding(Empirical(CentredNormal(2)), Repeat(step, STEPS), precision=2.0)


def mean_weight(gradient, f, sampler):
    particles, _ = gradient.draw(sampler, f, jnp.asarray(POINTS), None, KEY)
    return jnp.mean(particles.log_weight)


def by_hand(f, sampler, still):
    """The same number: two steps and their density, with `still` around every score."""
    f, sampler = paramax.unwrap((f, sampler))
    step = sampler.dynamics.layer

    def one(point, key):
        x, v, log_q = sampler.start.draw(point, None, key)
        for _ in range(STEPS):
            v = step.damping * v + step.step_size * CLIP(still(jax.grad(f)(x)))
            x = x + v
            log_q = log_q - 2 * jnp.log(step.damping)
        return f(x) - kinetic_energy(v, 2.0) - log_q

    start_keys, _ = jax.random.split(KEY, (2, len(POINTS)))
    return jnp.mean(jax.vmap(one)(jnp.asarray(POINTS), start_keys))


def gradients(loss):
    """Its value, and its gradient in the sampler's own numbers as one list."""
    numbers, rest = split(sampler())

    @jax.jit
    @jax.value_and_grad
    def of(numbers):
        return loss(potential(), eqx.combine(numbers, rest))

    value, gradient = of(numbers)
    return value, np.concatenate([np.ravel(leaf) for leaf in jax.tree.leaves(gradient)])


def test_straight_is_f_without_its_curvature():
    f = paramax.unwrap(potential())

    def derivatives(f):
        @jax.jit
        @jax.vmap
        def of(x):
            return f(x), jax.grad(f)(x), jax.hessian(f)(x)

        return of(jnp.asarray(POINTS))

    (value, score, curvature), (same, tangent, none) = map(derivatives, (f, Straight(f)))
    np.testing.assert_allclose(same, value, rtol=1e-13)
    np.testing.assert_allclose(tangent, score, rtol=1e-13)
    assert np.all(np.asarray(none) == 0)
    assert np.abs(curvature).max() > 0.1  # negative control


def test_all_three_draw_the_same_particles():
    @eqx.filter_jit
    def drawn(gradients):
        points = jnp.asarray(POINTS)
        return [each.draw(sampler(), potential(), points, None, KEY)[0] for each in gradients]

    drawn = drawn([BackPropagation(), Truncated(), Detached()])
    for leaves in zip(*map(jax.tree.leaves, drawn), strict=True):
        np.testing.assert_allclose(leaves[1], leaves[0], rtol=1e-13)
        np.testing.assert_allclose(leaves[2], leaves[0], rtol=1e-13)


def test_the_samplers_gradient_is_that_of_scores_that_stand_still():
    value, ours = gradients(lambda f, sampler: mean_weight(Detached(), f, sampler))
    same, true = gradients(lambda f, sampler: by_hand(f, sampler, lax.stop_gradient))
    _, through = gradients(lambda f, sampler: by_hand(f, sampler, lambda score: score))
    assert len(ours) == 2 + 2 + 1  # the momentum's scale, the step sizes, the damping
    np.testing.assert_allclose(value, same, rtol=1e-12)
    np.testing.assert_allclose(ours, true, atol=1e-12)
    assert np.abs(ours - through).max() > 1e-2  # negative control


def test_truncated_and_back_propagation_go_through_the_scores():
    _, true = gradients(lambda f, sampler: by_hand(f, sampler, lambda score: score))
    for gradient in (BackPropagation(), Truncated()):
        _, ours = gradients(lambda f, sampler, g=gradient: mean_weight(g, f, sampler))
        np.testing.assert_allclose(ours, true, atol=1e-12)


def test_for_f_detached_is_truncated():
    def gradient(estimator):
        loss = eqx.filter_jit(eqx.filter_grad(lambda f: mean_weight(estimator, f, sampler())))
        return jax.tree.leaves(learnt(loss(potential())))

    @eqx.filter_jit
    @eqx.filter_grad
    def at_fixed_points(f):
        particles, _ = sampler().draw(potential(), jnp.asarray(POINTS), None, KEY)
        return jnp.mean(jax.vmap(paramax.unwrap(f))(particles.x))

    at_points = at_fixed_points(potential())
    found = [gradient(estimator) for estimator in (Detached(), Truncated(), BackPropagation())]
    for detached, truncated, through, true in zip(
        *found, jax.tree.leaves(learnt(at_points)), strict=True
    ):
        np.testing.assert_allclose(detached, true, atol=1e-12)
        np.testing.assert_allclose(truncated, true, atol=1e-12)
        assert np.abs(through - true).max() > 1e-2  # negative control


@jax.custom_vjp
def differentiable_once(x):
    return -0.5 * jnp.sum(x**2)


def _score(x, cotangent):
    like = jax.ShapeDtypeStruct(x.shape, x.dtype)
    push = lambda x, c: np.asarray(-x * c[..., None])  # noqa: E731
    return (jax.pure_callback(push, like, x, cotangent, vmap_method="expand_dims"),)


differentiable_once.defvjp(lambda x: (differentiable_once(x), x), _score)


def test_nothing_is_differentiated_twice():
    """With an f whose score has no derivative: only the detached sampler learns from it."""

    def gradient(estimator):
        numbers, rest = split(sampler())
        loss = lambda numbers: mean_weight(  # noqa: E731
            estimator, differentiable_once, eqx.combine(numbers, rest)
        )
        return jax.tree.leaves(jax.jit(jax.grad(loss))(numbers))

    assert all(np.all(np.isfinite(leaf)) for leaf in gradient(Detached()))
    with pytest.raises(ValueError, match="callbacks do not support JVP"):
        gradient(Truncated())


@pytest.mark.parametrize("per_step", [False, True])
def test_no_score_is_computed_in_vain(per_step):
    """T damped steps ask for T scores: nobody needs the one where the last of them ends."""
    seen = []

    def noted(x):
        seen.append(x)
        return -x

    @jax.custom_jvp
    def f(x):
        return -0.5 * x @ x

    @f.defjvp
    def _(primals, tangents):
        (x,), (t,) = primals, tangents
        score = jax.pure_callback(noted, x, x, vmap_method="expand_dims")
        return f(x), score @ t

    @eqx.filter_jit
    def at_the_end(sampler):
        particles, _ = Detached().moved(sampler, f, jnp.asarray(POINTS), None, KEY)
        return particles.x, particles.v

    steps = 2 * UNROLL + 1  # the first of them, or the last, in no loop
    options = Options(steps=steps, per_step=per_step, step_size=0.1)
    embedding = Embedding(Empirical(CentredNormal(2)), damped(2, options, KEY))
    x, v = jax.block_until_ready(at_the_end(embedding))
    assert len(seen) == steps
    assert np.abs(np.asarray(x) - seen[-1].reshape(x.shape) - v).max() < 1e-12
