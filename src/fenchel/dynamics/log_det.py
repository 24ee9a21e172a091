"""log|det(I + A)| of a map x' = x + g(x), where A is the Jacobian of g at x.

For a gradient step A = η H, with H the Hessian of f; for a residual layer it is the layer's own.
All but the exact one see A through products A z only, and the trace of its logarithm through
probes. With ρ a bound on the size of A's eigenvalues, they converge for ρ < 1, which is also where
the map cannot fold.
"""

from abc import abstractmethod
from collections.abc import Callable
from typing import NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
from jax import lax

from fenchel.dynamics.probes import AbstractProbes, Basis, Rademacher
from fenchel.dynamics.radius import AbstractRadius, PowerIteration, dense_radius
from fenchel.errors import InputError
from fenchel.shapes import Array, Key, Point, Scalar

Residual = Callable[[Point], Point]
CEILING = 0.99  # beyond ρ = 1 no expansion converges: the numbers stay finite, `radius` tells


class Step(NamedTuple):
    """g(x), log|det(I + A)|, and ρ: from 1 on the map may fold."""

    value: Point
    log_det: Scalar
    radius: Scalar


class AbstractLogDet(eqx.Module):
    """An estimate of the log-determinant at one point."""

    @property
    @abstractmethod
    def exact(self) -> bool:
        """Whether it is the log-determinant itself."""

    @abstractmethod
    def __call__(self, g: Residual, x: Point, step: Scalar, key: Key) -> Step:
        """At x; `step` is the (largest) step size in g, for spectral bounds a unit of step."""


class ExactLogDet(AbstractLogDet):
    """By the whole Jacobian: d products and a factorisation, for small d."""

    @property
    def exact(self) -> bool:
        return True

    def __call__(self, g: Residual, x: Point, step: Scalar, key: Key) -> Step:
        value, product = jax.linearize(g, x)
        jacobian = jax.vmap(product, out_axes=1)(jnp.eye(x.size, dtype=x.dtype))
        log_det = jnp.linalg.slogdet(jnp.eye(x.size, dtype=x.dtype) + jacobian)[1]
        return Step(value, log_det, lax.stop_gradient(dense_radius(jacobian)))


class AbstractProbed(AbstractLogDet):
    """The sum of p' log(I + A) p over probes: what all but the exact one share."""

    probes: eqx.AbstractVar[AbstractProbes]
    radius: eqx.AbstractVar[AbstractRadius]

    @property
    def exact(self) -> bool:
        return False

    def __call__(self, g: Residual, x: Point, step: Scalar, key: Key) -> Step:
        probe_key, radius_key = jax.random.split(key)
        value, product = jax.linearize(g, x)
        radius = self.radius(product, x, step, radius_key)
        bounded = jnp.minimum(radius, CEILING)
        probes = self.probes.draw(probe_key, x)
        terms = jax.vmap(lambda probe: self.quadratic(product, probe, bounded))(probes)
        return Step(value, jnp.sum(terms), radius)

    @abstractmethod
    def quadratic(self, product: Callable[[Point], Point], probe: Point, radius: Scalar) -> Scalar:
        """p' log(I + A) p for one probe p, where `product` multiplies by A."""


class FirstOrderLogDet(AbstractProbed):
    """tr A alone: for a gradient step η times the Laplacian, right to first order in η."""

    probes: AbstractProbes = Basis()
    radius: AbstractRadius = PowerIteration()

    def quadratic(self, product: Callable[[Point], Point], probe: Point, radius: Scalar) -> Scalar:
        return jnp.vdot(probe, product(probe))


class TaylorLogDet(AbstractProbed):
    """log(1 + ρ) - sum over i of C^i / i, where I + A = (1 + ρ)(I - C).

    C = (ρ I - A) / (1 + ρ) has its eigenvalues in [0, 2ρ / (1 + ρ)]. (The paper's printed C lacks
    the step size on the Hessian.)
    """

    order: int = eqx.field(static=True, default=8)
    probes: AbstractProbes = Rademacher()
    radius: AbstractRadius = PowerIteration()

    def __check_init__(self) -> None:
        _check_order(self.order)

    def quadratic(self, product: Callable[[Point], Point], probe: Point, radius: Scalar) -> Scalar:
        def term(carry, i):
            power, total = carry
            power = (radius * power - product(power)) / (1 + radius)  # C^i p
            return (power, total - jnp.vdot(probe, power) / i), None

        constant = jnp.log1p(radius) * jnp.vdot(probe, probe)
        orders = jnp.arange(1, self.order + 1, dtype=probe.dtype)
        return lax.scan(term, (probe, constant), orders)[0][1]


class ChebyshevLogDet(AbstractProbed):
    """The polynomial that interpolates log(1 + a) at Chebyshev's nodes of [-ρ, ρ].

    Its error falls like the `order`-th power of ρ / (1 + sqrt(1 - ρ²)), where Taylor's falls like
    that of 2ρ / (1 + ρ). (The nodes are cos(π (j + 1/2) / (k + 1)) with j where the paper prints
    k, and c_0 divides by k + 1.)
    """

    order: int = eqx.field(static=True, default=8)
    probes: AbstractProbes = Rademacher()
    radius: AbstractRadius = PowerIteration()

    def __check_init__(self) -> None:
        _check_order(self.order)

    def quadratic(self, product: Callable[[Point], Point], probe: Point, radius: Scalar) -> Scalar:
        # A zero Jacobian has a zero radius, and any interval will do for it.
        radius = jnp.maximum(radius, jnp.finfo(probe.dtype).eps)
        coefficients = self.coefficients(radius)

        def term(carry, coefficient):
            before, now, total = carry  # T_(i-1) p and T_i p
            total += coefficient * jnp.vdot(probe, now)
            return (now, 2 * product(now) / radius - before, total), None

        constant = coefficients[0] * jnp.vdot(probe, probe)
        first = product(probe) / radius
        return lax.scan(term, (probe, first, constant), coefficients[1:])[0][2]

    def coefficients(self, radius: Scalar) -> Array:
        """c_0, ..., c_k of log(1 + ρ s) in Chebyshev's polynomials of s."""
        orders = jnp.arange(self.order + 1, dtype=radius.dtype)
        angles = jnp.pi * (orders + 0.5) / (self.order + 1)
        values = jnp.log1p(radius * jnp.cos(angles))
        sums = jnp.cos(orders[:, None] * angles[None, :]) @ values
        return jnp.where(orders == 0, 1.0, 2.0) * sums / (self.order + 1)


class LanczosLogDet(AbstractProbed):
    """Gauss quadrature of each probe's own spectrum, by Lanczos' algorithm (through matfree).

    Needs a symmetric Jacobian, as of a gradient step, and no more products than dimensions.
    """

    order: int = eqx.field(static=True, default=8)
    probes: AbstractProbes = Rademacher()
    radius: AbstractRadius = PowerIteration()

    def __check_init__(self) -> None:
        _check_order(self.order)
        _matfree()

    def quadratic(self, product: Callable[[Point], Point], probe: Point, radius: Scalar) -> Scalar:
        decomp, funm = _matfree()
        tridiagonal = decomp.tridiag_sym(min(self.order, probe.size), custom_vjp=False)
        return funm.monte_carlo_funm_sym_logdet(tridiagonal)(lambda z: z + product(z), probe)


def _matfree():
    try:
        from matfree import decomp, funm
    except ImportError:
        raise InputError(
            "The Lanczos log-determinant needs matfree: pip install 'fenchel[lanczos]'."
        ) from None
    return decomp, funm


def _check_order(order: int) -> None:
    if order < 1:
        raise InputError(f"The order of a log-determinant is {order}: give at least 1.")
