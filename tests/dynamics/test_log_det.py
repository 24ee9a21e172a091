"""log|det(I + η H)|: each estimate against the determinant itself, and against theory."""

import sys
from functools import lru_cache

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from fenchel.dynamics import (
    Basis,
    ChebyshevLogDet,
    ExactLogDet,
    FirstOrderLogDet,
    Given,
    GradientStep,
    LanczosLogDet,
    PowerIteration,
    Rademacher,
    TaylorLogDet,
    particle_at,
)
from fenchel.dynamics.radius import dense_radius
from fenchel.errors import InputError

pytestmark = pytest.mark.usefixtures("x64")

DIM = 5
KEY = jax.random.key(3)


def potential(x):
    """Smooth, with an indefinite Hessian whose eigenvalues are within about ±3."""
    mixed = jnp.cos(jnp.arange(DIM * DIM).reshape(DIM, DIM)) @ x
    return jnp.sum(jnp.sin(mixed)) - 0.3 * jnp.sum(x**2)


POINT = np.linspace(-0.6, 0.8, DIM)
STEPS = np.linspace(0.05, 0.12, DIM)


@lru_cache
def hessian():
    return np.asarray(jax.jit(jax.hessian(potential))(POINT))


@lru_cache
def truth():
    whole = jax.jit(jax.jacfwd(lambda x: x + STEPS * jax.grad(potential)(x)))(POINT)
    return np.linalg.slogdet(whole)[1]


def scaled_radius():
    root = np.sqrt(STEPS)
    return np.max(np.abs(np.linalg.eigvalsh(root[:, None] * hessian() * root[None, :])))


def largest():
    """The δ with which the longest step just reaches the radius."""
    return float(scaled_radius() / np.max(STEPS))


@eqx.filter_jit
def estimate(log_det, key=KEY, step_size=STEPS):
    """What a gradient step adds to -log q, and its strain."""
    start = particle_at(potential, jnp.asarray(POINT), jnp.zeros(0), jnp.zeros(()))
    particle = GradientStep(jnp.asarray(step_size), log_det)(potential, start, key)
    return -particle.log_q, particle.strain


def test_exact_is_the_determinant():
    value, strain = estimate(ExactLogDet())
    assert value == pytest.approx(truth(), abs=1e-12)
    assert scaled_radius() <= strain <= DIM ** (1 / 16) * scaled_radius() * (1 + 1e-9)


def test_first_order_is_the_step_times_the_laplacian():
    value, _ = estimate(FirstOrderLogDet())
    assert value == pytest.approx(np.sum(STEPS * np.diag(hessian())), abs=1e-12)
    assert abs(value - truth()) > 1e-3  # it is an approximation


def test_lanczos_with_as_many_products_as_dimensions_is_exact():
    value, _ = estimate(LanczosLogDet(DIM, Basis()))
    assert value == pytest.approx(truth(), abs=1e-10)
    rough, _ = estimate(LanczosLogDet(2, Basis()))
    assert 1e-8 < abs(rough - truth()) < 1e-2


@pytest.mark.parametrize("order", [1, 2, 4, 8, 16])
def test_truncation_errors_are_what_theory_allows(order):
    """All directions as probes, so that nothing but the truncation is left."""
    rho = scaled_radius()
    taylor, _ = estimate(TaylorLogDet(order, Basis(), Given(largest())))
    chebyshev, _ = estimate(ChebyshevLogDet(order, Basis(), Given(largest())))
    ratio = 2 * rho / (1 + rho)  # the largest eigenvalue of C
    taylor_bound = DIM * ratio ** (order + 1) / ((order + 1) * (1 - ratio))
    ellipse = (1 + np.sqrt(1 - rho**2)) / rho  # whose focus sum reaches the singularity
    inner = 0.5 * (1 + ellipse)
    on_ellipse = abs(np.log(1 - rho * 0.5 * (inner + 1 / inner))) + np.pi
    chebyshev_bound = DIM * 4 * on_ellipse * inner**-order / (inner - 1)
    rounding = 1e-12
    assert abs(taylor - truth()) <= taylor_bound + rounding
    assert abs(chebyshev - truth()) <= chebyshev_bound + rounding
    assert abs(chebyshev - truth()) < abs(taylor - truth()) + rounding


def test_the_printed_formula_of_the_paper_is_wrong():
    """C without the step size on the Hessian: the erratum, as a number."""
    eta, h = 0.05, hessian()
    delta = np.max(np.abs(np.linalg.eigvalsh(h)))
    identity = np.eye(DIM)
    wanted = np.linalg.slogdet(identity + eta * h)[1]

    def with_c(c):
        return DIM * np.log1p(eta * delta) + np.linalg.slogdet(identity - c)[1]

    right = (eta * delta * identity - eta * h) / (1 + eta * delta)
    printed = (eta * delta * identity - h) / (1 + eta * delta)
    assert with_c(right) == pytest.approx(wanted, abs=1e-12)
    assert abs(with_c(printed) - wanted) > 0.1


@pytest.mark.parametrize("kind", [TaylorLogDet, ChebyshevLogDet, LanczosLogDet])
def test_probes_add_noise_and_no_bias(kind):
    """Over 4,000 keys the mean is within 4 standard errors: it fails by chance once in 16,000."""
    order, radius = 3, Given(largest())
    limit, _ = estimate(kind(order, Basis(), radius))
    if kind is LanczosLogDet:  # whose quadrature is not linear in p p': its limit is the truth
        order, limit = DIM, truth()
    one = lambda key: estimate(kind(order, Rademacher(2), radius), key)[0]  # noqa: E731
    misses = np.asarray(jax.jit(jax.vmap(one))(jax.random.split(KEY, 4_000))) - float(limit)
    error = np.std(misses) / 4_000**0.5
    assert error > 1e-5
    assert abs(np.mean(misses)) < 4 * error
    # Negative control: the test has the power to see a bias of a hundredth.
    assert abs(np.mean(misses) + 0.01) > 4 * error


def test_variance_falls_with_the_number_of_probes():
    spread = []
    for count in (1, 16):
        log_det = ChebyshevLogDet(6, Rademacher(count), Given(largest()))
        one = lambda key, log_det=log_det: estimate(log_det, key)[0]  # noqa: E731
        spread.append(np.var(jax.jit(jax.vmap(one))(jax.random.split(KEY, 2_000))))
    assert 11 < spread[0] / spread[1] < 23  # 16, and five standard errors


def test_gradients_pass_through_the_expansions():
    log_dets = ExactLogDet(), ChebyshevLogDet(24, Basis(), Given(largest()))

    @jax.jit
    def gradients(step_size):
        value = lambda s, log_det: estimate(log_det, step_size=s)[0]  # noqa: E731
        return [jax.grad(value)(step_size, log_det) for log_det in log_dets]

    wanted, got = gradients(STEPS)
    np.testing.assert_allclose(got, wanted, atol=1e-8)


def test_power_iteration_finds_the_radius_from_below_and_adds_its_margin():
    @jax.jit
    @jax.vmap
    def radii(seed):
        root = jax.random.normal(jax.random.key(seed), (6, 6))
        matrix = 0.5 * (root + root.T)
        iteration, key = PowerIteration(200, 1.2), jax.random.key(seed + 100)
        found = iteration(lambda z: matrix @ z, jnp.zeros(6), jnp.ones(()), key)
        return matrix, found, dense_radius(matrix)

    matrices, found, dense = map(np.asarray, radii(jnp.arange(20)))
    true = np.max(np.abs(np.linalg.eigvalsh(matrices)), axis=1)
    # Two eigenvalues of almost one size leave it just below.
    assert np.all((1.1 * true < found) & (found <= 1.2 * true * (1 + 1e-9)))
    assert np.all((true * (1 - 1e-9) <= dense) & (dense <= 6 ** (1 / 16) * true * (1 + 1e-9)))


def test_nothing_to_find_in_a_flat_potential():
    flat = lambda x: jnp.zeros(()) * jnp.sum(x)  # noqa: E731
    log_dets = ExactLogDet(), TaylorLogDet(), ChebyshevLogDet(), FirstOrderLogDet()

    @jax.jit
    def moved(x):
        at = particle_at(flat, x, jnp.zeros(0), jnp.zeros(()))
        return [GradientStep(jnp.asarray(STEPS), log_det)(flat, at, KEY) for log_det in log_dets]

    for particle in moved(POINT):
        assert particle.log_q == pytest.approx(0.0, abs=1e-12)
        assert particle.strain == pytest.approx(0.0, abs=1e-12)


@pytest.mark.parametrize("kind", [TaylorLogDet, ChebyshevLogDet])
def test_a_map_that_may_fold_is_reported_and_stays_finite(kind):
    value, strain = estimate(kind(), step_size=np.full(DIM, 5.0))
    assert strain > 1
    assert jnp.isfinite(value)


def test_what_makes_no_sense_is_refused(monkeypatch):
    for wrong in (lambda: TaylorLogDet(0), lambda: ChebyshevLogDet(0), lambda: LanczosLogDet(0)):
        with pytest.raises(InputError, match="order"):
            wrong()
    with pytest.raises(InputError, match="at least one"):
        Rademacher(0)
    with pytest.raises(InputError, match="positive"):
        Given(0.0)
    monkeypatch.setitem(sys.modules, "matfree", None)
    with pytest.raises(InputError, match=r"fenchel\[lanczos\]"):
        LanczosLogDet()
