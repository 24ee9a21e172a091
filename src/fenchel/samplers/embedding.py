"""The dynamics embedding: a start, then dynamics driven by the potential itself."""

from abc import abstractmethod

import equinox as eqx
import jax
import paramax

from fenchel.dynamics import AbstractDynamics, Particle, particle_at, undo
from fenchel.errors import InputError
from fenchel.parameters import fixed
from fenchel.shapes import Array, Key, Point, Points, Potential, PyTree
from fenchel.starts import AbstractDensityStart, AbstractStart


class AbstractSampler(eqx.Module):
    """Draws particles from, or near, exp f.

    A sampler never holds f: the potential is an argument. One sampler can so be trained against
    f, run against its moving average, or pointed at somebody else's log density.
    """

    @property
    @abstractmethod
    def exact(self) -> bool:
        """Whether `log_q` is the exact log density of what was drawn."""

    @abstractmethod
    def init(self, data: Points, key: Key) -> PyTree:
        """What the sampler remembers from draw to draw."""

    @abstractmethod
    def draw(
        self, f: Potential, points: Points, state: PyTree, key: Key
    ) -> tuple[Particle, PyTree]:
        """As many particles as there are `points` (of the data), and the new state."""


class Embedding(AbstractSampler):
    """q(x, v): the start's draw, moved by the dynamics, with its exact joint density.

    `precision` is the λ of the last momentum; the earlier ones were retired along the way.
    """

    start: AbstractStart
    dynamics: AbstractDynamics
    precision: Array

    def __init__(self, start: AbstractStart, dynamics: AbstractDynamics, precision: float = 1.0):
        self.start = start
        self.dynamics = dynamics
        self.precision = fixed(precision)

    @property
    def exact(self) -> bool:
        return self.start.exact and self.dynamics.exact

    def init(self, data: Points, key: Key) -> PyTree:
        return self.start.init(data, key)

    def draw(
        self, f: Potential, points: Points, state: PyTree, key: Key
    ) -> tuple[Particle, PyTree]:
        sampler, f = paramax.unwrap((self, f))

        def one(point: Point, key: Key) -> Particle:
            return sampler._one(f, point, state, key)

        particles = jax.vmap(one)(points, jax.random.split(key, points.shape[0]))
        return particles, sampler.start.remember(state, particles.x)

    def log_density(self, f: Potential, points: Points, key: Key) -> tuple[Array, Array]:
        """log q at given points, and by how much each was missed by the way back.

        Only without momenta is the density of x alone known. A miss that is not small means that
        no inverse was found there.
        """
        sampler, f = paramax.unwrap((self, f))
        start = sampler.start
        if not isinstance(start, AbstractDensityStart):
            raise InputError(
                "The density at a given point needs a start that has one: a flow or a residual "
                "network, such as --start spline."
            )

        def one(x: Point, key: Key) -> tuple[Array, Array]:
            undone = undo(sampler.dynamics, f, x, key)
            return start.log_density(undone.x) - undone.log_det, undone.miss

        return jax.vmap(one)(points, jax.random.split(key, points.shape[0]))

    def _one(self, f: Potential, point: Point, state: PyTree, key: Key) -> Particle:
        start_key, move_key = jax.random.split(key)
        x, v, log_q = self.start.draw(point, state, start_key)
        particle = self.dynamics(f, particle_at(f, x, v, log_q), move_key)
        return particle.retired(self.precision)
