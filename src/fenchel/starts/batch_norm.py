"""Batch normalisation, by the batch's own statistics while training and by given ones afterwards.

While a start is learnt, every draw is normalised by the batch that it is part of. A density must
not depend on who else was drawn, so a start that is handed out is *settled*: its layers then hold
the statistics of one large batch of its own latent variables.
"""

from abc import abstractmethod
from collections.abc import Callable, Sequence

import equinox as eqx
import jax
import jax.numpy as jnp
import paramax
from jax import lax

from fenchel.parameters import fixed
from fenchel.shapes import Array

BATCH = "batch"  # the axis that a sampler's `vmap` runs over
EPSILON = 1e-5

Layer = Callable[[Array], Array]


class AbstractSettling(eqx.Module):
    """A layer that behaves otherwise while it is learnt."""

    @abstractmethod
    def __call__(self, x: Array) -> Array:
        """Of one picture."""

    @abstractmethod
    def settled(self, batch: Array) -> Layer:
        """What it is from now on, by what it does to this batch of inputs."""


class BatchNorm(AbstractSettling):
    """Channels brought to mean 0 and variance 1, then to a learnt mean and size.

    The statistics are the batch's: for use under `vmap` with the axis named `BATCH`.
    """

    gain: Array
    shift: Array

    def __init__(self, channels: int):
        self.gain, self.shift = jnp.ones(channels), jnp.zeros(channels)

    def __call__(self, x: Array) -> Array:
        y = x.astype(self.gain.dtype)
        mean = lax.pmean(jnp.mean(y, axis=(0, 1)), BATCH)
        variance = lax.pmean(
            jnp.mean((y - jnp.broadcast_to(mean, y.shape)) ** 2, axis=(0, 1)), BATCH
        )
        return _normalised(x, self.gain, self.shift, mean, variance)

    def settled(self, batch: Array) -> "SettledNorm":
        y = batch.astype(self.gain.dtype)
        mean, variance = jnp.mean(y, axis=(0, 1, 2)), jnp.var(y, axis=(0, 1, 2))
        return SettledNorm(self.gain, self.shift, fixed(mean), fixed(variance))


class SettledNorm(eqx.Module):
    """The same by given statistics."""

    gain: Array
    shift: Array
    mean: Array
    variance: Array

    def __call__(self, x: Array) -> Array:
        return _normalised(x, self.gain, self.shift, self.mean, self.variance)


def settled_in_turn(layers: Sequence[Layer], batch: Array) -> tuple[Layer, ...]:
    """Layers one after the other, each settled by what those before it make of the batch."""
    done: list[Layer] = []
    for layer in layers:
        done.append(layer.settled(batch) if isinstance(layer, AbstractSettling) else layer)
        batch = jax.vmap(paramax.unwrap(done[-1]))(batch)
    return tuple(done)


def _normalised(x: Array, gain: Array, shift: Array, mean: Array, variance: Array) -> Array:
    scale = gain * lax.rsqrt(variance + EPSILON)
    mean, scale, shift = (jnp.broadcast_to(each, x.shape) for each in (mean, scale, shift))
    return ((x.astype(scale.dtype) - mean) * scale + shift).astype(x.dtype)
