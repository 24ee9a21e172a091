"""How large the eigenvalues of a Jacobian are: given, or found by power iteration."""

from abc import abstractmethod
from collections.abc import Callable

import equinox as eqx
import jax
import jax.numpy as jnp
from jax import lax

from fenchel.errors import InputError
from fenchel.shapes import Array, Key, Point, Scalar


class AbstractRadius(eqx.Module):
    """A bound ρ on the size of the eigenvalues of A = ∂g/∂x, where x moves by g(x)."""

    @abstractmethod
    def __call__(
        self, product: Callable[[Point], Point], x: Point, step: Scalar, key: Key
    ) -> Scalar:
        """`product` multiplies by A; `step` is the (largest) step size that is in A."""


class Given(AbstractRadius):
    """ρ = η δ with a δ that is known to bound the Hessian's eigenvalues."""

    delta: float = eqx.field(static=True)

    def __check_init__(self) -> None:
        if not self.delta > 0:
            raise InputError(f"The spectral bound is {self.delta}: it must be positive.")

    def __call__(
        self, product: Callable[[Point], Point], x: Point, step: Scalar, key: Key
    ) -> Scalar:
        return step * self.delta


class PowerIteration(AbstractRadius):
    """The growth of a random vector under A, times a safety `margin`.

    Power iteration comes from below, hence the margin. The result carries no gradient: it only
    says how an expansion is scaled, which in the limit does not matter.
    """

    iterations: int = eqx.field(static=True, default=6)
    margin: float = eqx.field(static=True, default=1.2)

    def __call__(
        self, product: Callable[[Point], Point], x: Point, step: Scalar, key: Key
    ) -> Scalar:
        start = jax.random.normal(key, x.shape, x.dtype)

        def iterate(direction: Point, _) -> tuple[Point, Array]:
            longer = product(direction)
            size = jnp.linalg.norm(longer)
            # A zero Jacobian leaves nothing to normalise.
            return longer / jnp.maximum(size, jnp.finfo(x.dtype).tiny), size

        unit = start / jnp.linalg.norm(start)
        _, sizes = lax.scan(iterate, unit, length=self.iterations)
        return lax.stop_gradient(self.margin * sizes[-1])


def dense_radius(matrix: Array) -> Scalar:
    """An upper bound from the whole matrix, |A^8|^(1/8): if A = A', at most d^(1/16) too large."""
    size = jnp.linalg.norm(matrix)
    power = matrix / jnp.maximum(size, jnp.finfo(matrix.dtype).tiny)
    for _ in range(3):
        power = power @ power
    return size * jnp.linalg.norm(power) ** 0.125
