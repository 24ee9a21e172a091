"""The deep latent variable model of pictures: z ~ N(0, I), then pixels around φ(z)."""

import equinox as eqx
import jax
import jax.numpy as jnp

from fenchel.dynamics import CentredNormal
from fenchel.shapes import Array, Key, Momentum, Point, Scalar
from fenchel.starts.generator import Generator
from fenchel.starts.start import AbstractStatelessStart

REFERENCE = 1_024  # latent variables whose statistics a settled start keeps


class DeepPicture(AbstractStatelessStart):
    """q0(x, z, v) = N(x; φ(z), σ(z)²) N(z; 0, I) q(v).

    The latent variable is not the momentum, which has a dimension a pixel: it is an auxiliary
    variable of the model as well, with the same N(0, I), so that its density cancels in every
    weight and is left out on both sides. What is left is exact: the entropy of the pixels given z,
    which is a lower bound on theirs.

    σ(z) is at most `largest`; in the paper 1e-3.
    """

    generator: Generator
    momentum: CentredNormal
    latent: int = eqx.field(static=True)
    largest: float = eqx.field(static=True, default=1e-3)

    @property
    def exact(self) -> bool:
        return True

    def draw(self, point: Point, state: None, key: Key) -> tuple[Point, Momentum, Scalar]:
        z_key, x_key, v_key = jax.random.split(key, 3)
        mean, spread = self.generator(jax.random.normal(z_key, (self.latent,), point.dtype))
        deviation = self.largest * jax.nn.sigmoid(spread)
        noise = jax.random.normal(x_key, mean.shape, mean.dtype)
        v, log_v = self.momentum.draw(v_key)
        return mean + deviation * noise, v, _log_normal(noise, deviation) + log_v

    def settled(self, key: Key) -> "DeepPicture":
        z = jax.random.normal(key, (REFERENCE, self.latent))
        # As one program: layer by layer, every operation would compile one of its own.
        generator = eqx.filter_jit(Generator.settled)(self.generator, z)
        return eqx.tree_at(lambda start: start.generator, self, generator)


def _log_normal(noise: Array, deviation: Array) -> Scalar:
    return -jnp.sum(0.5 * noise**2 + 0.5 * jnp.log(2 * jnp.pi) + jnp.log(deviation))
