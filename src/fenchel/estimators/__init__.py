"""Objectives: the primal-dual likelihood, and the bounds on log Z that go into it."""

from fenchel.estimators.bounds import (
    AbstractBound,
    FenchelBound,
    WeightedBound,
    effective_sample_size,
    log_mean_exp,
)
from fenchel.estimators.primal_dual import anchor, gradient_penalty, log_likelihood

__all__ = [
    "AbstractBound",
    "FenchelBound",
    "WeightedBound",
    "anchor",
    "effective_sample_size",
    "gradient_penalty",
    "log_likelihood",
    "log_mean_exp",
]
