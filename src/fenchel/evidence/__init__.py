"""How well log Z is known: bounds from both sides, annealing, and reference draws."""

from fenchel.evidence.annealing import (
    AbstractReference,
    Annealing,
    GaussianReference,
    StartReference,
)
from fenchel.evidence.bracket import (
    LogPartition,
    believed,
    beside_unseen,
    from_both_ends,
    from_weights,
    known,
)
from fenchel.evidence.integral import integrated
from fenchel.evidence.nuts import Chains, nuts
from fenchel.evidence.tempering import Tempering

__all__ = [
    "AbstractReference",
    "Annealing",
    "Chains",
    "GaussianReference",
    "LogPartition",
    "StartReference",
    "Tempering",
    "believed",
    "beside_unseen",
    "from_both_ends",
    "from_weights",
    "integrated",
    "known",
    "nuts",
]
