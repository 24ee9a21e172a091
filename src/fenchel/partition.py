"""log Z of a fitted model in standard units, by whichever account can be given of it."""

from collections.abc import Callable

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import paramax
from numpy.typing import ArrayLike

from fenchel.choices import choose
from fenchel.drawing import Drawing
from fenchel.errors import InputError
from fenchel.estimation import domain_of, states_of, whole_measure
from fenchel.estimators import Counting, Domain, MaximumLikelihood, Quadrature
from fenchel.evidence import (
    AbstractReference,
    Annealing,
    GaussianReference,
    LogPartition,
    StartReference,
    Tempering,
    believed,
    beside_unseen,
    from_both_ends,
    from_weights,
    integrated,
    known,
)
from fenchel.evidence.integral import NODES
from fenchel.potentials import SelfNormalised
from fenchel.samplers import Embedding
from fenchel.shapes import Array, Key, Potential
from fenchel.starts import AbstractDensityStart

CHUNKS = 16  # of draws, for the weights' mean
FALL = 5.0  # nats, by which f must fall to where its integral is cut off
REFERENCE_POINTS = 4_096  # for the Gaussian that annealing begins at where there is no start
SCOUTS = 4_211  # sets those apart that are sent where the sampler never goes
PURPOSE = 1_847  # sets the draws for log Z apart from those of `sample` with the same seed

Account = str | Annealing | Tempering


def log_partition(
    drawing: Drawing, dim: int, seed: int, by: Account, points: ArrayLike | None = None
) -> LogPartition:
    """By importance weights, quadrature or enumeration, annealing, or tempering.

    `points` are where annealing's chains begin their way back.
    """
    key = jax.random.fold_in(jax.random.key(seed), PURPOSE)
    if points is not None and not (isinstance(by, Annealing) or by == "annealing"):
        raise InputError(f"Points were given, and only annealing begins at any, not {by!r}.")
    if isinstance(by, Annealing):
        return _annealed(drawing, by, points, key)
    if isinstance(by, Tempering):
        return _tempered(drawing, by, key)
    if not isinstance(by, str):
        raise InputError(
            f"log Z was asked for by {by!r}: give its account's name, such as 'annealing', or an "
            "Annealing or Tempering with settings of your own."
        )
    accounts: dict[str, Callable[[], LogPartition]] = {
        "weights": lambda: _weighed(drawing, key),
        "quadrature": lambda: _summed(drawing.f, dim),
        "learnt": lambda: _learnt(drawing.f),
        "annealing": lambda: _annealed(drawing, Annealing(), points, key),
        "tempering": lambda: _tempered(drawing, Tempering(), key),
    }
    return choose(accounts, by, "account of log Z")()


def can_be_summed(f: Potential, dim: int) -> bool:
    """Whether quadrature or enumeration gives log Z."""
    if states_of(f) is not None:
        return whole_measure(dim, f, Domain()) is not None
    return dim in NODES


def usual(drawing: Drawing, dim: int) -> str:
    """The sampler's weights where it has a density; else a sum, or what noise contrast learnt."""
    if drawing.sampler.exact:
        return "weights"
    if can_be_summed(drawing.f, dim):
        return "quadrature"
    if isinstance(drawing.f, SelfNormalised):
        return "learnt"
    raise InputError(
        "log Z of this model is not known: its sampler has no exact density, and "
        f"{dim} columns are too many to integrate over. Anneal, as in "
        'fit.log_partition("annealing"), or fit with ade (from a flow or a deep-latent start, '
        "without a box or a Metropolis step), whose weights bound it, or with nce, which learns it."
    )


def _weighed(drawing: Drawing, key: Key) -> LogPartition:
    """By the sampler's weights, and scouts where its start never goes."""
    drawn = drawing.log_weights(CHUNKS, key)
    found = from_weights(drawn.log_w, "importance weights")
    sent = drawing.unseen(CHUNKS, jax.random.fold_in(key, SCOUTS))
    if sent is None:
        return found
    return beside_unseen(found, sent, np.where(drawn.afar, drawn.log_w, -np.inf))


def _summed(f: Potential, dim: int) -> LogPartition:
    measure = whole_measure(dim, f, domain_of(f) or Domain())
    if isinstance(measure, Counting):
        return known(float(_log_sum(f, measure, dim)), measure.name)
    if dim in NODES:
        domain = domain_of(f) or Domain()
        box = Quadrature(domain=domain)
        low, high, fall = _box(f, box, dim)
        if not fall > FALL:
            raise InputError(
                "exp f does not fall off within reach, so that its integral is not known: put f on "
                "a base measure (fx.potentials.OnBase), or give the data's domain."
            )
        return integrated(f, low, high, (domain.low, domain.high))
    raise InputError(
        f"{dim} columns are too many to sum or integrate over: up to {max(NODES)} continuous ones "
        "can be, or 20 of two states; take the weights, or annealing."
    )


def _learnt(f: Potential) -> LogPartition:
    if not isinstance(f, SelfNormalised):
        raise InputError("Only noise contrast (nce) learns log Z: this model was fitted otherwise.")
    return believed(0.0, "noise contrast's own constant")


def _annealed(
    drawing: Drawing, annealing: Annealing, points: ArrayLike | None, key: Key
) -> LogPartition:
    prepare_key, forward_key, points_key, reverse_key = jax.random.split(key, 4)
    reference = _reference(drawing, points_key)
    stations = annealing.prepare(drawing.f, reference, prepare_key)
    log_w, _ = annealing.forward(drawing.f, reference, stations, forward_key)
    if points is None:
        begin = jnp.asarray(drawing.finite(annealing.chains, points_key), log_w.dtype)
        whence = "the sampler's draws"
    else:
        given = jnp.asarray(points, log_w.dtype)
        rows = jax.random.randint(points_key, (annealing.chains,), 0, len(given))
        settle_key, reverse_key = jax.random.split(reverse_key)
        begin = annealing.settled(drawing.f, reference, stations, given[rows], settle_key)
        whence = "chains begun at the points given"
    reverse = annealing.reverse(drawing.f, reference, stations, begin, reverse_key)
    return from_both_ends(log_w, reverse, f"annealing, and back from {whence}")


def _tempered(drawing: Drawing, tempering: Tempering, key: Key) -> LogPartition:
    prepare_key, forward_key, points_key = jax.random.split(key, 3)
    reference = _reference(drawing, points_key)
    stations = tempering.prepare(drawing.f, reference, prepare_key)
    log_w, _ = tempering.forward(drawing.f, reference, stations, forward_key)
    return from_weights(log_w, "tempered sequential Monte Carlo", tempering.runs // 4)


def _reference(drawing: Drawing, key: Key) -> AbstractReference:
    """The sampler's start where that has a density, else a Gaussian around the model's draws."""
    if states_of(drawing.f) is not None or domain_of(drawing.f) is not None:
        raise InputError(
            "Annealing moves along f's gradient over all of space, and this model is discrete or "
            "within a domain: take quadrature, or enumeration."
        )
    sampler = drawing.sampler
    if isinstance(sampler, Embedding) and isinstance(sampler.start, AbstractDensityStart):
        return StartReference(sampler.start)
    points = drawing.finite(REFERENCE_POINTS, key)
    return GaussianReference.around(jnp.asarray(points, jnp.result_type(float)))


@eqx.filter_jit
def _log_sum(f: Potential, measure: Counting, dim: int) -> Array:
    return MaximumLikelihood(measure).log_partition(paramax.unwrap(f), dim)


@eqx.filter_jit
def _box(f: Potential, measure: Quadrature, dim: int) -> tuple[Array, Array, Array]:
    """Where the mass is, and by how much f falls to the ends of that where they are open."""
    f = paramax.unwrap(f)
    low, high = measure.reached(f, jnp.zeros(dim), jnp.arange(dim))
    return low, high, measure.fall(f, dim)
