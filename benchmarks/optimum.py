"""An estimator taken to its optimum, so that nothing but statistical error is left.

`rebuild` makes a potential of its vector of parameters, at which `start` is the first guess.
"""

import jax
import jax.numpy as jnp
from jax import lax

from fenchel.shapes import Array, Key, Scalar

NEWTON = 20  # steps
STOCHASTIC = 300


def newton(estimator, rebuild, start, data, memory, information, key) -> Array:
    """With random numbers held fixed; proposals that depend on f are drawn anew at each step."""

    def loss(w: Array) -> Scalar:
        return estimator.estimate(rebuild(w), data, memory, key).loss

    def step(_, w: Array) -> Array:
        return w - 0.8 * jnp.linalg.solve(jax.hessian(loss)(w), jax.grad(loss)(w))

    return lax.fori_loop(0, NEWTON, step, start)


def descended(estimator, rebuild, start, data, memory, information, key) -> Array:
    """The mean of the second half of a stochastic descent, preconditioned by the information.

    For what has no loss, only a noisy gradient.
    """

    def loss(w: Array, memory, key: Key):
        estimate = estimator.estimate(rebuild(w), data, memory, key)
        return estimate.loss, estimate.memory

    def step(carry, inputs):
        w, memory = carry
        index, own = inputs
        gradient, memory = jax.grad(loss, has_aux=True)(w, memory, own)
        w = w - jnp.linalg.solve(information, gradient) / (1 + index / 10) ** 0.6
        return (w, memory), w

    inputs = jnp.arange(STOCHASTIC), jax.random.split(key, STOCHASTIC)
    _, path = lax.scan(step, (start, memory), inputs)
    return jnp.mean(path[STOCHASTIC // 2 :], axis=0)
