"""Normalising flows, through FlowJAX."""

from collections.abc import Callable
from typing import cast

import equinox as eqx
import jax
import jax.numpy as jnp
from flowjax import flows
from flowjax.bijections import Affine, Chain, RationalQuadraticSpline, Scan, Vmap
from flowjax.distributions import AbstractDistribution, StandardNormal, Transformed

from fenchel.activations import silu
from fenchel.dynamics import CentredNormal
from fenchel.parameters import given
from fenchel.shapes import Key, Momentum, Point, Scalar
from fenchel.starts.start import AbstractDensityStart
from fenchel.starts.unrolled import Unrolled


class Flow(AbstractDensityStart):
    """q0(x, v) = q(x) q(v), with any distribution of FlowJAX for q(x)."""

    distribution: AbstractDistribution
    momentum: CentredNormal

    @property
    def exact(self) -> bool:
        return True

    def draw(self, point: Point, state: None, key: Key) -> tuple[Point, Momentum, Scalar]:
        x_key, v_key = jax.random.split(key)
        x, log_q = self.distribution.sample_and_log_prob(x_key)
        v, log_v = self.momentum.draw(v_key)
        return x, v, log_q + log_v

    def log_density(self, x: Point) -> Scalar:
        return self.distribution.log_prob(x)


def planar(dim: int, layers: int = 10, scale: float = 1.0, *, key: Key) -> AbstractDistribution:
    """Planar layers, as in the paper, with a leaky ReLU, which makes them invertible."""
    flow = flows.planar_flow(
        key, base_dist=_normal(dim), flow_layers=layers, invert=False, negative_slope=0.2
    )
    return _scaled(Transformed(flow.base_dist, Unrolled(cast(Scan, flow.bijection))), scale)


def affine_coupling(
    dim: int,
    layers: int = 8,
    scale: float = 1.0,
    width: int = 64,
    depth: int = 2,
    *,
    key: Key,
) -> AbstractDistribution:
    """Affine couplings: one half of the coordinates moves the other, and the other way round."""
    if dim == 1:
        return _scaled(Transformed(_normal(1), Affine(jnp.zeros(1), jnp.ones(1))), scale)
    return _scaled(_coupling(dim, None, layers, width, depth, key), scale)


def spline_coupling(
    dim: int,
    layers: int = 4,
    scale: float = 1.0,
    width: int = 64,
    depth: int = 2,
    *,
    key: Key,
) -> AbstractDistribution:
    """Couplings by rational-quadratic splines, the identity outside of [-4, 4] times `scale`.

    With `scale` that of the potential's base measure, the start's tails are the model's own tails,
    and the importance weights out there stay bounded.
    """
    spline = RationalQuadraticSpline(knots=10, interval=4)
    if dim == 1:
        knots = eqx.filter_vmap(lambda _: spline, axis_size=1)(None)
        return _scaled(Transformed(_normal(1), Vmap(knots, in_axes=eqx.if_array(0))), scale)
    return _scaled(_coupling(dim, spline, layers, width, depth, key), scale)


FLOWS: dict[str, Callable[..., AbstractDistribution]] = {
    "planar": planar,
    "coupling": affine_coupling,
    "spline": spline_coupling,
}


def _coupling(dim: int, transformer, layers: int, width: int, depth: int, key: Key) -> Transformed:
    return flows.coupling_flow(
        key,
        base_dist=_normal(dim),
        transformer=transformer,
        flow_layers=layers,
        nn_width=width,
        nn_depth=depth,
        nn_activation=silu,
        invert=False,
    )


def _scaled(flow: Transformed, scale: float) -> Transformed:
    """The flow, then a multiplication that is not learnt."""
    dim = flow.shape[0]
    stretch = given(Affine(jnp.zeros(dim), jnp.full(dim, scale)))
    return Transformed(flow.base_dist, Chain([flow.bijection, stretch]))


def _normal(dim: int) -> AbstractDistribution:
    return StandardNormal((dim,))  # type: ignore[call-arg]  # its __init__ is hidden from mypy
