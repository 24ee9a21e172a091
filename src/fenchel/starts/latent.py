"""The deep latent variable model: v ~ q(v), x = φ(v) + noise."""

from collections.abc import Callable

import equinox as eqx
import jax

from fenchel.activations import silu
from fenchel.dynamics import CentredNormal
from fenchel.shapes import Key, Momentum, Point, Scalar
from fenchel.starts.start import AbstractStatelessStart


class DeepLatent(AbstractStatelessStart):
    """q0(x, v) = N(x; φ(v), Σ) q(v), with a learnt diagonal Σ.

    The latent variable *is* the first momentum, so the joint density is exact with no posterior
    to approximate; the marginal q0(x) is not available, so there is no anchor.
    """

    decoder: Callable[[Momentum], Point]
    noise: CentredNormal
    momentum: CentredNormal

    @property
    def exact(self) -> bool:
        return True

    def draw(self, point: Point, state: None, key: Key) -> tuple[Point, Momentum, Scalar]:
        v_key, x_key = jax.random.split(key)
        v, log_v = self.momentum.draw(v_key)
        noise, log_noise = self.noise.draw(x_key)
        return self.decoder(v) + noise, v, log_noise + log_v


def deep_latent(
    dim: int,
    latent: int,
    width: int = 128,
    depth: int = 2,
    noise: float = 0.3,
    precision: float = 1.0,
    *,
    key: Key,
) -> DeepLatent:
    """With an MLP as the decoder."""
    decoder = eqx.nn.MLP(latent, dim, width, depth, silu, key=key)
    return DeepLatent(decoder, CentredNormal(dim, noise**-2), CentredNormal(latent, precision))
