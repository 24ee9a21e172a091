"""The damped step: its density against autodiff, its path against the paper's recursion."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import paramax
import pytest

from fenchel.dynamics import (
    RECIPES,
    ClipNorm,
    ClipValue,
    Damped,
    Options,
    Repeat,
    momentum_dimension,
    particle_at,
    scaled,
    step_sizes,
)
from fenchel.dynamics.clip import cut, no_clip
from fenchel.errors import InputError
from fenchel.parameters import learnt, split

pytestmark = pytest.mark.usefixtures("x64")

DIM, STEPS, DAMPING = 3, 4, 0.7
KEY = jax.random.key(0)
damped = RECIPES["damped"]
SIZE = jnp.array([0.1, 0.2, 0.3])
CLIPS = {"unclipped": no_clip, "norm": ClipNorm(0.6), "value": ClipValue(0.3)}


def potential(x):
    return -0.1 * jnp.sum(x**4) - 0.5 * jnp.sum((x - 0.3) ** 2) + 0.4 * jnp.sin(2 * x[0]) * x[1]


def phase():
    return jnp.array([0.9, -0.7, 0.2]), jnp.array([0.4, 1.1, -0.6])


def integrate(dynamics, x, v):
    return dynamics(potential, particle_at(potential, x, v, 0.5), KEY)


@pytest.mark.parametrize("clip", CLIPS.values(), ids=CLIPS)
def test_the_carried_density_is_that_of_the_jacobian(clip):
    dynamics = Repeat(Damped(SIZE, jnp.asarray(DAMPING), clip), STEPS)
    assert dynamics.exact

    @jax.jit
    @jax.jacfwd
    def jacobian(z):
        particle = integrate(dynamics, z[:DIM], z[DIM:])
        return jnp.concatenate([particle.x, particle.v])

    sign, log_det = np.linalg.slogdet(jacobian(jnp.concatenate(phase())))
    particle = integrate(dynamics, *phase())
    assert sign == 1
    assert particle.log_q == pytest.approx(0.5 - log_det, abs=1e-10)
    assert log_det == pytest.approx(STEPS * DIM * np.log(DAMPING), abs=1e-10)  # not zero


def test_a_cut_changes_nothing_within_and_has_no_slope_without():
    x = jnp.array([-2.0, -1.0, 0.3, 1.0, 1.5, jnp.nan])
    np.testing.assert_array_equal(cut(x, -1.0, 1.0), jnp.clip(x, -1.0, 1.0))
    slopes = jax.vmap(jax.grad(lambda x: cut(x, -1.0, 1.0)))(x)
    np.testing.assert_array_equal(slopes[:-1], [0.0, 1.0, 1.0, 1.0, 0.0])


def by_hand(x, v, clip, low=-np.inf, high=np.inf, damping=DAMPING):
    """The paper's: v <- γ v + ε clip(∇f), x <- clip(x + v)."""
    x, v = map(np.asarray, (x, v))
    for _ in range(STEPS):
        v = damping * v + np.asarray(SIZE) * np.asarray(clip(jax.grad(potential)(jnp.asarray(x))))
        x = np.clip(x + v, low, high)
    return x, v


@pytest.mark.parametrize("clip", CLIPS.values(), ids=CLIPS)
@pytest.mark.parametrize("box", [None, (-0.8, 1.0)], ids=["free", "boxed"])
def test_the_papers_recursion(clip, box):
    particle = integrate(Repeat(Damped(SIZE, jnp.asarray(DAMPING), clip, box), STEPS), *phase())
    x, v = by_hand(*phase(), clip, *(box or ()))
    np.testing.assert_allclose(particle.x, x, atol=1e-12)
    np.testing.assert_allclose(particle.v, v, atol=1e-12)
    # The cache is that of the present point.
    np.testing.assert_allclose(particle.f, potential(jnp.asarray(x)), atol=1e-12)
    np.testing.assert_allclose(particle.score, jax.grad(potential)(jnp.asarray(x)), atol=1e-12)
    # Negative controls: the clip and the damping are felt.
    assert (clip is no_clip) == np.allclose(x, by_hand(*phase(), no_clip, *(box or ()))[0])
    assert not np.allclose(v, by_hand(*phase(), clip, *(box or ()), damping=0.5)[1])


def test_a_box_holds_the_points_and_breaks_the_density():
    boxed, free = (
        Repeat(Damped(SIZE, jnp.asarray(DAMPING), no_clip, box), STEPS) for box in ((-1, 1), None)
    )
    assert free.exact
    assert not boxed.exact
    rng = np.random.default_rng(0)
    x, v = rng.uniform(-1, 1, (50, DIM)), 2 * rng.normal(size=(50, DIM))
    inside, outside = (
        np.asarray(jax.jit(jax.vmap(lambda x, v, d=dynamics: integrate(d, x, v).x))(x, v))
        for dynamics in (boxed, free)
    )
    assert np.abs(inside).max() == 1
    assert np.abs(outside).max() > 1.5
    with pytest.raises(InputError, match=r"The box \[1, -1\] is empty"):
        Damped(SIZE, jnp.asarray(DAMPING), box=(1, -1))


def test_without_a_force_only_the_momentum_fades():
    """A closed form: x moves by v (γ + γ² + ...)."""
    x, v = phase()
    dynamics = Repeat(Damped(SIZE, jnp.asarray(0.5)), STEPS)
    particle = dynamics(
        lambda x: 0 * jnp.sum(x), particle_at(lambda x: 0 * jnp.sum(x), x, v, 0), KEY
    )
    np.testing.assert_allclose(particle.v, v / 16, atol=1e-14)
    np.testing.assert_allclose(particle.x, x + v * 15 / 16, atol=1e-14)


class TestRecipe:
    def test_it_is_so_many_steps_with_one_momentum(self):
        options = Options(steps=STEPS, damping=DAMPING, clip_value=0.3, step_size=0.2)
        dynamics = damped(DIM, options, KEY)
        assert momentum_dimension("damped", DIM, options) == DIM
        expected = Repeat(Damped(jnp.full(DIM, 0.2), jnp.asarray(DAMPING), ClipValue(0.3)), STEPS)
        ours, theirs = (integrate(d, *phase()) for d in (paramax.unwrap(dynamics), expected))
        for a, b in zip(jax.tree.leaves(ours), jax.tree.leaves(theirs), strict=True):
            np.testing.assert_allclose(a, b, atol=1e-12)
        assert not damped(DIM, Options(box=(-1.0, 1.0)), KEY).exact

    @pytest.mark.parametrize(("per_dimension", "shape"), [(True, (DIM,)), (False, ())])
    @pytest.mark.parametrize("learns", [True, False])
    def test_what_is_learnt(self, learns, per_dimension, shape):
        options = Options(learns_damping=learns, per_dimension=per_dimension, per_step=False)
        leaves = jax.tree.leaves(learnt(damped(DIM, options, KEY)))
        assert [leaf.shape for leaf in leaves] == [shape, *[()] * learns]

    def test_a_learnt_damping_stays_a_fraction(self):
        options = Options(learns_damping=True, damping=0.3, step_size=0.2, per_step=False)
        dynamics = damped(DIM, options, KEY)
        assert paramax.unwrap(dynamics).layer.damping == pytest.approx(0.3)
        numbers, rest = split(dynamics)
        for update in (-30.0, 30.0):
            far = jax.tree.map(lambda leaf, u=update: leaf + u, numbers)
            layer = paramax.unwrap(eqx.combine(far, rest)).layer
            assert 0 < layer.damping < 1
            assert (layer.damping < 0.3) == (update < 0)
            assert np.all(np.asarray(layer.step_size) > 0)

    def test_its_gradient_reaches_both(self):
        """Against central differences of the log weight's parts."""
        numbers, rest = split(damped(DIM, Options(steps=2, learns_damping=True), KEY))

        @jax.jit
        def loss(numbers):
            particle = integrate(paramax.unwrap(eqx.combine(numbers, rest)), *phase())
            return particle.f - particle.log_q - 0.5 * jnp.sum(particle.v**2)

        gradient = jax.jit(jax.grad(loss))(numbers)
        for index, leaf in enumerate(jax.tree.leaves(numbers)):
            ends = []
            for shift in (1e-5, -1e-5):
                leaves, tree = jax.tree.flatten(numbers)
                leaves[index] = leaf + shift
                ends.append(loss(jax.tree.unflatten(tree, leaves)))
            difference = (ends[0] - ends[1]) / 2e-5
            total = np.sum(jax.tree.leaves(gradient)[index])
            assert float(total) == pytest.approx(float(difference), abs=1e-8)
            assert abs(total) > 1e-2

    def test_step_sizes_are_seen_and_scaled(self):
        options = Options(step_size=0.2, damping=DAMPING, per_step=False)
        dynamics = damped(DIM, options, KEY)
        np.testing.assert_allclose(step_sizes(dynamics), [0.2] * DIM)
        half = scaled(dynamics, 0.5)
        np.testing.assert_allclose(step_sizes(half), [0.1] * DIM)
        assert paramax.unwrap(half).layer.damping == pytest.approx(DAMPING)

    @pytest.mark.parametrize(
        ("values", "expected"),
        [
            ({"damping": 0.0}, r"dynamics.damping is 0.0: give a fraction of the momentum"),
            ({"damping": 1.0}, r"dynamics.damping is 1.0: give a fraction"),
            ({"damping": float("nan")}, r"dynamics.damping is nan"),
            ({"metropolis": True}, r"keep volume, and damped is not"),
            ({"steps": 2, "precision": (1.0, 2.0)}, r"share λ too: give one precision"),
            ({"box": (1.0, -1.0)}, r"The box \[1.0, -1.0\] is empty"),
        ],
    )
    def test_what_it_refuses(self, values, expected):
        with pytest.raises(InputError, match=expected):
            damped(DIM, Options(**values), KEY)
