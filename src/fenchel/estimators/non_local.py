"""Non-local contrastive objectives (Vickrey, Lin and Koller): compare a datum with its own set.

The space is covered by sets S_i; a datum belongs to one of them at random, and f is normalised
within that set only. Where the sets overlap, what is learnt in one ties to what is learnt in the
next; a partition leaves the mass of its cells to whatever f's form says about them.
"""

from collections.abc import Callable

import equinox as eqx
import jax
import jax.numpy as jnp

from fenchel.estimators.estimator import AbstractLoss, Negatives
from fenchel.estimators.measure import Nodes
from fenchel.shapes import Array, Key, Point, Points, Potential, Scalar


class Cover(AbstractLoss):
    """Sets given by who is in them.

    **Arguments:**

    - `membership`: from a point to m truth values, one a set; every point must be in one at least.
    - `nodes`: what integrals over the space are sums over (all states, or a quadrature's nodes).

    A datum chooses among its sets with equal chances.
    """

    membership: Callable[[Point], Array]
    nodes: Nodes

    def loss(self, f: Potential, batch: Points, key: Key) -> Scalar:
        log_z = self._log_partitions(f)

        def one(x: Point) -> Scalar:
            return jnp.sum(self._chances(x) * log_z) - f(x)

        return jnp.mean(jax.vmap(one)(batch))

    def dual(self, f: Potential, batch: Points) -> Negatives:
        """A datum, one of its sets, and the model within that set."""
        chances = jnp.mean(jax.vmap(self._chances)(batch), axis=0)
        within = jax.nn.softmax(self._values(f), axis=0)
        return Negatives(self.nodes.x, within @ chances)

    def _chances(self, x: Point) -> Array:
        inside = self.membership(x).astype(x.dtype)
        return inside / jnp.sum(inside)

    def _log_partitions(self, f: Potential) -> Array:
        return jax.nn.logsumexp(self._values(f), axis=0)

    def _values(self, f: Potential) -> Array:
        """(node, set): f with its weight, and nothing at all outside of the set.

        A node of several sets counts in each by its chance to choose it, as a datum does: else the
        truth would not be where the objective is largest. (The paper's Z_i leaves the chance out,
        which is right where all points are in equally many sets.)
        """
        chances = jax.vmap(self._chances)(self.nodes.x)
        # Not -inf: in a set without any node its gradient would not be a number.
        low = jnp.finfo(self.nodes.log_weight.dtype).min / 4
        inside = chances > 0
        log_chances = jnp.log(jnp.where(inside, chances, 1.0))
        return jnp.where(inside, self.nodes.values(f)[:, None] + log_chances, low)


class Neighbourhoods(AbstractLoss):
    """The set of every state is itself with its neighbours, given by a function.

    The relation must be symmetric. A datum x is in the set of c exactly for the c in its own
    set, so c is one of those, and x is compared with c's neighbourhood.
    """

    neighbours: Callable[[Point], Points]
    centres: int | None = eqx.field(static=True, default=None)  # drawn a datum; None: all

    def loss(self, f: Potential, batch: Points, key: Key) -> Scalar:
        def one(x: Point, key: Key) -> Scalar:
            centres = self._around(x)
            if self.centres is not None:
                centres = jax.random.choice(key, centres, (self.centres,), replace=False)
            log_z = jax.vmap(lambda c: jax.nn.logsumexp(jax.vmap(f)(self._around(c))))(centres)
            return jnp.mean(log_z) - f(x)

        return jnp.mean(jax.vmap(one)(batch, jax.random.split(key, batch.shape[0])))

    def dual(self, f: Potential, batch: Points) -> Negatives:
        """A datum, a neighbourhood that it is in, and the model within that neighbourhood."""

        def within(c: Point) -> Negatives:
            x = self._around(c)
            return Negatives(x, jax.nn.softmax(jax.vmap(f)(x)))

        many = jax.vmap(jax.vmap(within))(jax.vmap(self._around)(batch))
        weight = many.weight / (many.weight.shape[0] * many.weight.shape[1])
        return Negatives(many.x.reshape(-1, batch.shape[1]), weight.ravel())

    def _around(self, x: Point) -> Points:
        return jnp.concatenate([x[None], self.neighbours(x)])


def flips(values: tuple[float, ...]) -> Callable[[Point], Points]:
    """All states that differ in one coordinate, for coordinates that take these values."""

    def neighbours(x: Point) -> Points:
        table = jnp.asarray(values, x.dtype)
        index = jnp.argmin(jnp.abs(x[:, None] - table[None]), axis=1)
        others = (index[:, None] + jnp.arange(1, table.size)[None]) % table.size

        def changed(coordinate: Array, other: Array) -> Point:
            return x.at[coordinate].set(table[other])

        return jax.vmap(jax.vmap(changed, (None, 0)))(jnp.arange(x.size), others).reshape(
            -1, x.size
        )

    return neighbours


def overlapping_strips(count: int, low: float, high: float) -> Callable[[Point], Array]:
    """Strips along the first coordinate, and as many again moved by half of their width."""

    def membership(x: Point) -> Array:
        place = jnp.clip((x[0] - low) / (high - low), 0.0, 1.0) * count
        plain = jnp.clip(jnp.floor(place), 0, count - 1)
        moved = jnp.clip(jnp.floor(place + 0.5), 0, count)
        return jnp.concatenate([plain == jnp.arange(count), moved == jnp.arange(count + 1)])

    return membership


def strip_edges(count: int, low: float, high: float) -> list[float]:
    """Where those strips begin and end: integrals within them jump there."""
    return [low + (high - low) * half / (2 * count) for half in range(2 * count + 1)]
