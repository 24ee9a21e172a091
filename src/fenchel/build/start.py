"""q0(x, v) by its name."""

from collections.abc import Callable
from typing import Any

import jax.numpy as jnp

from fenchel.choices import choose
from fenchel.config import Config, StartConfig
from fenchel.data import HALVES, half_mask
from fenchel.dynamics import SMALL, CentredNormal, ExactLogDet, Given, TaylorLogDet
from fenchel.errors import InputError
from fenchel.parameters import given
from fenchel.picture_parts import GENERATORS, is_of_pictures, picture_shape, picture_start
from fenchel.shapes import Key
from fenchel.starts import (
    FLOWS,
    AbstractFresh,
    AbstractStart,
    Empirical,
    Flow,
    Noise,
    Occluded,
    Replay,
)
from fenchel.starts import deep_latent as make_deep_latent
from fenchel.starts import residual as make_residual

NOISE = Noise()


def named_start(
    config: Config, dim: int, latent: int, precision: float, scale: float, key: Key
) -> AbstractStart:
    """Of a table's columns, or of pictures."""
    if config.start.kind not in GENERATORS:
        noise = Noise(box=config.dynamics.box)
        aside = _aside(config, noise)
        return build_start(config.start, dim, latent, precision, scale, key, noise, aside)
    momentum = _first_momentum(config.start, latent, precision)
    return picture_start(config.start, picture_shape(config), momentum, key)


def _aside(config: Config, noise: Noise) -> AbstractFresh | None:
    """How every other chain of a replay buffer begins, where not as noise."""
    if not choose({"noise": False, "occluded": True}, config.start.fresh, "beginning of a chain"):
        return None
    if not is_of_pictures(config):
        raise InputError(
            "start.fresh is 'occluded', which hides halves of pictures, and these data are a "
            "table: set it to 'noise'."
        )
    masks = [half_mask(half, picture_shape(config)).ravel() for half in HALVES]
    return Occluded(noise, jnp.stack(masks))


def _first_momentum(config: StartConfig, latent: int, precision: float) -> CentredNormal:
    """Learnt from the model's own, or of a given size."""
    if config.momentum is None:
        return CentredNormal(latent, precision)
    return given(CentredNormal(latent, config.momentum**-2))


def build_start(
    config: StartConfig,
    dim: int,
    latent: int,
    precision: float,
    scale: float,
    key: Key,
    fresh: AbstractFresh = NOISE,
    aside: AbstractFresh | None = None,
) -> AbstractStart:
    """`scale` is the width of the potential's base measure: flows begin there. A replay buffer's
    chains begin as `fresh` says, and every other one as `aside` does, where that is given."""
    momentum = _first_momentum(config, latent, precision)
    if config.kind == "deep-latent" and not latent:
        raise InputError(
            "A deep-latent start makes its point from the momentum, and these dynamics have none: "
            "take a flow, such as --start spline, or begin the dynamics with hmc+."
        )

    layers: dict[str, Any] = {} if config.layers is None else {"layers": config.layers}
    sizes = layers | {"width": config.width, "depth": config.depth}

    def flow(kind: str) -> AbstractStart:
        own = layers if kind == "planar" else sizes
        return Flow(FLOWS[kind](dim, scale=scale, key=key, **own), momentum)

    def residual() -> AbstractStart:
        # A layer's Jacobian is not symmetric: Taylor's expansion does not mind, Chebyshev's may.
        log_det = ExactLogDet() if dim <= SMALL else TaylorLogDet(radius=Given(1.0))
        return make_residual(dim, momentum, scale=scale, log_det=log_det, key=key, **sizes)

    kinds: dict[str, Callable[[], AbstractStart]] = {
        **{kind: (lambda kind=kind: flow(kind)) for kind in FLOWS},  # type: ignore[misc]
        "deep-latent": lambda: make_deep_latent(
            dim, latent, config.width, config.depth, precision=precision, key=key
        ),
        "residual": residual,
        "empirical": lambda: Empirical(momentum),
        "replay": lambda: Replay(momentum, config.capacity, config.restart, fresh, aside),
    }
    return choose(kinds, config.kind, "start")()
