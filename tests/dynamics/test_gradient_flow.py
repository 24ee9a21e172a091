"""Flows in continuous time: closed forms, both adjoints, and determinants of the whole map."""

import diffrax
import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from fenchel.dynamics import (
    Basis,
    FlowVelocity,
    GradientFlow,
    Rademacher,
    adaptive,
    fixed,
    particle_at,
)
from fenchel.errors import InputError

pytestmark = pytest.mark.usefixtures("x64")

KEY = jax.random.key(5)
ADJOINTS = {
    "checkpoint": diffrax.RecursiveCheckpointAdjoint(),
    "backsolve": diffrax.BacksolveAdjoint(),
}


def precision():
    return jnp.array([[2.0, 0.5, 0.0], [0.5, 1.5, 0.3], [0.0, 0.3, 0.8]])


def centre():
    return jnp.array([0.2, -0.1, 0.4])


def gaussian(a, m):
    return lambda x: -0.5 * (x - m) @ a @ (x - m)


def wavy(x):
    return -0.5 * jnp.sum(x**2) + jnp.sum(jnp.sin(2 * x)) * 0.5 + 0.2 * x[0] * x[1]


@eqx.filter_jit
def flow(f, layer, x, key=KEY):
    return layer(f, particle_at(f, x, jnp.zeros(0), jnp.zeros(())), key)


START = (0.3, -0.7, 1.1)


def summary(x, log_q):
    return jnp.array([0.4, -1.0, 0.7]) @ x + jnp.sin(log_q)


def closed(time, a, m):
    x = m + jax.scipy.linalg.expm(-time * a) @ (jnp.array(START) - m)
    return summary(x, time * jnp.trace(a))


compiled_closed = jax.jit(jax.value_and_grad(closed, argnums=(0, 1, 2)))


@pytest.mark.parametrize("adjoint", list(ADJOINTS))
def test_gaussian_in_closed_form_with_its_gradients(adjoint):
    """x(t) = m + exp(-t A)(x0 - m), log q = log q0 + t tr A, and gradients in t, A and m."""

    def solved(time, a, m):
        solve = adaptive(1e-10, 4_000, ADJOINTS[adjoint])
        particle = flow(gaussian(a, m), GradientFlow(time, solve=solve), jnp.array(START))
        return summary(particle.x, particle.log_q)

    at = jnp.array(0.7), precision(), centre()
    value, got = jax.jit(jax.value_and_grad(solved, argnums=(0, 1, 2)))(*at)
    expected, wanted = compiled_closed(*at)
    assert value == pytest.approx(float(expected), abs=1e-8)
    # f's gradient is symmetric in A's two triangles, which the closed form need not be.
    symmetric = lambda g: (g[0], 0.5 * (g[1] + g[1].T), g[2])  # noqa: E731
    for mine, theirs in zip(symmetric(got), symmetric(wanted), strict=True):
        np.testing.assert_allclose(mine, theirs, atol=1e-6)


def test_hutchinson_holds_its_probe_along_the_way():
    """With a constant Hessian the estimate is t p'Ap for the one p that was drawn."""
    layer = GradientFlow(jnp.array(0.7), probes=Rademacher(1), solve=adaptive(1e-9, 4_000))
    probe = Rademacher(1).draw(KEY, jnp.zeros(3))[0]
    particle = flow(gaussian(precision(), centre()), layer, jnp.array(START))
    assert particle.log_q == pytest.approx(float(0.7 * probe @ precision() @ probe), abs=1e-7)
    assert not layer.exact
    assert GradientFlow(jnp.array(0.7)).exact


def test_hutchinson_has_no_bias():
    """Within 4 standard errors over 400 probes (by chance once in 16,000)."""
    x = jnp.array(START)
    exact = flow(wavy, GradientFlow(jnp.array(0.3)), x).log_q
    layer = GradientFlow(jnp.array(0.3), probes=Rademacher(1), solve=fixed(8))

    @jax.jit
    def estimates():
        return jax.vmap(lambda key: flow(wavy, layer, x, key).log_q)(jax.random.split(KEY, 400))

    misses = np.asarray(estimates()) - float(exact)
    error = np.std(misses) / 20
    assert error > 1e-4
    assert abs(np.mean(misses)) < 4 * error
    assert abs(np.mean(misses) + 0.1) > 4 * error  # it could see a tenth


def bent_velocity():
    """A velocity net that is no longer quiet."""
    net = FlowVelocity(3, 8, key=KEY)
    bend = 0.5 * jax.random.normal(KEY, net.net.layers[-1].weight.shape)
    return eqx.tree_at(lambda v: v.net.layers[-1].weight, net, bend)


def turning(score, value, x):
    """A velocity that follows no potential."""
    return 0.5 * score + jnp.tanh(value) * jnp.roll(x, 1)


@pytest.mark.parametrize("velocity", ["score", "net", "given"])
def test_the_integral_is_the_determinant_of_the_whole_map(velocity):
    fields = {
        "score": GradientFlow(jnp.array(0.4)).velocity,
        "net": bent_velocity(),
        "given": turning,
    }
    # Forward through the solver, which is compiled sooner; the ways back have a test of their own.
    solve = adaptive(1e-9, 4_000, diffrax.ForwardMode())
    layer = GradientFlow(jnp.array(0.4), fields[velocity], solve=solve)

    def moved(x):
        particle = flow(wavy, layer, x)
        return particle.x, particle.log_q

    jacobian, log_q = jax.jit(jax.jacfwd(moved, has_aux=True))(jnp.array(START))
    assert -log_q == pytest.approx(np.linalg.slogdet(jacobian)[1], abs=1e-7)


def test_the_learnt_field_starts_as_the_score():
    x = jnp.array(START)
    plain = flow(wavy, GradientFlow(jnp.array(0.4)), x)
    learnt = flow(wavy, GradientFlow(jnp.array(0.4), FlowVelocity(3, key=KEY)), x)
    np.testing.assert_allclose(learnt.x, plain.x, atol=1e-12)
    assert learnt.log_q == pytest.approx(float(plain.log_q), abs=1e-12)


@pytest.mark.parametrize("solve", [fixed(64), adaptive(1e-8, 4_000)], ids=["fixed", "adaptive"])
def test_round_trip(solve):
    @eqx.filter_jit
    def there_and_back(layer, x):
        particle = flow(wavy, layer, x)
        return particle, layer.inverse(wavy, particle.x, KEY)

    x = jnp.array(START)
    particle, undone = there_and_back(GradientFlow(jnp.array(0.6), turning, solve=solve), x)
    np.testing.assert_allclose(undone.x, x, atol=1e-6)
    assert undone.log_det == pytest.approx(float(-particle.log_q), abs=1e-6)
    assert undone.miss == 0


def test_fixed_steps_converge():
    """Heun's method is of order two: half the step, a quarter of the error."""
    best = flow(wavy, GradientFlow(jnp.array(0.6), solve=adaptive(1e-11, 4_000)), jnp.array(START))
    errors = []
    for steps in (200, 400):
        solve = fixed(steps, diffrax.Heun())
        got = flow(wavy, GradientFlow(jnp.array(0.6), solve=solve), jnp.array(START))
        errors.append(abs(float(got.log_q - best.log_q)))
    assert 3.5 < errors[0] / errors[1] < 4.5


def test_a_solver_that_gives_up_leaves_no_density_and_says_so():
    stiff = lambda x: -0.5e6 * jnp.sum(x**2)  # noqa: E731
    x = jnp.array(START)
    particle = flow(stiff, GradientFlow(jnp.array(1.0)), x)
    np.testing.assert_array_equal(particle.x, x)
    assert jnp.isnan(particle.log_q)
    assert particle.strain >= 1
    assert GradientFlow(jnp.array(1.0)).inverse(stiff, x, KEY).miss == jnp.inf
    easy = flow(stiff, GradientFlow(jnp.array(1e-6)), x)
    assert jnp.isfinite(easy.log_q)
    assert easy.strain < 1


def test_the_step_is_shortened():
    assert GradientFlow(jnp.array(0.6)).shortened(0.5).time == pytest.approx(0.3)


def test_bad_settings():
    with pytest.raises(InputError, match="tolerance"):
        adaptive(0.0)
    with pytest.raises(InputError, match="at least one"):
        fixed(0)
    assert isinstance(GradientFlow(jnp.array(1.0)).probes, Basis)
