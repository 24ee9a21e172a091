"""The restricted Boltzmann machine, its hidden units summed out."""

import equinox as eqx
import jax
import jax.numpy as jnp

from fenchel.shapes import Array, Key, Point, Scalar


class RestrictedBoltzmann(eqx.Module):
    """f(x) = b · x + sum over hidden units of log(1 + exp(c + W x)), for x of 0 and 1."""

    weights: Array
    visible: Array
    hidden: Array

    def __init__(self, dim: int, units: int, *, key: Key):
        self.weights = 0.01 * jax.random.normal(key, (units, dim))
        self.visible = jnp.zeros(dim)
        self.hidden = jnp.zeros(units)

    @property
    def states(self) -> tuple[float, ...]:
        """What a variable can be."""
        return (0.0, 1.0)

    def __call__(self, x: Point) -> Scalar:
        return jnp.dot(self.visible, x) + jnp.sum(jax.nn.softplus(self.hidden_logits(x)))

    def hidden_logits(self, x: Point) -> Array:
        """Of each hidden unit being 1, given the visible ones."""
        return self.hidden + self.weights @ x

    def visible_logits(self, h: Array) -> Array:
        """Of each visible unit being 1, given the hidden ones."""
        return self.visible + h @ self.weights
