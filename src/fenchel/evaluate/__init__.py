"""How good are samples, and how well are parameters known?"""

from fenchel.evaluate.coverage import Coverage, coverage
from fenchel.evaluate.fid import (
    FeatureMoments,
    FrechetDistance,
    feature_moments,
    frechet_distance,
)
from fenchel.evaluate.health import (
    Health,
    contest_health,
    dropped_steps,
    lost_from,
    training_health,
)
from fenchel.evaluate.inception import Inception, feature_batches, features, load_inception
from fenchel.evaluate.mmd import MMDResult, kernel_scale, mmd_squared, mmd_z, null_distribution
from fenchel.evaluate.neighbours import Nearest, few_nearest, nearest
from fenchel.evaluate.overlap import EnergyOverlap, energy_overlap
from fenchel.evaluate.parameter_table import ParameterTable
from fenchel.evaluate.slim import (
    SlimInception,
    class_probabilities,
    inception_score,
    load_slim,
)
from fenchel.evaluate.standard_errors import (
    Asymptotics,
    Moments,
    WeightedDraws,
    information,
    inverse_information,
    moments,
    sandwich,
)
from fenchel.evaluate.stein_test import SteinTest, stein_test
from fenchel.evaluate.two_sample import AggregatedMMDTest, MMDTest, aggregated_mmd_test, mmd_test
from fenchel.evaluate.wasserstein import SlicedWasserstein, sliced_wasserstein

__all__ = [
    "AggregatedMMDTest",
    "Asymptotics",
    "Coverage",
    "EnergyOverlap",
    "FeatureMoments",
    "FrechetDistance",
    "Health",
    "Inception",
    "MMDResult",
    "MMDTest",
    "Moments",
    "Nearest",
    "ParameterTable",
    "SlicedWasserstein",
    "SlimInception",
    "SteinTest",
    "WeightedDraws",
    "aggregated_mmd_test",
    "class_probabilities",
    "contest_health",
    "coverage",
    "dropped_steps",
    "energy_overlap",
    "feature_batches",
    "feature_moments",
    "features",
    "few_nearest",
    "frechet_distance",
    "inception_score",
    "information",
    "inverse_information",
    "kernel_scale",
    "load_inception",
    "load_slim",
    "lost_from",
    "mmd_squared",
    "mmd_test",
    "mmd_z",
    "moments",
    "nearest",
    "null_distribution",
    "sandwich",
    "sliced_wasserstein",
    "stein_test",
    "training_health",
]
