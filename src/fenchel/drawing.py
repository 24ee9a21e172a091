"""Draws from a fitted model in standard units: raw, corrected by their weights, and the weights."""

from collections.abc import Callable
from typing import NamedTuple, cast

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import paramax
from jax import lax

from fenchel.dynamics import Particle
from fenchel.errors import InputError
from fenchel.estimators import Nodes
from fenchel.potentials import base_scale
from fenchel.samplers import AbstractSampler, Embedding, Scouts, Tuned
from fenchel.shapes import Array, Key, Points, Potential, PyTree
from fenchel.starts import AbstractDensityStart, Replay

POOL = 8  # candidates for each corrected draw
CHUNK = 2_048  # draws at a time
TUNING_POINTS = 256  # of the data, for the step sizes of chains
RIPENING = 10  # rounds, of every chain that a replay buffer hands out
ORDER = 4_001  # sets its key apart from those of the chunks
LARGE = 512  # dimensions, from which on
FEW = 128  # are: such points are pictures, and each passes through a large net


class LogWeights(NamedTuple):
    """log importance weights, and which of the draws ended where their start never goes."""

    log_w: np.ndarray
    afar: np.ndarray


class Drawing(NamedTuple):
    """A potential with its sampler, what that remembers, and the data points it may begin at."""

    f: Potential
    sampler: AbstractSampler
    state: PyTree
    points: Points

    @property
    def chunk(self) -> int:
        """How many are drawn at a time."""
        return CHUNK if self.points.shape[1] < LARGE else FEW

    def raw(self, n: int, key: Key) -> np.ndarray:
        """n draws of the sampler as it is."""
        return self._points(_raw, n, key)

    def corrected(self, n: int, key: Key) -> np.ndarray:
        """n draws, resampled by importance weights from a pool eight times as large."""
        self.require_density("Corrected samples")
        return self._points(resampled, n, key)

    def best(self, n: int, key: Key) -> np.ndarray:
        """Corrected draws where the sampler has a density, else raw ones."""
        return (self.corrected if self.sampler.exact else self.raw)(n, key)

    def finite(self, n: int, key: Key) -> np.ndarray:
        """n of the best draws, where chains may begin: others take the place of what ran off."""
        drawn = self.best(n, key)
        kept = drawn[np.isfinite(drawn).all(axis=1)]
        if not len(kept):
            raise InputError(
                "The sampler draws no point that is finite: fit anew, with smaller learning rates "
                "or a smaller dynamics.step_size."
            )
        return kept[np.arange(n) % len(kept)]

    def made_ready(self, most: int, key: Key) -> "Drawing":
        """With what the sampler remembers as it is handed out.

        That is, with step sizes that fit f, and with chains that have all gone on for a while, if
        that can be had for so many draws at `most`: of a replay buffer's some have only just begun.
        """
        state = self.state
        if isinstance(self.sampler, Tuned):
            state = self.sampler.settled(self.f, self.points[:TUNING_POINTS], state, key)
        if isinstance(start := getattr(self.sampler, "start", None), Replay):
            few, rounds = min(self.chunk, start.chains), min(RIPENING, most // start.chains)
            for own in jax.random.split(key, rounds * -(-start.chains // few)):
                state = _raw(self._replace(state=state), few, own)[1]
        return self._replace(state=state)

    def weighted(self, count: int, key: Key) -> Nodes:
        """At least `count` draws, with their weights for Z without f."""
        parts = self._in_chunks(_weighted, count, key)
        return jax.tree.map(lambda *leaves: jnp.concatenate(leaves), *parts)

    def log_weights(self, chunks: int, key: Key) -> "LogWeights":
        """log importance weights of so many chunks of draws; their mean weight estimates Z."""
        self.require_density("An importance weight")
        scouts, keys = self._scouts, jax.random.split(key, chunks)
        parts = [_log_weights(self, scouts, self.chunk, own) for own in keys]
        log_w, afar = (np.concatenate(each) for each in zip(*parts, strict=True))
        return LogWeights(log_w.astype(np.float64), afar)

    def unseen(self, chunks: int, key: Key) -> np.ndarray | None:
        """log weights of so many chunks of scouts, for f's integral where the start never goes.

        None where nobody can tell: the start has no density, or f no base measure.
        """
        scouts = self._scouts
        if scouts is None:
            return None
        keys = jax.random.split(key, chunks)
        sent = [_unseen(self, scouts, self.chunk, own) for own in keys]
        return np.concatenate([np.asarray(log_w, np.float64) for log_w in sent])

    @property
    def _scouts(self) -> Scouts | None:
        start, scale = getattr(self.sampler, "start", None), base_scale(self.f)
        dense = isinstance(start, AbstractDensityStart)
        return Scouts(scale) if dense and scale is not None else None

    def require_density(self, what: str) -> None:
        """Refuse what cannot be had without the sampler's exact density."""
        if not self.sampler.exact:
            raise InputError(
                f"{what} needs the sampler's exact density, which this one does not have (its "
                "start is a set of points, or a box or a Metropolis step broke it): fit with a "
                "flow or a deep-latent start, and without those."
            )

    def _points(self, draw: "Draw", n: int, key: Key) -> np.ndarray:
        chunks = self._in_chunks(draw, n, key)
        return np.concatenate([np.asarray(chunk, np.float64) for chunk in chunks])[:n]

    def _in_chunks(self, draw: "Draw", n: int, key: Key) -> list[PyTree]:
        """At least n draws; chains that a sampler remembers are gone on with, in random order."""
        # Whole chunks, whatever n: the pool is never small, and nothing compiles twice.
        keys = jax.random.split(key, -(-n // self.chunk))
        state = self.sampler.reordered(self.state, jax.random.fold_in(key, ORDER))
        chunks = []
        for own in keys:
            drawn, state = draw(self._replace(state=state), self.chunk, own)
            chunks.append(drawn)
        return chunks


Draw = Callable[[Drawing, int, Key], tuple[PyTree, PyTree]]
"""So many at once, and what the sampler remembers afterwards."""


def _draw(drawing: Drawing, n: int, key: Key) -> tuple[Particle, PyTree]:
    f, sampler, state, points = drawing
    pick_key, draw_key = jax.random.split(key)
    # Samplers that begin at the data get random points of it; the others ignore what they get.
    rows = jax.random.randint(pick_key, (n,), 0, points.shape[0])
    return sampler.draw(f, points[rows], state, draw_key)


@eqx.filter_jit
def _log_weights(drawing: Drawing, scouts: Scouts | None, n: int, key: Key) -> tuple[Array, Array]:
    """And which of them end where the start never goes."""
    particles, _ = _draw(drawing, n, key)
    log_w = _or_none(particles.log_weight)
    if scouts is None:
        return log_w, jnp.zeros(n, bool)
    start = _dense_start(drawing)
    return log_w, jax.vmap(lambda x: scouts.afar(start, x))(particles.x)


@eqx.filter_jit
def _unseen(drawing: Drawing, scouts: Scouts, n: int, key: Key) -> Array:
    dim = drawing.points.shape[1]
    start = _dense_start(drawing)
    return _or_none(scouts.beyond(paramax.unwrap(drawing.f), start, n, dim, key))


def _dense_start(drawing: Drawing) -> AbstractDensityStart:
    return paramax.unwrap(cast(Embedding, drawing.sampler).start)


@eqx.filter_jit
def _weighted(drawing: Drawing, n: int, key: Key) -> tuple[Nodes, PyTree]:
    """Draws with their weights for Z, all but f; of equal weight where there is no density."""
    particles, state = _draw(drawing, n, key)
    log_w = particles.log_weight if drawing.sampler.exact else jnp.zeros_like(particles.f)
    return Nodes(particles.x, _or_none(log_w - particles.f)), state


@eqx.filter_jit
def _raw(drawing: Drawing, n: int, key: Key) -> tuple[Array, PyTree]:
    particles, state = _draw(drawing, n, key)
    return particles.x, state


@eqx.filter_jit
def resampled(drawing: Drawing, n: int, key: Key) -> tuple[Array, PyTree]:
    """Systematic resampling, by weights capped so that no point of the pool is taken twice.

    The cap (truncated importance sampling) costs a little bias where the weights have a heavy tail.
    """
    draw_key, offset_key, order_key = jax.random.split(key, 3)
    particles, state = _draw(drawing, POOL * n, draw_key)
    # In units of the cap every weight is at most 1 and they sum to n or more: ticks at least one
    # apart meet each point at most once.
    weights = _capped(_or_none(particles.log_weight), n)
    cumulative = jnp.cumsum(weights)
    ticks = (jnp.arange(n) + jax.random.uniform(offset_key)) * (cumulative[-1] / n)
    chosen = jnp.minimum(jnp.searchsorted(cumulative, ticks), POOL * n - 1)
    # Neighbours in the pool are neighbours in the result: put them in random order.
    return jax.random.permutation(order_key, particles.x[chosen]), state


def _capped(log_w: Array, n: int) -> Array:
    """min(w / c, 1) with the cap c for which these sum to n, or as c the largest weight if less.

    By logarithms, since the n-th largest weight may be nothing beside the largest.
    """

    def capped(log_cap: Array) -> Array:
        return jnp.exp(jnp.minimum(log_w - log_cap, 0))

    def bisect(_, bracket):
        low, high = bracket
        middle = 0.5 * (low + high)
        enough = jnp.sum(capped(middle)) >= n
        return jnp.where(enough, middle, low), jnp.where(enough, high, middle)

    finite = jnp.isfinite(log_w)
    ends = (
        jnp.min(log_w, where=finite, initial=jnp.inf),
        jnp.max(log_w, where=finite, initial=-jnp.inf),
    )
    low, _ = lax.fori_loop(0, 60, bisect, ends)
    return capped(low)


def _or_none(log_w: Array) -> Array:
    """No weight at all for a particle whose weight is not a number."""
    return jnp.where(jnp.isnan(log_w), -jnp.inf, log_w)
