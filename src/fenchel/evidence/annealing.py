"""Annealed importance sampling: a long path from a reference to the model, one way and the other.

The path's stations are log densities (1 - β) log q + β f, with β from 0 to 1. A chain that begins
at the reference q and is moved by Hamiltonian Monte Carlo at each station has a weight whose mean
is Z; a chain that begins at the model and goes back along the path has one whose logarithm is, on
average, at least log Z. Between the two is the truth (Neal 2001; Grosse, Ancha and Roy 2016).

The stations and their step sizes are found in pilot runs and then held, so that the weights of
the runs that count are exact.
"""

from abc import abstractmethod
from collections.abc import Callable
from typing import NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import paramax
from jax import lax

from fenchel.errors import InputError
from fenchel.shapes import Array, Key, Point, Points, Potential, Scalar
from fenchel.starts import AbstractDensityStart

PILOTS = 3
ACCEPTANCE = 0.8
FIRST_STEP = 0.3
SHORTEST = 0.2  # of a station's step size, from which on each trajectory has its own
CROWDED = 0.1  # no two neighbouring stations are farther apart than 1 / this times the average


def check_counts(account: eqx.Module, least: dict[str, int]) -> None:
    """Raise an InputError unless these fields are whole numbers, and large enough."""
    for name, lowest in least.items():
        value = getattr(account, name)
        if not isinstance(value, int) or value < lowest:
            raise InputError(
                f"{type(account).__name__} with {name}={value!r}: give a whole number, at least "
                f"{lowest}."
            )


class AbstractReference(eqx.Module):
    """A distribution that can be drawn from and whose normalised log density is known."""

    @abstractmethod
    def draw(self, key: Key) -> Point: ...

    @abstractmethod
    def log_density(self, x: Point) -> Scalar: ...


class StartReference(AbstractReference):
    """Where an embedding's particles come from."""

    start: AbstractDensityStart

    def draw(self, key: Key) -> Point:
        nowhere = jnp.zeros(())  # a start with a density does not look at the data
        return self.start.draw(nowhere, None, key)[0]

    def log_density(self, x: Point) -> Scalar:
        return self.start.log_density(x)


class GaussianReference(AbstractReference):
    """N(mean, L L')."""

    mean: Point
    factor: Array

    @classmethod
    def around(cls, points: Points, wider: float = 1.5) -> "GaussianReference":
        """As wide as the points and somewhat wider, so that it covers their tails."""
        dim = points.shape[1]
        covariance = jnp.cov(points, rowvar=False).reshape(dim, dim)
        spread = covariance + 1e-4 * jnp.trace(covariance) / dim * jnp.eye(dim)
        return cls(jnp.mean(points, axis=0), wider * jnp.linalg.cholesky(spread))

    def draw(self, key: Key) -> Point:
        return self.mean + self.factor @ jax.random.normal(key, self.mean.shape)

    def log_density(self, x: Point) -> Scalar:
        z = jax.scipy.linalg.solve_triangular(self.factor, x - self.mean, lower=True)
        log_det = jnp.sum(jnp.log(jnp.diag(self.factor)))
        return -0.5 * jnp.sum(z**2) - log_det - 0.5 * z.size * jnp.log(2 * jnp.pi)


class Stations(NamedTuple):
    """Where a path stops, and the step sizes there."""

    inverse_temperatures: Array  # from 0 to 1, one more than there are steps
    step_sizes: Array


class Annealing(eqx.Module):
    """How a path is walked: with so many chains, over so many stations, by so many leapfrogs each.

    The bracket narrows as one over the number of stations.
    """

    chains: int = eqx.field(static=True, default=1_024)
    stations: int = eqx.field(static=True, default=200)
    leapfrogs: int = eqx.field(static=True, default=5)

    def __check_init__(self) -> None:
        check_counts(self, {"chains": 64, "stations": 2, "leapfrogs": 1})

    @eqx.filter_jit
    def prepare(self, f: Potential, reference: AbstractReference, key: Key) -> Stations:
        """Stations for which the chains' weights vary as little as they can.

        Between two stations a weight's logarithm varies by their distance in β times the spread
        of f - log q there: each pilot run measures that spread, and the next spaces its stations
        so that it adds up to the same between any two.
        """
        f, reference = paramax.unwrap((f, reference))
        betas = jnp.linspace(0.0, 1.0, self.stations + 1) ** 2
        # More of them near 0, where nothing is known yet of how far q is from f.
        stations = Stations(betas, jnp.full(self.stations, FIRST_STEP))

        def pilot(stations: Stations, key: Key) -> tuple[Stations, None]:
            return self._pilot(f, reference, stations, key), None

        return lax.scan(pilot, stations, jax.random.split(key, PILOTS))[0]

    @eqx.filter_jit
    def forward(
        self, f: Potential, reference: AbstractReference, stations: Stations, key: Key
    ) -> tuple[Array, Points]:
        """Log weights of chains from the reference, and the points where they arrive."""
        f, reference = paramax.unwrap((f, reference))
        start_key, move_key = jax.random.split(key)
        x = jax.vmap(reference.draw)(jax.random.split(start_key, self.chains))

        def step(x: Points, inputs: tuple[Array, ...]) -> tuple[Points, Array]:
            before, beta, size, step_key = inputs
            gained = (beta - before) * jax.vmap(_excess(f, reference))(x)
            return self._moved(f, reference, x, beta, size, step_key)[0], gained

        x, gained = lax.scan(step, x, self._inputs(stations, move_key))
        return jnp.sum(gained, axis=0), x

    @eqx.filter_jit
    def settled(
        self, f: Potential, reference: AbstractReference, stations: Stations, x: Points, key: Key
    ) -> Points:
        """Points after as many moves on the model as a path has stations: long-run samples of it.

        They are spread within the model's modes, with as many in each as there were before.
        """
        f, reference = paramax.unwrap((f, reference))
        size = stations.step_sizes[-1]

        def step(x: Points, key: Key) -> tuple[Points, None]:
            return self._moved(f, reference, x, jnp.ones(()), size, key)[0], None

        return lax.scan(step, x, jax.random.split(key, self.stations))[0]

    @eqx.filter_jit
    def reverse(
        self, f: Potential, reference: AbstractReference, stations: Stations, x: Points, key: Key
    ) -> Array:
        """Log weights of chains that begin at points of the model and go back to the reference."""
        f, reference = paramax.unwrap((f, reference))

        def step(x: Points, inputs: tuple[Array, ...]) -> tuple[Points, Array]:
            before, beta, size, step_key = inputs
            x = self._moved(f, reference, x, beta, size, step_key)[0]
            return x, (beta - before) * jax.vmap(_excess(f, reference))(x)

        return jnp.sum(lax.scan(step, x, self._inputs(stations, key), reverse=True)[1], axis=0)

    def _pilot(
        self, f: Potential, reference: AbstractReference, stations: Stations, key: Key
    ) -> Stations:
        start_key, move_key = jax.random.split(key)
        x = jax.vmap(reference.draw)(jax.random.split(start_key, self.chains))

        def step(carry: tuple[Points, Scalar], inputs: tuple[Array, ...]):
            x, factor = carry
            _, beta, size, step_key = inputs
            x, accepted = self._moved(f, reference, x, beta, size * factor, step_key)
            spread = jnp.std(jax.vmap(_excess(f, reference))(x))
            used = size * factor
            # Step sizes follow the acceptance along the path, and begin the next pilot there.
            factor = factor * jnp.exp(0.5 * (accepted - ACCEPTANCE))
            return (x, factor), (spread, used)

        carry = (x, jnp.ones(()))
        _, (spread, used) = lax.scan(step, carry, self._inputs(stations, move_key))
        return _respaced(stations.inverse_temperatures, spread, used)

    def _inputs(self, stations: Stations, key: Key) -> tuple[Array, ...]:
        betas, sizes = stations
        return betas[:-1], betas[1:], sizes, jax.random.split(key, self.stations)

    def _moved(
        self,
        f: Potential,
        reference: AbstractReference,
        x: Points,
        beta: Scalar,
        size: Scalar,
        key: Key,
    ) -> tuple[Points, Scalar]:
        """All chains after one trajectory at a station, and the share that was accepted."""
        from blackjax.mcmc import hmc

        target = station(f, reference, beta)
        kernel, metric = hmc.build_kernel(), jnp.ones(x.shape[1])

        def one(x: Point, key: Key) -> tuple[Point, Scalar]:
            size_key, move_key = jax.random.split(key)
            # Trajectories of one length can come back to where they began, in f if not in x.
            own = size * jax.random.uniform(size_key, minval=SHORTEST)
            moved, info = kernel(move_key, hmc.init(x, target), target, own, metric, self.leapfrogs)
            return moved.position, info.acceptance_rate

        x, accepted = jax.vmap(one)(x, jax.random.split(key, x.shape[0]))
        return x, jnp.mean(accepted)


def station(f: Potential, reference: AbstractReference, beta: Scalar) -> Callable[[Point], Scalar]:
    """The log density at β, up to its constant."""
    return lambda x: (1 - beta) * reference.log_density(x) + beta * f(x)


def _excess(f: Potential, reference: AbstractReference) -> Callable[[Point], Scalar]:
    return lambda x: f(x) - reference.log_density(x)


def _respaced(betas: Array, spread: Array, sizes: Array) -> Stations:
    """As many stations with equal shares of the path's length in spread."""
    lengths = jnp.nan_to_num(spread, posinf=0.0) * jnp.diff(betas)
    lengths = lengths + CROWDED * jnp.mean(lengths) + 1e-12
    along = jnp.concatenate([jnp.zeros(1), jnp.cumsum(lengths)])
    even = jnp.linspace(0.0, along[-1], betas.size)
    new = jnp.interp(even, along, betas).at[0].set(0.0).at[-1].set(1.0)
    return Stations(new, jnp.exp(jnp.interp(new[1:], betas[1:], jnp.log(sizes))))
