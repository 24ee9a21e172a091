"""Samplers: start and dynamics together, chains, and how gradients pass through them."""

from fenchel.samplers.chains import Ensemble, Persistent, Tuned
from fenchel.samplers.embedding import AbstractSampler, Embedding
from fenchel.samplers.fused import FusedLangevin
from fenchel.samplers.gradients import (
    AbstractGradient,
    BackPropagation,
    Detached,
    Truncated,
    valued,
)
from fenchel.samplers.scouts import Scouts

__all__ = [
    "AbstractGradient",
    "AbstractSampler",
    "BackPropagation",
    "Detached",
    "Embedding",
    "Ensemble",
    "FusedLangevin",
    "Persistent",
    "Scouts",
    "Truncated",
    "Tuned",
    "valued",
]
