"""Undoing a stack of flows: from a given point back to where it started."""

import jax
import jax.numpy as jnp

from fenchel.dynamics.flow import AbstractFlow, Undone
from fenchel.dynamics.momentum import Refresh
from fenchel.dynamics.particle import AbstractDynamics
from fenchel.dynamics.stack import AbstractStack
from fenchel.errors import InputError
from fenchel.shapes import Key, Point, Potential


def undo(dynamics: AbstractDynamics, f: Potential, x: Point, key: Key) -> Undone:
    """Every layer undone, the last first, with the sum of their log-determinants."""
    undone = Undone(x, jnp.zeros((), x.dtype), jnp.zeros((), x.dtype))
    for index, layer in enumerate(reversed(flows_of(dynamics))):
        before = layer.inverse(f, undone.x, jax.random.fold_in(key, index))
        log_det = undone.log_det + before.log_det
        undone = Undone(before.x, log_det, jnp.maximum(undone.miss, before.miss))
    return undone


def flows_of(dynamics: AbstractDynamics) -> list[AbstractFlow]:
    """The flows of a stack in their order; an error where anything in it cannot be undone."""
    if isinstance(dynamics, AbstractFlow):
        return [dynamics]
    layers = _layers(dynamics)
    if layers is None:
        raise InputError(
            f"The density at a given point needs dynamics without momenta, and {_name(dynamics)} "
            "has them: only the joint density of point and momenta is known. Use deterministic, "
            "continuous or generalized-continuous dynamics."
        )
    return [flow for layer in layers for flow in flows_of(layer)]


def _layers(dynamics: AbstractDynamics) -> list[AbstractDynamics] | None:
    if isinstance(dynamics, AbstractStack):
        return dynamics.in_order()
    if isinstance(dynamics, Refresh) and dynamics.momentum.scale.size == 0:
        return []  # a momentum of no dimensions: nothing happens
    return None


def _name(dynamics: AbstractDynamics) -> str:
    return type(dynamics).__name__
