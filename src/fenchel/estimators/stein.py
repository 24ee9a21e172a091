"""The diffusion kernel Stein discrepancy, and Stein variational gradient descent, its dual.

With a diffusion matrix m(x), Stein's operator is S_f h = b · h + tr(m' ∇h), where b = m' ∇f + div m
and E_p[S_p h] = 0 for every h. The discrepancy is the largest E_D[S_f h] over the unit ball of a
kernel's space, squared: a mean over pairs of data points, in closed form.
"""

from abc import abstractmethod
from collections.abc import Callable

import equinox as eqx
import jax
import jax.numpy as jnp
from jax import lax

from fenchel.dynamics import Particle, particle_at
from fenchel.errors import InputError
from fenchel.estimators.estimator import AbstractLoss, Negatives
from fenchel.samplers import AbstractSampler
from fenchel.shapes import Array, Key, Point, Points, Potential, Scalar

Diffusion = Callable[[Point], Array]


class AbstractKernel(eqx.Module):
    """k(x, y) = φ(|x - y|² / scale²)."""

    scale: eqx.AbstractVar[float]

    @abstractmethod
    def profile(self, u: Scalar) -> Scalar:
        """φ."""


class InverseMultiquadric(AbstractKernel):
    """(1 + u)^-1/2: its slow decay sees mass far off, where a Gaussian kernel is blind."""

    scale: float = eqx.field(static=True, default=1.0)

    def profile(self, u: Scalar) -> Scalar:
        return (1 + u) ** -0.5


class GaussianKernel(AbstractKernel):
    """exp(-u / 2)."""

    scale: float = eqx.field(static=True, default=1.0)

    def profile(self, u: Scalar) -> Scalar:
        return jnp.exp(-0.5 * u)


def identity(x: Point) -> Array:
    return jnp.eye(x.size, dtype=x.dtype)


class KernelStein(AbstractLoss):
    """The squared discrepancy over all pairs of the batch.

    `unbiased` leaves out the pairs of a point with itself, whose mean is not zero under the model:
    a small batch is otherwise mostly them. With them it is the square that the dual goes with.
    """

    kernel: AbstractKernel = InverseMultiquadric()
    diffusion: Diffusion = identity
    unbiased: bool = eqx.field(static=True, default=True)

    def __check_init__(self) -> None:
        if not self.kernel.scale > 0:
            raise InputError(f"The kernel's scale is {self.kernel.scale}: it must be positive.")

    def loss(self, f: Potential, batch: Points, key: Key) -> Scalar:
        if batch.shape[0] < 2:
            raise InputError("The Stein discrepancy is over pairs: give batches of two or more.")
        drifts, diffusions = jax.vmap(lambda x: self._operator(f, x))(batch)
        over_y = jax.vmap(self._pair, (None, None, None, 0, 0, 0))
        pairs = jax.vmap(over_y, (0, 0, 0, None, None, None))(
            batch, drifts, diffusions, batch, drifts, diffusions
        )
        n = batch.shape[0]
        if self.unbiased:
            return (jnp.sum(pairs) - jnp.trace(pairs)) / (n * (n - 1))
        return jnp.mean(pairs)

    def direction(self, f: Potential, points: Points, x: Point) -> Point:
        """h*(x): the function, in the kernel's space, that tells the points from f best."""

        def one(y: Point) -> Point:
            drift, diffusion = self._operator(f, y)
            value, slope = self._kernel(y, x)
            return drift * value + diffusion.T @ slope

        return jnp.mean(jax.vmap(one)(points), axis=0)

    def dual(self, f: Potential, batch: Points, step: Scalar | float) -> Negatives:
        """One step of Stein variational gradient descent from the data: x + η m(x) h*(x)."""
        move = lambda x: step * self.diffusion(x) @ self.direction(f, batch, x)  # noqa: E731
        return Negatives.equal(batch + jax.vmap(move)(batch))

    def _operator(self, f: Potential, x: Point) -> tuple[Point, Array]:
        """b(x) and m(x)."""
        m = self.diffusion(x)
        divergence = jnp.einsum("iji->j", jax.jacfwd(self.diffusion)(x))
        return m.T @ jax.grad(f)(x) + divergence, m

    def _kernel(self, x: Point, y: Point) -> tuple[Scalar, Point]:
        """k and its gradient in the first point."""
        scale = self.kernel.scale**2
        u = jnp.sum((x - y) ** 2) / scale
        value, slope = jax.value_and_grad(self.kernel.profile)(u)
        return value, slope * 2 * (x - y) / scale

    def _pair(self, x: Point, b_x: Point, m_x: Array, y: Point, b_y: Point, m_y: Array) -> Scalar:
        """Stein's operator applied to the kernel in both of its points."""
        scale, off = self.kernel.scale**2, x - y
        u = jnp.sum(off**2) / scale
        slope = jax.grad(self.kernel.profile)
        value, first = jax.value_and_grad(self.kernel.profile)(u)
        second = jax.grad(slope)(u)
        gradient = 2 * first * off / scale  # in x; in y it is the opposite
        a, c = m_x.T @ off, m_y.T @ off
        mixed = -2 * first * jnp.vdot(m_x, m_y) / scale - 4 * second * jnp.dot(a, c) / scale**2
        crossed = jnp.dot(b_y, m_x.T @ gradient) - jnp.dot(b_x, m_y.T @ gradient)
        return jnp.dot(b_x, b_y) * value + crossed + mixed


class SteinVariational(AbstractSampler):
    """Stein variational gradient descent from the data: `steps` of its dual in a row.

    The particles move together, so the batch is the sampler; it has no density.
    """

    discrepancy: KernelStein = KernelStein()
    steps: int = eqx.field(static=True, default=100)
    step_size: float = eqx.field(static=True, default=0.1)

    @property
    def exact(self) -> bool:
        return False

    def init(self, data: Points, key: Key) -> None:
        return None

    def draw(self, f: Potential, points: Points, state: None, key: Key) -> tuple[Particle, None]:
        step = lambda x, _: (self.discrepancy.dual(f, x, self.step_size).x, None)  # noqa: E731
        x, _ = lax.scan(step, points, length=self.steps)
        none = jnp.zeros((0,), points.dtype)
        zero = jnp.zeros((), points.dtype)
        return jax.vmap(lambda x: particle_at(f, x, none, zero))(x), None
