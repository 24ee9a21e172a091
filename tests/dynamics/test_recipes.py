"""Options, step sizes, and stacks with and without rematerialisation."""

import diffrax
import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import paramax
import pytest

from fenchel.build import build_dynamics
from fenchel.dynamics import (
    RECIPES,
    ChebyshevLogDet,
    Damped,
    ExactLogDet,
    FirstOrderLogDet,
    Given,
    LanczosLogDet,
    Langevin,
    Leapfrog,
    Options,
    Rademacher,
    Refresh,
    TaylorLogDet,
    momentum_dimension,
    particle_at,
)
from fenchel.errors import InputError
from fenchel.parameters import learnt, split

pytestmark = pytest.mark.usefixtures("x64")

KEY = jax.random.key(0)
MOVING = [name for name in RECIPES if name != "none"]
IN_PHASE_SPACE = [name for name in MOVING if momentum_dimension(name, 2, Options())]


def quartic(x):
    return -0.25 * jnp.sum(x**4)


WRONG = {
    "steps": ({"steps": 0}, "dynamics.steps is 0: it must be positive"),
    "leapfrogs": ({"leapfrogs": -1}, "dynamics.leapfrogs is -1: it must be positive"),
    "latent": ({"latent": 0}, "dynamics.latent is 0: it must be positive"),
    "step_size": ({"step_size": 0.0}, "dynamics.step_size is 0.0: it must be positive"),
    "nan": ({"step_size": float("nan")}, "dynamics.step_size is nan: it must be positive"),
    "clip_norm": ({"clip_norm": 0.0}, "dynamics.clip_norm is 0.0: give a positive bound"),
    "clip_value": ({"clip_value": -1.0}, "dynamics.clip_value is -1.0: give a positive bound"),
    "precision": ({"precision": -1.0}, "dynamics.precision is -1.0: give one positive number"),
    "one of many": ({"precision": (1.0, 0.0, 1.0)}, "one for each of the 3 steps"),
    "too few": ({"precision": (1.0, 2.0)}, "one for each of the 3 steps"),
    "none": ({"precision": ()}, "one for each of the 3 steps"),
}


@pytest.mark.parametrize("name", WRONG)
def test_options_that_make_no_sense(name):
    values, message = WRONG[name]
    with pytest.raises(InputError, match=message):
        Options(**values)


def test_precisions():
    assert Options(steps=2, precision=3.0).precisions == (3.0, 3.0)
    assert Options(steps=2, precision=(1.0, 4.0)).precisions == (1.0, 4.0)


@pytest.mark.parametrize("name", IN_PHASE_SPACE)
def test_shared_steps_share_their_precision(name):
    with pytest.raises(InputError, match="share λ too"):
        RECIPES[name](2, Options(steps=2, per_step=False, precision=(1.0, 2.0)), KEY)


@pytest.mark.parametrize("name", MOVING)
def test_an_empty_box_is_refused(name):
    with pytest.raises(InputError, match=r"The box \[1.0, -1.0\] is empty"):
        RECIPES[name](2, Options(box=(1.0, -1.0)), KEY)


def test_a_recipe_that_does_not_exist():
    with pytest.raises(InputError, match=r"no dynamics called 'hcm' \(did you mean hmc\?\)"):
        build_dynamics("langevin+hcm", Options(), 2, KEY)


def step_sizes(dynamics):
    """Of every step within, unwrapped."""
    is_step = lambda node: isinstance(node, Damped | Leapfrog | Langevin)  # noqa: E731
    nodes = jax.tree.leaves(paramax.unwrap(dynamics), is_leaf=is_step)
    return [node.step_size for node in nodes if is_step(node)]


# per_dimension, per_step, latent: the shape of the step sizes of 4 steps in 2 dimensions
SHAPES = [
    (True, True, None, (4, 2)),
    (True, False, None, (2,)),
    (False, True, None, (4,)),
    (False, False, None, ()),
]
LATENT_SHAPES = [(True, True, 1, (4,)), (True, False, 3, ())]
SIZES = [
    (name, *shape)
    for name in IN_PHASE_SPACE
    for shape in SHAPES + (LATENT_SHAPES if name.startswith("generalized") else [])
]


@pytest.mark.parametrize(("name", "per_dimension", "per_step", "latent", "shape"), SIZES)
def test_step_sizes_have_their_shape_and_stay_positive(
    name, per_dimension, per_step, latent, shape
):
    options = Options(4, 2, latent, 0.3, per_dimension, per_step)
    dynamics = RECIPES[name](2, options, KEY)
    (size,) = step_sizes(dynamics)
    assert size.shape == shape
    np.testing.assert_allclose(size, 0.3, rtol=1e-6)
    for update in (-40.0, 40.0):
        numbers, rest = split(dynamics)
        moved = eqx.combine(jax.tree.map(lambda leaf, u=update: leaf + u, numbers), rest)
        (size,) = step_sizes(moved)
        assert jnp.all(size > 0)
        assert jnp.all(jnp.isfinite(size))
        assert jnp.all((size < 0.3) == (update < 0))  # and they are what the update moved


def test_what_is_learnt_of_plain_hmc():
    """Step sizes and the scales of the momenta that are drawn; the precisions are given."""
    dynamics = RECIPES["hmc"](3, Options(steps=4), KEY)
    assert sorted(leaf.shape for leaf in jax.tree.leaves(learnt(dynamics))) == [(3, 3), (4, 3)]


def test_refreshes_know_both_precisions():
    dynamics = paramax.unwrap(RECIPES["hmc"](2, Options(steps=3, precision=(1.0, 4.0, 9.0)), KEY))
    np.testing.assert_allclose(dynamics.between.precision, [1.0, 4.0])
    np.testing.assert_allclose(dynamics.between.momentum.scale[:, 0], [0.5, 1 / 3], rtol=1e-6)
    joint = build_dynamics("hmc+langevin", Options(steps=2, precision=(1.0, 4.0)), 2, KEY)
    refresh = paramax.unwrap(joint.layers[1])
    assert isinstance(refresh, Refresh)
    assert refresh.precision == 4.0
    np.testing.assert_allclose(refresh.momentum.scale, 1.0)


def value_and_gradient(name, remat, per_step, leapfrogs):
    options = Options(2, leapfrogs, per_step=per_step, remat=remat, step_size=0.3, clip_norm=1.0)
    dynamics = RECIPES[name](2, options, KEY)
    particle = particle_at(quartic, jnp.array([0.5, -1.0]), jnp.array([0.3, 1.0]), 0.1)

    @eqx.filter_jit
    @eqx.filter_value_and_grad(has_aux=True)
    def loss(numbers, rest):
        dynamics = paramax.unwrap(eqx.combine(numbers, rest))
        moved = dynamics(quartic, particle, jax.random.key(2))
        return moved.f - moved.kinetic - moved.log_q, moved

    return loss(*split(dynamics))


@pytest.mark.parametrize(
    ("name", "per_step", "leapfrogs"),
    [("hmc", True, 2), ("generalized-langevin", False, 1)],
    ids=["PerStep of Repeat", "Repeat"],
)
def test_remat_changes_nothing(name, per_step, leapfrogs):
    plain = value_and_gradient(name, False, per_step, leapfrogs)
    again = value_and_gradient(name, True, per_step, leapfrogs)
    for a, b in zip(jax.tree.leaves(plain), jax.tree.leaves(again), strict=True):
        np.testing.assert_allclose(a, b, atol=1e-10)
    largest = max(np.max(np.abs(np.asarray(leaf))) for leaf in jax.tree.leaves(plain[1]))
    assert largest > 1e-3  # there is a gradient to compare


@pytest.mark.parametrize(("per_dimension", "per_step", "latent", "shape"), SHAPES)
def test_gradient_steps_are_as_long_as_langevins(per_dimension, per_step, latent, shape):
    options = Options(4, 2, latent, 0.3, per_dimension, per_step)
    steps = paramax.unwrap(RECIPES["deterministic"](2, options, KEY))
    size = (steps.layers if per_step else steps.layer).step_size
    assert size.shape == shape
    np.testing.assert_allclose(size, 0.3**2 / 2, rtol=1e-6)


@pytest.mark.parametrize("name", ["continuous", "generalized-continuous"])
def test_a_flow_is_as_long_as_its_steps_together(name):
    flow = paramax.unwrap(RECIPES[name](2, Options(steps=4, step_size=0.3), KEY))
    assert flow.time == pytest.approx(4 * 0.3**2 / 2)


OBJECTS = {
    "exact": ExactLogDet,
    "first-order": FirstOrderLogDet,
    "taylor": TaylorLogDet,
    "chebyshev": ChebyshevLogDet,
    "lanczos": LanczosLogDet,
}


@pytest.mark.parametrize("kind", list(OBJECTS))
def test_log_determinants_by_name(kind):
    options = Options(log_det=kind, order=5, probes=3, delta=2.0)
    log_det = RECIPES["deterministic"](2, options, KEY).layers.log_det
    assert isinstance(log_det, OBJECTS[kind])
    if kind != "exact":
        assert log_det.radius == Given(2.0)
    if kind not in ("exact", "first-order"):
        assert (log_det.order, log_det.probes) == (5, Rademacher(3))


def test_whole_jacobians_only_in_few_dimensions():
    few, many = (RECIPES["deterministic"](dim, Options(), KEY).layers.log_det for dim in (16, 17))
    assert isinstance(few, ExactLogDet)
    assert isinstance(many, ChebyshevLogDet)
    few, many = (RECIPES["continuous"](dim, Options(), KEY) for dim in (16, 17))
    assert few.exact
    assert not many.exact


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        ({"log_det": "tailor"}, "did you mean taylor"),
        ({"probes": -1}, "probes is -1"),
        ({"order": 0}, "order is 0"),
        ({"delta": -1.0}, "delta is -1.0"),
        ({"metropolis": True}, "use it with hmc"),
    ],
)
def test_bad_options_of_gradient_steps(values, expected):
    with pytest.raises(InputError, match=expected):
        RECIPES["deterministic"](2, Options(**values), KEY)


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        ({"trace": "hutchinsen"}, "did you mean hutchinson"),
        ({"solver": "adaptiv"}, "did you mean adaptive"),
        ({"adjoint": "backsolv"}, "did you mean backsolve"),
        ({"tolerance": 0.0}, "tolerance is 0.0"),
        ({"metropolis": True}, "use it with hmc"),
    ],
)
def test_bad_options_of_flows(values, expected):
    with pytest.raises(InputError, match=expected):
        RECIPES["continuous"](2, Options(**values), KEY)


def test_solvers_adjoints_and_traces_by_name():
    options = Options(trace="hutchinson", probes=2, solver="fixed", adjoint="backsolve")
    flow = RECIPES["continuous"](2, options, KEY)
    assert flow.probes == Rademacher(2)
    assert isinstance(flow.solve.controller, diffrax.ConstantStepSize)
    assert isinstance(flow.solve.adjoint, diffrax.BacksolveAdjoint)
