"""A residual network as a start: Gaussian noise, then layers x + ε φ(x) that can be undone."""

from itertools import pairwise

import equinox as eqx
import jax
import jax.numpy as jnp
from jax import lax

from fenchel.dynamics import AbstractLogDet, CentredNormal, ExactLogDet, step_back
from fenchel.dynamics.radius import dense_radius
from fenchel.errors import InputError
from fenchel.potentials import GaussianBase
from fenchel.shapes import Array, Key, Momentum, Point, Scalar
from fenchel.stacking import stack
from fenchel.starts.start import AbstractDensityStart


class Contraction(eqx.Module):
    """φ: a net with tanh that never stretches a distance.

    Each weight matrix is divided by an upper bound on its norm where that is above 1, and tanh does
    not stretch either. So x + ε φ(x) with ε < 1 can be undone, whatever is learnt.
    """

    weights: tuple[Array, ...]
    biases: tuple[Array, ...]

    def __init__(self, dim: int, width: int, depth: int, *, key: Key):
        sizes = [dim, *[width] * depth, dim]
        keys = jax.random.split(key, len(sizes) - 1)
        self.weights = tuple(
            jax.random.normal(k, (out, into)) / into**0.5
            for k, (into, out) in zip(keys, pairwise(sizes), strict=True)
        )
        self.biases = tuple(jnp.zeros(size) for size in sizes[1:])

    def __call__(self, x: Point) -> Point:
        for index, (weight, bias) in enumerate(zip(self.weights, self.biases, strict=True)):
            x = jnp.tanh(x) if index else x
            x = weight / jnp.maximum(1.0, _norm_bound(weight)) @ x + bias
        return x


def _norm_bound(weight: Array) -> Scalar:
    """At most d^(1/32) above the largest singular value, d the smaller of the two sizes."""
    square = weight.T @ weight if weight.shape[1] < weight.shape[0] else weight @ weight.T
    return jnp.sqrt(dense_radius(square))


class Residual(AbstractDensityStart):
    """x_{t+1} = x_t + ε φ_t(x_t), from x_0 ~ N(0, scale² I), each φ_t its own `Contraction`.

    The log-determinants are by the same objects as those of gradient steps.
    """

    layers: Contraction  # its arrays have the layers as their first axis
    momentum: CentredNormal
    scale: float = eqx.field(static=True, default=1.0)
    step: float = eqx.field(static=True, default=0.9)
    log_det: AbstractLogDet = ExactLogDet()

    def __check_init__(self) -> None:
        if not 0 < self.step < 1:
            raise InputError(f"A residual start's step is {self.step}: give one between 0 and 1.")

    @property
    def exact(self) -> bool:
        return self.log_det.exact

    def draw(self, point: Point, state: None, key: Key) -> tuple[Point, Momentum, Scalar]:
        noise_key, layer_key, v_key = jax.random.split(key, 3)
        noise = jax.random.normal(noise_key, point.shape, point.dtype)
        begin = self.scale * noise, GaussianBase(self.scale)(self.scale * noise)

        def forward(carry, inputs):
            x, log_q = carry
            layer, key = inputs
            done = self.log_det(lambda x: self.step * layer(x), x, jnp.asarray(self.step), key)
            return (x + done.value, log_q - done.log_det), None

        (x, log_q), _ = lax.scan(forward, begin, (self.layers, self._keys(layer_key)))
        v, log_v = self.momentum.draw(v_key)
        return x, v, log_q + log_v

    def log_density(self, x: Point) -> Scalar:
        """By undoing the layers; where their log-determinants are noisy, so is this."""

        def backward(carry, inputs):
            x, log_det = carry
            layer, key = inputs
            field = lambda x: self.step * layer(x)  # noqa: E731
            before, _ = step_back(field, x)
            done = self.log_det(field, before, jnp.asarray(self.step), key)
            return (before, log_det + done.log_det), None

        begin = x, jnp.zeros((), x.dtype)
        keys = self._keys(jax.random.key(0))
        (noise, log_det), _ = lax.scan(backward, begin, (self.layers, keys), reverse=True)
        return GaussianBase(self.scale)(noise) - log_det

    def _keys(self, key: Key) -> Array:
        return jax.random.split(key, self.layers.biases[0].shape[0])


def residual(
    dim: int,
    momentum: CentredNormal,
    layers: int = 8,
    scale: float = 1.0,
    width: int = 64,
    depth: int = 2,
    *,
    log_det: AbstractLogDet | None = None,
    key: Key,
) -> Residual:
    """With so many layers of this width and depth."""
    nets = [Contraction(dim, width, depth, key=k) for k in jax.random.split(key, layers)]
    return Residual(stack(nets), momentum, scale, log_det=log_det or ExactLogDet())
