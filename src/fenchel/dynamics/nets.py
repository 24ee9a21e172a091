"""The learnable S_v, S_x, g_v and g_x of the generalized leapfrog, and h of the generalized flow.

Each starts as the plain one (S = 0; g the identity, or a projection where the momentum has its own
dimension) plus a net whose last layer is zero, so that training starts from HMC.
"""

import equinox as eqx
import jax
import jax.numpy as jnp

from fenchel.activations import silu
from fenchel.shapes import Array, Key, Momentum, Point, Scalar


def _quiet_mlp(inputs: int, outputs: int, width: int, key: Key) -> eqx.nn.MLP:
    """A two-layer net whose output starts at zero."""
    net = eqx.nn.MLP(inputs, outputs, width, 2, silu, key=key)
    last = lambda net: (net.layers[-1].weight, net.layers[-1].bias)  # noqa: E731
    return eqx.tree_at(last, net, jax.tree.map(jnp.zeros_like, last(net)))


def _projection(dim: int, latent: int, key: Key) -> Array:
    """From points to momenta: the identity where it fits, else orthonormal rows or columns."""
    if dim == latent:
        return jnp.eye(dim)
    return jax.random.orthogonal(key, max(dim, latent))[:latent, :dim]


class ScoreScale(eqx.Module):
    """S_v(∇f, x), bounded by ±`bound` so that no single step can blow the momentum up."""

    net: eqx.nn.MLP
    bound: float = eqx.field(static=True)

    def __init__(self, dim: int, latent: int, width: int = 32, bound: float = 1.0, *, key: Key):
        self.net = _quiet_mlp(2 * dim, latent, width, key)
        self.bound = bound

    def __call__(self, score: Point, x: Point) -> Momentum:
        return self.bound * jnp.tanh(self.net(jnp.concatenate([score, x])))


class ScoreForce(eqx.Module):
    """g_v(∇f, x) = P ∇f + net(∇f, x)."""

    matrix: Array
    net: eqx.nn.MLP

    def __init__(self, dim: int, latent: int, width: int = 32, *, key: Key):
        matrix_key, net_key = jax.random.split(key)
        self.matrix = _projection(dim, latent, matrix_key)
        self.net = _quiet_mlp(2 * dim, latent, width, net_key)

    def __call__(self, score: Point, x: Point) -> Momentum:
        return self.matrix @ score + self.net(jnp.concatenate([score, x]))


class MomentumScale(eqx.Module):
    """S_x(v), bounded like S_v."""

    net: eqx.nn.MLP
    bound: float = eqx.field(static=True)

    def __init__(self, dim: int, latent: int, width: int = 32, bound: float = 1.0, *, key: Key):
        self.net = _quiet_mlp(latent, dim, width, key)
        self.bound = bound

    def __call__(self, v: Momentum) -> Point:
        return self.bound * jnp.tanh(self.net(v))


class MomentumVelocity(eqx.Module):
    """g_x(v) = P' v + net(v).

    Made with the same key as g_v it starts from the same P, so that the two projections begin as
    each other's transpose, as in a Hamiltonian system.
    """

    matrix: Array
    net: eqx.nn.MLP

    def __init__(self, dim: int, latent: int, width: int = 32, *, key: Key):
        matrix_key, net_key = jax.random.split(key)
        self.matrix = _projection(dim, latent, matrix_key).T
        self.net = _quiet_mlp(latent, dim, width, net_key)

    def __call__(self, v: Momentum) -> Point:
        return self.matrix @ v + self.net(v)


class FlowVelocity(eqx.Module):
    """h(∇f, f, x) = ∇f + net(∇f, f, x).

    The net sees scores and values through asinh: both may be large, and a flow needs a field that
    is smooth on the scale of its steps.
    """

    net: eqx.nn.MLP

    def __init__(self, dim: int, width: int = 32, *, key: Key):
        self.net = _quiet_mlp(2 * dim + 1, dim, width, key)

    def __call__(self, score: Point, value: Scalar, x: Point) -> Point:
        return score + self.net(jnp.concatenate([jnp.arcsinh(score), jnp.arcsinh(value)[None], x]))
