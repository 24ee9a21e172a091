"""The dynamics embedding: a start, then dynamics driven by the potential itself."""

from abc import abstractmethod

import equinox as eqx
import jax
import jax.numpy as jnp
import paramax

from fenchel.dynamics import AbstractDynamics, Particle, follow, particle_at, undo, unroll
from fenchel.errors import InputError
from fenchel.parameters import fixed
from fenchel.shapes import Array, Key, Point, Points, Potential, PyTree
from fenchel.starts import BATCH, AbstractDensityStart, AbstractStart


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

    def reordered(self, state: PyTree, key: Key) -> PyTree:
        """The state in another order, for samplers that take up what they remember in turn."""
        return state


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

        own, shared = _copied(sampler.dynamics, len(points))

        def one(point: Point, start_key: Key, move_key: Key, own: AbstractDynamics) -> Particle:
            particle = sampler._first(f, point, state, start_key)
            dynamics = eqx.combine(own, shared)
            return dynamics(f, particle, move_key).retired(sampler.precision)

        keys = _keys(key, points)
        particles = jax.vmap(one, axis_name=BATCH)(points, *keys, own)
        return particles, sampler.start.remember(state, particles.x)

    def reordered(self, state: PyTree, key: Key) -> PyTree:
        return self.start.reordered(state, key)

    def settled(self, key: Key) -> "Embedding":
        """As it is handed out: no draw depends on the others of its batch."""
        return eqx.tree_at(lambda s: s.start, self, self.start.settled(key))

    def trace(self, f: Potential, points: Points, state: PyTree, key: Key) -> Array:
        """Where the particles of `draw` with the same arguments were: (steps + 1, n, d).

        First as the start drew them, then after each single step of the dynamics. Steps of one
        kind are compiled once, so that long chains can be followed too: not for use within `jit`.
        """
        sampler, f = paramax.unwrap((self, f))
        start_keys, move_keys = _keys(key, points)
        particles = _begin(sampler, f, points, state, start_keys)
        step_keys = jax.vmap(lambda key: [own for _, own in unroll(sampler.dynamics, key)])
        steps = [step for step, _ in unroll(sampler.dynamics, key)]
        frames = [particles.x[None]]
        for step, own in zip(steps, step_keys(move_keys), strict=True):
            particles, passed = _follow(step, f, particles, own)
            frames.append(jnp.swapaxes(passed, 0, 1))
        return jnp.concatenate(frames)

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

    def _first(self, f: Potential, point: Point, state: PyTree, key: Key) -> Particle:
        """As the start draws it."""
        x, v, log_q = self.start.draw(point, state, key)
        return particle_at(f, x, v, log_q)


def _keys(key: Key, points: Points) -> tuple[Key, Key]:
    """For every point, that of its start and that of what moves it."""
    start_keys, move_keys = jax.random.split(key, (2, points.shape[0]))
    return start_keys, move_keys


def _copied(dynamics: AbstractDynamics, count: int) -> tuple[PyTree, PyTree]:
    """The dynamics' vectors and numbers, once for every point, and all that they share.

    What pulls at a step size is so added up along each way before it is over points: by one sum in
    all, and not by one a step. (Matrices are shared, or else products with them would be many; so
    are step sizes of every step's own, of which there is nothing to add up along the way.)
    """
    own, shared = eqx.partition(dynamics, lambda x: eqx.is_inexact_array(x) and x.ndim <= 1)
    copies = lambda leaf: jnp.broadcast_to(leaf, (count, *leaf.shape))  # noqa: E731
    return jax.tree.map(copies, own), shared


@eqx.filter_jit
def _begin(sampler: Embedding, f: Potential, points: Points, state: PyTree, keys: Key):
    first = jax.vmap(lambda point, key: sampler._first(f, point, state, key), axis_name=BATCH)
    return first(points, keys)


@eqx.filter_jit
def _follow(step: AbstractDynamics, f: Potential, particles: Particle, keys: Key):
    return jax.vmap(lambda particle, key: follow(step, f, particle, key))(particles, keys)
