"""Maps that are useful, and break the density: they say so by `exact = False`."""

import equinox as eqx
import jax
import jax.numpy as jnp

from fenchel.dynamics.clip import cut
from fenchel.dynamics.particle import AbstractDynamics, Particle, kinetic_energy
from fenchel.errors import InputError
from fenchel.parameters import fixed
from fenchel.shapes import Array, Key, Potential, Scalar


class Box(AbstractDynamics):
    """Clip the point to a box.

    All that lay outside ends on the boundary, a set of measure zero, so the result has no density
    there; `log_q` is left as it was, and is right only for the particles that were inside.
    """

    low: Array
    high: Array

    def __init__(self, low: float, high: float):
        if not low < high:
            raise InputError(f"The box [{low}, {high}] is empty: give low < high.")
        self.low = fixed(low)
        self.high = fixed(high)

    @property
    def exact(self) -> bool:
        return False

    def __call__(self, f: Potential, particle: Particle, key: Key) -> Particle:
        inside = cut(particle.x, self.low, self.high)
        return particle.moved(f, inside, jnp.zeros_like(particle.f))


class Metropolis(AbstractDynamics):
    """Take the proposal of `proposal` with probability min(1, exp(H - H')), else stay.

    Exact as a Markov kernel: for plain leapfrogs, which are reversible and keep volume, clipped
    or not, the augmented model is left invariant. Not exact as an embedding: whether a particle
    was rejected is a discrete choice that `log_q`, carried along either way, does not account for.
    """

    proposal: AbstractDynamics
    precision: Array

    def __init__(self, proposal: AbstractDynamics, precision: float = 1.0):
        self.proposal = proposal
        self.precision = fixed(precision)

    @property
    def exact(self) -> bool:
        return False

    def __call__(self, f: Potential, particle: Particle, key: Key) -> Particle:
        move_key, accept_key = jax.random.split(key)
        proposal = self.proposal(f, particle, move_key)
        before, after = self._log_joint(particle), self._log_joint(proposal)
        uniform = jax.random.uniform(accept_key, dtype=after.dtype)
        # NaN compares as False, so that only plus infinity has to be refused by itself.
        accept = (jnp.log(uniform) < after - before) & (after < jnp.inf)
        # Staying flips the momentum, without which the kernel would not be reversible.
        stay = eqx.tree_at(lambda p: p.v, particle, -particle.v)
        chosen = jax.tree.map(lambda a, b: jnp.where(accept, a, b), proposal, stay)
        return eqx.tree_at(
            lambda p: (p.accepted, p.proposed),
            chosen,
            (particle.accepted + accept, particle.proposed + 1),
        )

    def _log_joint(self, particle: Particle) -> Scalar:
        return particle.f - kinetic_energy(particle.v, self.precision)
