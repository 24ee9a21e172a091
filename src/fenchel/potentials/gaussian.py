"""Gaussian potentials, f(x) = -(x - μ)' Λ (x - μ) / 2, whose partition function is known."""

import equinox as eqx
import jax.numpy as jnp

from fenchel.shapes import Array, Point, Scalar

_LOG_2PI = 1.8378770664093453


class DiagonalGaussian(eqx.Module):
    """Independent coordinates; the precisions are kept positive by their logarithm."""

    mean: Array
    log_precision: Array

    def __call__(self, x: Point) -> Scalar:
        return -0.5 * jnp.sum(jnp.exp(self.log_precision) * (x - self.mean) ** 2)

    def log_partition(self) -> Scalar:
        return 0.5 * jnp.sum(_LOG_2PI - self.log_precision)


class FullGaussian(eqx.Module):
    """Any precision matrix Λ = L L', given by its Cholesky factor.

    `factor` is unconstrained: its strict lower triangle is L's, its diagonal is the logarithm of
    L's, and what lies above the diagonal is ignored.
    """

    mean: Array
    factor: Array

    @classmethod
    def from_precision(cls, mean: Array, precision: Array) -> "FullGaussian":
        cholesky = jnp.linalg.cholesky(precision)
        log_diagonal = jnp.log(jnp.diagonal(cholesky))
        return cls(mean, jnp.tril(cholesky, -1) + jnp.diag(log_diagonal))

    @property
    def precision(self) -> Array:
        cholesky = self._cholesky()
        return cholesky @ cholesky.T

    def __call__(self, x: Point) -> Scalar:
        return -0.5 * jnp.sum((self._cholesky().T @ (x - self.mean)) ** 2)

    def log_partition(self) -> Scalar:
        return jnp.sum(0.5 * _LOG_2PI - jnp.diagonal(self.factor))

    def _cholesky(self) -> Array:
        return jnp.tril(self.factor, -1) + jnp.diag(jnp.exp(jnp.diagonal(self.factor)))
