"""A potential that learns its own normaliser: f(x) - c, for estimators that can find c."""

import equinox as eqx
import jax.numpy as jnp

from fenchel.shapes import Array, Point, Potential, Scalar


class SelfNormalised(eqx.Module):
    """`potential` minus a learnt constant, which tends to log Z in noise-contrastive estimation."""

    potential: Potential
    log_normaliser: Array

    def __init__(self, potential: Potential, log_normaliser: float = 0.0):
        self.potential = potential
        self.log_normaliser = jnp.asarray(log_normaliser, jnp.result_type(float))

    def __call__(self, x: Point) -> Scalar:
        return self.potential(x) - self.log_normaliser
