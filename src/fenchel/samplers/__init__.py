"""Samplers: start and dynamics together, and how gradients pass through them."""

from fenchel.samplers.embedding import AbstractSampler, Embedding
from fenchel.samplers.gradients import AbstractGradient, BackPropagation, Truncated

__all__ = ["AbstractGradient", "AbstractSampler", "BackPropagation", "Embedding", "Truncated"]
