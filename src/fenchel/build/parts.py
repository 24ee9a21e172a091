"""All parts of a run: f, its sampler, and what learns them."""

from typing import Any, NamedTuple

from fenchel.build.learner import build_maxmin, build_minimise
from fenchel.build.model import build_model, part_keys
from fenchel.build.names import EMBEDDINGS
from fenchel.config import Config
from fenchel.data import Standardiser
from fenchel.estimation import build_estimator, states_of
from fenchel.estimators import AbstractEstimator, Domain
from fenchel.potentials import base_scale
from fenchel.samplers import AbstractSampler, Embedding
from fenchel.shapes import Potential
from fenchel.train import AbstractLearner


class Parts(NamedTuple):
    """What is learnt, and what learns it."""

    potential: Potential
    sampler: AbstractSampler
    learner: AbstractLearner


def build(
    config: Config,
    dim: int,
    *,
    estimator: AbstractEstimator | None = None,
    domain: Domain | None = None,
    scaling: Standardiser | None = None,
    **own: Any,
) -> Parts:
    """The parts of a run; those given are taken as they are, as by `build_model`."""
    potential, sampler = build_model(config, dim, domain=domain, scaling=scaling, **own)
    if isinstance(sampler, Embedding) and config.method in EMBEDDINGS:
        learner = build_maxmin(config.training, sampler, dim, base_scale(potential))
        return Parts(potential, sampler, learner)
    if estimator is None:
        estimator = build_estimator(
            config.method, config.estimator, config.start, dim, potential, part_keys(config)[1]
        )
    return Parts(potential, sampler, build_minimise(config.training, estimator))


def noise_floor(
    config: Config, potential: Potential, learner: AbstractLearner | AbstractEstimator
) -> float:
    """The noise on training data, in standard deviations.

    It would take discrete data off their states, and others out of their domain.
    """
    bounded = states_of(potential) is not None or config.potential.domain is not None
    return 0.0 if bounded else config.training.floor(learner.noise_floor)
