"""A base measure under any potential: f(x) = g(x) + log p0(x).

A net alone need not have a finite integral, and then there is no maximum likelihood to find: f
runs away from its sampler. On a base measure whose tails beat the net's growth, exp f is
integrable whatever the net learns.
"""

import equinox as eqx
import jax.numpy as jnp

from fenchel.shapes import Point, Potential, Scalar


class GaussianBase(eqx.Module):
    """The normalised log density of N(0, scale² I); not learnt."""

    scale: float = eqx.field(static=True, default=1.5)

    def __call__(self, x: Point) -> Scalar:
        z = x / self.scale
        return -0.5 * jnp.sum(z**2) - x.size * (jnp.log(self.scale) + 0.5 * jnp.log(2 * jnp.pi))


class OnBase(eqx.Module):
    """`potential` on the base measure `base` (a log density, normalised or not)."""

    potential: Potential
    base: Potential = GaussianBase()

    def __call__(self, x: Point) -> Scalar:
        return self.potential(x) + self.base(x)


def base_scale(potential: Potential) -> float | None:
    """The width of a Gaussian base measure under f, where there is one."""
    base = potential.base if isinstance(potential, OnBase) else None
    return base.scale if isinstance(base, GaussianBase) else None
