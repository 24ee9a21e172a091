"""What learns, with the settings of a run."""

from functools import lru_cache

import optax

from fenchel.choices import choose
from fenchel.config import TrainingConfig
from fenchel.errors import InputError
from fenchel.estimators import (
    AbstractCriterion,
    AbstractEstimator,
    FenchelBound,
    Pairs,
    WeightedBound,
)
from fenchel.samplers import (
    AbstractGradient,
    BackPropagation,
    Detached,
    Embedding,
    Scouts,
    Truncated,
)
from fenchel.starts import AbstractDensityStart
from fenchel.train import MaxMin, Minimise, Simultaneous, Wait


def build_minimise(config: TrainingConfig, estimator: AbstractEstimator) -> Minimise:
    """A classical estimator with these settings."""
    _check_training(config)
    return Minimise(
        estimator,
        _optimiser(config.potential_rate, config.steps, config),
        decay=_decay(config),
        wait=Wait(config.wait),
    )


def build_maxmin(
    config: TrainingConfig, sampler: Embedding, dim: int, base: float | None = None
) -> MaxMin:
    """Algorithm 1 with these settings, for points of this dimension.

    A sampler without an exact density (from a set of points, a box, a Metropolis step) has no
    importance weights, and a start without one no anchor: the paper's plain bound, or no anchor,
    then takes their place. Scouts need both, an f on a Gaussian of this width (`base`), and a
    gradient that stops at the draws.
    """
    _check_training(config)
    dual = FenchelBound(config.entropy, config.momentum)
    bounds: dict[str, AbstractCriterion] = {
        "weighted": WeightedBound() if sampler.exact else dual,
        "fenchel": dual,
        "pairs": Pairs(),
    }
    gradients: dict[str, AbstractGradient] = {
        "truncated": Truncated(),
        "detached": Detached(),
        "bptt": BackPropagation(),
    }
    anchored = isinstance(sampler.start, AbstractDensityStart)
    learner = MaxMin if config.sampler_steps else Simultaneous
    sampler_updates = config.steps * max(1, config.sampler_steps)
    bound = choose(bounds, config.bound, "bound")
    gradient = choose(gradients, config.gradient, "gradient estimator")
    weight = config.anchor_in(dim) if anchored else 0.0
    scouts = None
    guided = bool(weight) and bound.needs_density and not isinstance(gradient, BackPropagation)
    if base is not None and config.scouts and guided:
        scouts = Scouts(base, config.scouts)

    return learner(
        bound=bound,
        dual=dual,
        gradient=gradient,
        potential_optimiser=_optimiser(config.potential_rate, config.steps, config),
        start_optimiser=_optimiser(config.start_rate, sampler_updates, config),
        dynamics_optimiser=_optimiser(
            config.dynamics_rate, sampler_updates, config, config.dynamics_epsilon
        ),
        sampler_steps=config.sampler_steps,
        anchor=weight,
        gradient_penalty=config.gradient_penalty,
        scouts=scouts,
        wait=Wait(config.wait),
        decay=_decay(config),
    )


def _optimiser(
    rate: float, updates: int, config: TrainingConfig, epsilon: float = 1e-8
) -> optax.GradientTransformation:
    """Adam, with a rate that ends with the run: Optax counts updates, not iterations."""
    return _adam(rate, updates, config.final_rate, config.first_moment, epsilon)


@lru_cache(maxsize=64)
def _adam(
    rate: float, updates: int, final_rate: float, first_moment: float, epsilon: float
) -> optax.GradientTransformation:
    """One object for the same settings: a second fit with them is not compiled again."""
    schedule = optax.cosine_decay_schedule(rate, updates, final_rate)
    return optax.adam(schedule, b1=first_moment, eps=epsilon)


def _decay(config: TrainingConfig) -> float:
    """Of the moving averages.

    The learning rates fall to almost nothing, so a short look back is all that is needed; a long
    one would hand out a model from before it had converged.
    """
    return 1 - 1 / max(10.0, config.averaging * config.steps)


def _check_training(config: TrainingConfig) -> None:
    positive = ("steps", "batch", "block", "checkpoint_every")
    rates = ("potential_rate", "start_rate", "dynamics_rate", "dynamics_epsilon")
    for name in (*positive, *rates):
        if not getattr(config, name) > 0:
            raise InputError(f"training.{name} is {getattr(config, name)}: it must be positive.")
    for name in ("sampler_steps", "scouts", "gradient_penalty", "entropy", "momentum"):
        if getattr(config, name) < 0:
            raise InputError(f"training.{name} is {getattr(config, name)}: give 0 or more.")
    if not 0 <= config.first_moment < 1:
        raise InputError(f"training.first_moment is {config.first_moment}: give 0 up to below 1.")
    if not 0 <= config.averaging <= 1:
        raise InputError(f"training.averaging is {config.averaging}: give a fraction of the run.")
    if not 0 < config.final_rate <= 1:
        raise InputError(f"training.final_rate is {config.final_rate}: give a fraction above 0.")
    if config.noise is not None and config.noise < 0:
        raise InputError(f"training.noise is {config.noise}: it must not be negative.")
