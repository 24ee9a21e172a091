"""Estimators of f: the primal-dual likelihood, and the classical ones with their fixed duals."""

from fenchel.estimators.bounds import (
    AbstractBound,
    AbstractCriterion,
    FenchelBound,
    Pairs,
    WeightedBound,
    effective_sample_size,
    log_mean_exp,
)
from fenchel.estimators.conditional import (
    CompositeLikelihood,
    MaximumLikelihood,
    pseudo_likelihood,
)
from fenchel.estimators.contrastive import ContrastiveDivergence
from fenchel.estimators.domain import Domain
from fenchel.estimators.estimator import (
    NOISE_FLOOR,
    AbstractEstimator,
    AbstractLoss,
    Estimate,
    Negatives,
    contrast,
)
from fenchel.estimators.lag import energy_lag, weight_lag
from fenchel.estimators.measure import (
    AbstractMeasure,
    Counting,
    Nodes,
    Quadrature,
    panelled,
)
from fenchel.estimators.noise_contrastive import (
    AbstractNoise,
    FlowNoise,
    GaussianNoise,
    NoiseContrastive,
)
from fenchel.estimators.non_local import (
    Cover,
    Neighbourhoods,
    flips,
    overlapping_strips,
    strip_edges,
)
from fenchel.estimators.probability_flow import (
    AbstractConnections,
    Hamiltonian,
    MinimumProbabilityFlow,
    Neighbours,
)
from fenchel.estimators.regularisers import (
    anchor,
    gradient_penalty,
    mean_potential,
)
from fenchel.estimators.score_matching import DenoisingScoreMatching, ScoreMatching
from fenchel.estimators.stein import (
    AbstractKernel,
    GaussianKernel,
    InverseMultiquadric,
    KernelStein,
    SteinVariational,
)

__all__ = [
    "NOISE_FLOOR",
    "AbstractBound",
    "AbstractConnections",
    "AbstractCriterion",
    "AbstractEstimator",
    "AbstractKernel",
    "AbstractLoss",
    "AbstractMeasure",
    "AbstractNoise",
    "CompositeLikelihood",
    "ContrastiveDivergence",
    "Counting",
    "Cover",
    "DenoisingScoreMatching",
    "Domain",
    "Estimate",
    "FenchelBound",
    "FlowNoise",
    "GaussianKernel",
    "GaussianNoise",
    "Hamiltonian",
    "InverseMultiquadric",
    "KernelStein",
    "MaximumLikelihood",
    "MinimumProbabilityFlow",
    "Negatives",
    "Neighbourhoods",
    "Neighbours",
    "Nodes",
    "NoiseContrastive",
    "Pairs",
    "Quadrature",
    "ScoreMatching",
    "SteinVariational",
    "WeightedBound",
    "anchor",
    "contrast",
    "effective_sample_size",
    "energy_lag",
    "flips",
    "gradient_penalty",
    "log_mean_exp",
    "mean_potential",
    "overlapping_strips",
    "panelled",
    "pseudo_likelihood",
    "strip_edges",
    "weight_lag",
]
