"""Noise-contrastive estimation: tell the data from noise of a known density.

With f normalised (its constant is learnt, `potentials.SelfNormalised`) and ν noise points a datum,
h = exp f / (exp f + ν p_n) is the chance that a point is a datum. The dual is the mixture of data
and noise, weighted by (1 + ν) h. (The paper prints the weight without its factor, 2 for ν = 1.)
"""

from abc import abstractmethod

import equinox as eqx
import jax
import jax.numpy as jnp
from flowjax.distributions import AbstractDistribution

from fenchel.errors import InputError
from fenchel.estimators.estimator import AbstractEstimator, Estimate, Negatives
from fenchel.shapes import Array, Key, Point, Points, Potential, Scalar
from fenchel.starts import spline_coupling

_LOG_2PI = 1.8378770664093453


class AbstractNoise(eqx.Module):
    """A distribution with a known density."""

    @abstractmethod
    def draw(self, count: int, key: Key) -> Points:
        """So many points."""

    @abstractmethod
    def log_density(self, x: Point) -> Scalar:
        """Normalised."""


class GaussianNoise(AbstractNoise):
    """N(mean, factor factor')."""

    mean: Array
    factor: Array

    @classmethod
    def fitted(cls, data: Points, key: Key) -> "GaussianNoise":
        """With the data's mean and covariance."""
        covariance = jnp.atleast_2d(jnp.cov(data, rowvar=False))
        ridge = 1e-6 * jnp.trace(covariance) * jnp.eye(data.shape[1], dtype=data.dtype)
        return cls(jnp.mean(data, axis=0), jnp.linalg.cholesky(covariance + ridge))

    def draw(self, count: int, key: Key) -> Points:
        unit = jax.random.normal(key, (count, self.mean.size), self.mean.dtype)
        return self.mean[None] + unit @ self.factor.T

    def log_density(self, x: Point) -> Scalar:
        unit = jax.scipy.linalg.solve_triangular(self.factor, x - self.mean, lower=True)
        log_det = jnp.sum(jnp.log(jnp.diagonal(self.factor)))
        return -0.5 * jnp.sum(unit**2) - log_det - 0.5 * x.size * _LOG_2PI


class FlowNoise(AbstractNoise):
    """A normalising flow, itself fitted by maximum likelihood (FlowJAX's own training)."""

    distribution: AbstractDistribution

    @classmethod
    def fitted(cls, data: Points, key: Key) -> "FlowNoise":
        # Imported here, since that takes a while, and of all fits only this one needs it.
        from flowjax.train import fit_to_data

        build_key, fit_key = jax.random.split(key)
        flow = spline_coupling(data.shape[1], scale=1.5, key=build_key)
        flow, _ = fit_to_data(
            fit_key, flow, data=data, batch_size=256, max_epochs=20, show_progress=False
        )
        return cls(flow)

    def draw(self, count: int, key: Key) -> Points:
        return self.distribution.sample(key, (count,))

    def log_density(self, x: Point) -> Scalar:
        return self.distribution.log_prob(x)


class NoiseContrastive(AbstractEstimator):
    """-E_D[log h] - ν E_n[log(1 - h)].

    `noise` is fitted to the data before the run, and held fixed along it: it is the memory.
    """

    noise: type[GaussianNoise] | type[FlowNoise] = eqx.field(static=True, default=GaussianNoise)
    ratio: int = eqx.field(static=True, default=4)

    def __check_init__(self) -> None:
        if self.ratio < 1:
            raise InputError(f"{self.ratio} noise points a datum: give at least one.")

    def init(self, data: Points, key: Key) -> AbstractNoise:
        return self.noise.fitted(data, key)

    def estimate(self, f: Potential, batch: Points, memory: AbstractNoise, key: Key) -> Estimate:
        value = self.loss(f, batch, memory, key)
        return Estimate(value, memory, jnp.zeros_like(value), jnp.full_like(value, jnp.nan))

    def loss(self, f: Potential, batch: Points, noise: AbstractNoise, key: Key) -> Scalar:
        points = noise.draw(self.ratio * batch.shape[0], key)
        data_term = jnp.mean(jax.nn.softplus(-self._log_odds(f, noise, batch)))
        noise_term = self.ratio * jnp.mean(jax.nn.softplus(self._log_odds(f, noise, points)))
        return data_term + noise_term

    def dual(self, f: Potential, batch: Points, noise: AbstractNoise, key: Key) -> Negatives:
        """The mixture of data and noise, each point weighted by (1 + ν) h."""
        points = noise.draw(self.ratio * batch.shape[0], key)
        mixture = jnp.concatenate([batch, points])
        chance = jax.nn.sigmoid(self._log_odds(f, noise, mixture))
        return Negatives(mixture, (1 + self.ratio) * chance / mixture.shape[0])

    def _log_odds(self, f: Potential, noise: AbstractNoise, points: Points) -> Array:
        """log of h / (1 - h)."""
        log_noise = jax.vmap(noise.log_density)(points) + jnp.log(self.ratio)
        return jax.vmap(f)(points) - log_noise
