"""log|det(I + η H)|: each estimate against the determinant itself, and against theory."""

import sys

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


def point():
    return jnp.linspace(-0.6, 0.8, DIM)


def steps():
    return jnp.linspace(0.05, 0.12, DIM)


def hessian():
    return jax.hessian(potential)(point())


def truth():
    whole = jax.jacfwd(lambda x: x + steps() * jax.grad(potential)(x))(point())
    return jnp.linalg.slogdet(whole)[1]


def scaled_radius():
    root = jnp.sqrt(steps())
    return float(jnp.max(jnp.abs(jnp.linalg.eigvalsh(root[:, None] * hessian() * root[None, :]))))


def estimate(log_det, key=KEY, step_size=None):
    """What a gradient step adds to -log q, and its strain."""
    step = GradientStep(steps() if step_size is None else step_size, log_det)
    particle = step(potential, particle_at(potential, point(), jnp.zeros(0), jnp.zeros(())), key)
    return -particle.log_q, particle.strain


def test_exact_is_the_determinant():
    value, strain = estimate(ExactLogDet())
    assert value == pytest.approx(float(truth()), abs=1e-12)
    assert scaled_radius() <= strain <= DIM ** (1 / 16) * scaled_radius() * (1 + 1e-9)


def test_first_order_is_the_step_times_the_laplacian():
    value, _ = estimate(FirstOrderLogDet())
    assert value == pytest.approx(float(jnp.sum(steps() * jnp.diag(hessian()))), abs=1e-12)
    assert abs(value - truth()) > 1e-3  # it is an approximation


def test_lanczos_with_as_many_products_as_dimensions_is_exact():
    value, _ = estimate(LanczosLogDet(DIM, Basis()))
    assert value == pytest.approx(float(truth()), abs=1e-10)
    rough, _ = estimate(LanczosLogDet(2, Basis()))
    assert 1e-8 < abs(rough - truth()) < 1e-2


@pytest.mark.parametrize("order", [1, 2, 4, 8, 16])
def test_truncation_errors_are_what_theory_allows(order):
    """All directions as probes, so that nothing but the truncation is left."""
    rho = scaled_radius()
    delta = rho / float(jnp.max(steps()))
    taylor, _ = estimate(TaylorLogDet(order, Basis(), Given(delta)))
    chebyshev, _ = estimate(ChebyshevLogDet(order, Basis(), Given(delta)))
    ratio = 2 * rho / (1 + rho)  # the largest eigenvalue of C
    taylor_bound = DIM * ratio ** (order + 1) / ((order + 1) * (1 - ratio))
    ellipse = (1 + np.sqrt(1 - rho**2)) / rho  # whose focus sum reaches the singularity
    inner = 0.5 * (1 + ellipse)
    largest = abs(np.log(1 - rho * 0.5 * (inner + 1 / inner))) + np.pi
    chebyshev_bound = DIM * 4 * largest * inner**-order / (inner - 1)
    rounding = 1e-12
    assert abs(taylor - truth()) <= taylor_bound + rounding
    assert abs(chebyshev - truth()) <= chebyshev_bound + rounding
    assert abs(chebyshev - truth()) < abs(taylor - truth()) + rounding


def test_the_printed_formula_of_the_paper_is_wrong():
    """C without the step size on the Hessian: the erratum, as a number."""
    eta, h = 0.05, hessian()
    delta = float(jnp.max(jnp.abs(jnp.linalg.eigvalsh(h))))
    identity = jnp.eye(DIM)
    wanted = jnp.linalg.slogdet(identity + eta * h)[1]

    def with_c(c):
        return DIM * jnp.log1p(eta * delta) + jnp.linalg.slogdet(identity - c)[1]

    right = (eta * delta * identity - eta * h) / (1 + eta * delta)
    printed = (eta * delta * identity - h) / (1 + eta * delta)
    assert with_c(right) == pytest.approx(float(wanted), abs=1e-12)
    assert abs(with_c(printed) - wanted) > 0.1


@pytest.mark.parametrize("kind", [TaylorLogDet, ChebyshevLogDet, LanczosLogDet])
def test_probes_add_noise_and_no_bias(kind):
    """Over 4,000 keys the mean is within 4 standard errors: it fails by chance once in 16,000."""
    order, radius = 3, Given(scaled_radius() / float(jnp.max(steps())))
    limit, _ = estimate(kind(order, Basis(), radius))
    if kind is LanczosLogDet:  # whose quadrature is not linear in p p': its limit is the truth
        order, limit = DIM, truth()
    one = lambda key: estimate(kind(order, Rademacher(2), radius), key)[0]  # noqa: E731
    values = jax.jit(jax.vmap(one))(jax.random.split(KEY, 4_000))
    error = float(jnp.std(values)) / 4_000**0.5
    assert error > 1e-5
    assert abs(float(jnp.mean(values) - limit)) < 4 * error
    # Negative control: the test has the power to see a bias of a hundredth.
    assert abs(float(jnp.mean(values) - limit) + 0.01) > 4 * error


def test_variance_falls_with_the_number_of_probes():
    radius = Given(scaled_radius() / float(jnp.max(steps())))
    spread = []
    for count in (1, 16):
        one = lambda key, c=count: estimate(  # noqa: E731
            ChebyshevLogDet(6, Rademacher(c), radius), key
        )[0]
        spread.append(float(jnp.var(jax.jit(jax.vmap(one))(jax.random.split(KEY, 2_000)))))
    assert 11 < spread[0] / spread[1] < 23  # 16, and five standard errors


def test_gradients_pass_through_the_expansions():
    def value(log_det, step_size):
        return estimate(log_det, step_size=step_size)[0]

    wanted = jax.grad(lambda s: value(ExactLogDet(), s))(steps())
    radius = Given(scaled_radius() / float(jnp.max(steps())))
    got = jax.grad(lambda s: value(ChebyshevLogDet(24, Basis(), radius), s))(steps())
    np.testing.assert_allclose(got, wanted, atol=1e-8)


def test_power_iteration_finds_the_radius_from_below_and_adds_its_margin():
    for seed in range(20):
        root = jax.random.normal(jax.random.key(seed), (6, 6))
        matrix = 0.5 * (root + root.T)
        true = float(jnp.max(jnp.abs(jnp.linalg.eigvalsh(matrix))))
        found = PowerIteration(200, 1.2)(
            lambda z, m=matrix: m @ z, jnp.zeros(6), jnp.ones(()), jax.random.key(seed + 100)
        )
        # Two eigenvalues of almost one size leave it just below.
        assert 1.1 * true < found <= 1.2 * true * (1 + 1e-9)
        assert true * (1 - 1e-9) <= dense_radius(matrix) <= 6 ** (1 / 16) * true * (1 + 1e-9)


def test_nothing_to_find_in_a_flat_potential():
    flat = lambda x: jnp.zeros(()) * jnp.sum(x)  # noqa: E731
    at = particle_at(flat, point(), jnp.zeros(0), jnp.zeros(()))
    for log_det in (ExactLogDet(), TaylorLogDet(), ChebyshevLogDet(), FirstOrderLogDet()):
        particle = GradientStep(steps(), log_det)(flat, at, KEY)
        assert particle.log_q == pytest.approx(0.0, abs=1e-12)
        assert particle.strain == pytest.approx(0.0, abs=1e-12)


@pytest.mark.parametrize("kind", [TaylorLogDet, ChebyshevLogDet])
def test_a_map_that_may_fold_is_reported_and_stays_finite(kind):
    value, strain = estimate(kind(), step_size=jnp.full(DIM, 5.0))
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
