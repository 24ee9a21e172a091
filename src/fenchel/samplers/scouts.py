"""Scouts: points drawn far and wide, for the parts of space where a sampler hardly goes.

Importance weights know f where particles are. Between modes and far out there are none, nothing
there holds f down, and a net that extrapolates upwards can give exp f a mode of its own that its
sampler never meets: every bound by weights still looks fine, and the model is wrong.

So space is divided. A point belongs to whichever of the two is denser there, the sampler's start
or the scouts; Z over the start's part is estimated by the particles that end in it, and over the
scouts' part by the scouts. The sum is unbiased whatever the division, and scouts' weights are
bounded wherever their density falls off more slowly than exp f.
"""

import equinox as eqx
import jax
import jax.numpy as jnp
from jax import lax
from jax.scipy.special import gammaln

from fenchel.dynamics import Particle, particle_at
from fenchel.shapes import Array, Key, Point, Points, Potential, Scalar
from fenchel.starts import AbstractDensityStart

FREEDOM = 4  # degrees of it: tails far heavier than a Gaussian's, and draws still within reach
NEVER = 6.9  # nats, by which a start is less dense than scouts where it hardly ever is
NOWHERE = 1e9  # nats, by which a particle counts for nothing; infinities would turn into NaN


class Scouts(eqx.Module):
    """Draws from Student's t distribution around the origin, as many as a `share` of a batch.

    `scale` is the width of the base measure that f stands on, whose tails theirs outlast.
    """

    scale: float = eqx.field(static=True, default=1.5)
    share: float = eqx.field(static=True, default=0.25)

    def draw(self, n: int, dim: int, key: Key) -> Points:
        normal_key, uniform_key = jax.random.split(key)
        # A chi-squared variable of four degrees of freedom, without rejections.
        tiny = jnp.finfo(jnp.result_type(float)).tiny
        uniforms = jax.random.uniform(uniform_key, (2, n), minval=tiny)
        chi_squared = -2 * jnp.sum(jnp.log(uniforms), axis=0)
        directions = jax.random.normal(normal_key, (n, dim))
        return self.scale * directions * jnp.sqrt(FREEDOM / chi_squared)[:, None]

    def log_density(self, x: Point) -> Scalar:
        dim, half = x.size, 0.5 * (FREEDOM + x.size)
        constant = gammaln(half) - gammaln(FREEDOM / 2) - 0.5 * dim * jnp.log(FREEDOM * jnp.pi)
        square = jnp.sum((x / self.scale) ** 2)
        return constant - dim * jnp.log(self.scale) - half * jnp.log1p(square / FREEDOM)

    def beside(
        self, particles: Particle, f: Potential, start: AbstractDensityStart, key: Key
    ) -> Particle:
        """The particles, and scouts after them, as one batch whose mean weight estimates Z.

        Each counts in its own part of space only.
        """
        n = particles.f.size
        scouts = self._sent(max(1, round(self.share * n)), particles, f, key)
        total = n + scouts.f.size
        theirs = jax.vmap(lambda x: self.owned(start, x))
        return jax.tree.map(
            lambda ours, others: jnp.concatenate([ours, others]),
            _counting(particles, ~theirs(particles.x), total / n),
            _counting(scouts, theirs(scouts.x), total / scouts.f.size),
        )

    def beyond(
        self, f: Potential, start: AbstractDensityStart, n: int, dim: int, key: Key
    ) -> Array:
        """log weights of n scouts, whose mean is exp f's integral where the start never goes."""

        def log_weight(x: Point) -> Array:
            return jnp.where(self.afar(start, x), f(x) - self.log_density(x), -jnp.inf)

        return jax.vmap(log_weight)(self.draw(n, dim, key))

    def afar(self, start: AbstractDensityStart, x: Point) -> Array:
        """Whether x is where the start never goes: a thousand times less dense than the scouts."""
        return self.owned(start, x, NEVER)

    def owned(self, start: AbstractDensityStart, x: Point, margin: float = 0.0) -> Array:
        """Whether the scouts are denser at x than the start, by so many nats."""
        x = lax.stop_gradient(x)
        return start.log_density(x) < self.log_density(x) - margin

    def _sent(self, count: int, particles: Particle, f: Potential, key: Key) -> Particle:
        """As particles that never moved, and have no momentum to pay for."""
        x = self.draw(count, particles.x.shape[1], key).astype(particles.x.dtype)
        still = jnp.zeros_like(particles.v[0])
        return jax.vmap(lambda x: particle_at(f, x, still, self.log_density(x)))(x)


def _counting(particles: Particle, here: Array, factor: float) -> Particle:
    """With weights so many times as large where they count, and none elsewhere."""
    log_q = jnp.where(here, particles.log_q - jnp.log(factor), NOWHERE)
    return eqx.tree_at(lambda p: p.log_q, particles, log_q)
