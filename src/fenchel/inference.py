"""From a fitted potential and its data to standard errors, and to a table that says how.

Which covariance a method has, what stands for the model's integrals, and what a reader has to know
of it: here in words. The formulas are in `evaluate.standard_errors`.
"""

from collections.abc import Callable
from typing import NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import paramax

from fenchel.build import CUSTOM, EMBEDDINGS, noise_floor
from fenchel.choices import choose
from fenchel.config import Config
from fenchel.drawing import TUNING_POINTS
from fenchel.errors import InputError
from fenchel.estimation import build_estimator, states_of
from fenchel.estimators import (
    AbstractEstimator,
    AbstractMeasure,
    ContrastiveDivergence,
    MaximumLikelihood,
    effective_sample_size,
)
from fenchel.evaluate import ParameterTable, standard_errors
from fenchel.evaluate.standard_errors import Asymptotics, Moments, WeightedDraws
from fenchel.parameters import flat, names
from fenchel.samplers import Tuned
from fenchel.shapes import Points, Potential, PyTree
from fenchel.starts import begins_at_data

MOST_PARAMETERS = 500
REPEATS = 32  # passes over the data, where a loss draws random numbers
LOOK = 64  # rows, to see whether it does
FAR = 0.25  # standard errors from the optimum, from which on intervals cover less than they say
ENOUGH = 400  # effective draws
INFERENCE_PURPOSE = 7_919  # sets its draws apart from all others with the same seed


class Seen(NamedTuple):
    """What a fit was made from: kept in memory, and not on disk."""

    data: Points  # in standard units
    estimator: AbstractEstimator | None  # None for the likelihood by a learnt sampler
    memory: PyTree


class Inference(NamedTuple):
    """Where the parameters are, how far from their optimum, and how well they are known."""

    asymptotics: Asymptotics
    effective: np.ndarray  # which of f's numbers have an effect at all
    how: str  # the covariance was found
    floor: float  # of noise on the data
    notes: tuple[str, ...]


def seen_again(f: Potential, config: Config, data: Points) -> Seen:
    """What a fit that was read from disk would have seen of these data."""
    if config.method in EMBEDDINGS:
        return Seen(data, None, None)
    if config.method == CUSTOM:
        raise InputError(
            "The estimator of this fit was an object of your own, which no file describes: ask for "
            "the summary of the fit before it is saved."
        )
    key = _key(config)
    estimator = build_estimator(
        config.method, config.estimator, config.start, data.shape[1], f, key
    )
    memory = estimator.init(data, key)
    if isinstance(estimator, ContrastiveDivergence) and isinstance(estimator.chains, Tuned):
        memory = estimator.chains.settled(f, data[:TUNING_POINTS], memory, key)
    return Seen(data, estimator, memory)


def infer(
    f: Potential,
    config: Config,
    seen: Seen,
    model: Callable[[], AbstractMeasure],
    covariance: str | None,
) -> Inference:
    """The parameters' covariance by its name, or the one that is the method's own.

    `model` gives what stands for integrals over the model, for those methods that need them.
    """
    _refuse(f, config, seen)
    estimator = seen.estimator
    if not is_likelihood(estimator):
        if covariance not in (None, "sandwich"):
            raise InputError(
                f"The covariance {covariance!r} is maximum likelihood's, and the method "
                f"{config.method!r} is another: leave it out, or ask for 'sandwich'."
            )
        return _by_sandwich(f, config, seen)
    if not isinstance(estimator, MaximumLikelihood):
        seen = seen._replace(estimator=MaximumLikelihood(model()), memory=None)
    kinds = {"information": _by_information, "sandwich": _by_sandwich}
    return choose(kinds, covariance or "information", "covariance")(f, config, seen)


def is_likelihood(estimator: AbstractEstimator | None) -> bool:
    """Whether a method ends at the maximum of the likelihood.

    Chains that never restart do, as far as they keep up with f: their ends are the model's draws.
    """
    persistent = isinstance(estimator, ContrastiveDivergence) and not begins_at_data(
        estimator.chains
    )
    return estimator is None or isinstance(estimator, MaximumLikelihood) or persistent


def _by_information(f: Potential, config: Config, seen: Seen) -> Inference:
    assert isinstance(seen.estimator, MaximumLikelihood)
    dim = seen.data.shape[1]
    origin, block = jnp.zeros(dim), jnp.arange(dim)
    nodes = seen.estimator.measure.nodes(paramax.unwrap(f), origin, block)
    matrix = np.asarray(_information(f, nodes))
    found = _moments(f, config, seen)
    effective = np.any(matrix != 0, axis=0)
    part = _part(found, effective)
    asymptotics = standard_errors.inverse_information(
        part, matrix[np.ix_(effective, effective)], len(seen.data)
    )
    return _inference(asymptotics, effective, "inverse information", f, config, seen)


def _by_sandwich(f: Potential, config: Config, seen: Seen) -> Inference:
    found = _moments(f, config, seen)
    effective = np.any(np.asarray(found.curvature) != 0, axis=0)
    rows, count = len(seen.data), int(effective.sum())
    if rows <= count:
        raise InputError(
            f"{rows} rows are too few for the sandwich of {count} parameters: give more."
        )
    asymptotics = standard_errors.sandwich(_part(found, effective), len(seen.data))
    return _inference(asymptotics, effective, "sandwich", f, config, seen)


def _moments(f: Potential, config: Config, seen: Seen) -> Moments:
    assert seen.estimator is not None
    floor, key = noise_floor(config, f, seen.estimator), _key(config)
    some = seen.data[:LOOK]
    random = floor or _is_random(seen.estimator, f, some, seen.memory, key)
    repeats = REPEATS if random else 1
    return _found(seen.estimator, f, seen.data, seen.memory, key, floor=floor, repeats=repeats)


_found = eqx.filter_jit(standard_errors.moments)
_is_random = eqx.filter_jit(standard_errors.is_random)
_information = eqx.filter_jit(standard_errors.information)


def _part(found: Moments, effective: np.ndarray) -> Moments:
    """Of those parameters only."""
    square = np.ix_(effective, effective)
    return Moments(found.gradient[effective], *(np.asarray(matrix)[square] for matrix in found[1:]))


def _inference(
    asymptotics: Asymptotics,
    effective: np.ndarray,
    kind: str,
    f: Potential,
    config: Config,
    seen: Seen,
) -> Inference:
    source, notes = "", []
    estimator = seen.estimator
    assert estimator is not None
    if not all(np.isfinite(numbers).all() for numbers in asymptotics):
        raise InputError(
            "f's derivatives at these rows are so large that standard errors are not finite: look "
            "for outliers among them, or scale them."
        )
    if isinstance(estimator, MaximumLikelihood):
        source = f" by {estimator.measure.name}"
        if isinstance(estimator.measure, WeightedDraws):
            drawn = estimator.measure.drawn
            ess = float(effective_sample_size(drawn.values(paramax.unwrap(f))))
            source = f" by {len(drawn.x):,} weighted draws, {ess:.0%} effective"
            if ess * len(drawn.x) < ENOUGH:
                notes.append("Too few draws are effective: do not trust the standard errors.")
    if not effective.all():
        notes.append(f"Left out: {int(np.sum(~effective))} numbers that f does not depend on.")
    floor = noise_floor(config, f, estimator)
    return Inference(asymptotics, effective, kind + source, floor, (*_far(asymptotics), *notes))


def table(
    f: Potential,
    config: Config,
    found: Inference,
    facts: list[tuple[str, str]],
    level: float,
) -> ParameterTable:
    """All that is known, in the form that is printed."""
    off = distance(found.asymptotics)
    facts = [
        *facts,
        ("To the optimum", f"{off:.2f} std err"),
        ("Covariance", found.how),
    ]
    return ParameterTable(
        title="Parameters of f, p(x) ∝ exp f(x)",
        facts=facts,
        names=tuple(np.array(names(f), object)[found.effective]),
        estimates=np.asarray(flat(f)[0], np.float64)[found.effective],
        covariance=found.asymptotics.covariance,
        notes=(*found.notes, *_circumstances(f, config, found.floor)),
        distance=off,
        level=level,
    )


def _circumstances(f: Potential, config: Config, floor: float) -> list[str]:
    """What the numbers mean, and what they leave out."""
    notes = []
    if states_of(f) is not None:
        notes.append("The parameters are those of the model's own states.")
    elif config.potential.coordinates == "standard":
        notes.append(
            "The parameters are those of standardised data, (x - mean) / scale: fit with "
            'coordinates="data" to have them in the data\'s own units.'
        )
    else:
        notes.append("The parameters are in the data's own units.")
    if floor:
        notes.append(
            f"The noise floor, {floor:g} standard deviations, blurs the data a little, which is a "
            "bias that no standard error shows: set training.noise to 0 for data with a density."
        )
    return notes


def distance(asymptotics: Asymptotics) -> float:
    """To where the gradient vanishes, for the parameter that is farthest off, in its errors."""
    errors = np.sqrt(np.diagonal(asymptotics.covariance))
    return float(np.max(np.abs(asymptotics.step) / errors))


def _far(asymptotics: Asymptotics) -> list[str]:
    errors = np.sqrt(np.diagonal(asymptotics.covariance))
    sure = (np.abs(asymptotics.step) - 2 * asymptotics.step_error) / errors
    known = float(np.max(asymptotics.step_error / errors))
    if np.max(sure) > FAR:
        return [
            f"The parameters are still {distance(asymptotics):.1f} standard errors from where the "
            "gradient vanishes: train longer, or take fit.one_step()."
        ]
    if known > FAR:
        return [
            "How far the parameters are from their optimum is known to "
            f"{known:.1f} standard errors only."
        ]
    return []


def _refuse(f: Potential, config: Config, seen: Seen) -> None:
    """What has no answer."""
    estimator, count = seen.estimator, flat(f)[0].size
    if count == 0:
        raise InputError("f has no parameters, and so no standard errors.")
    if count > MOST_PARAMETERS:
        raise InputError(
            f"f has {count:,} parameters: standard errors are for models with few of them, up to "
            f"{MOST_PARAMETERS}, such as fx.potentials.Linear. (A net's weights have none: many "
            "others give the same density.)"
        )
    penalty = config.training.gradient_penalty if estimator is None else 0.0
    penalty = getattr(estimator, "energy_penalty", penalty)
    if penalty:
        raise InputError(
            f"The fit has a penalty of {penalty:g}, which moves it off the data's optimum by an "
            "amount that no standard error shows: set the penalty to 0 and fit again."
        )
    if isinstance(estimator, ContrastiveDivergence) and not config.estimator.metropolis:
        raise InputError(
            "Chains without a Metropolis step end at another model than f, so that there are no "
            "standard errors: leave estimator.metropolis on."
        )


def _key(config: Config) -> jax.Array:
    return jax.random.fold_in(jax.random.key(config.seed), INFERENCE_PURPOSE)
