"""How good are samples, and how well are parameters known?"""

from fenchel.evaluate.coverage import Coverage, coverage
from fenchel.evaluate.health import Health, training_health
from fenchel.evaluate.mmd import MMDResult, kernel_scale, mmd_squared, mmd_z, null_distribution
from fenchel.evaluate.overlap import EnergyOverlap, energy_overlap
from fenchel.evaluate.parameter_table import ParameterTable
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
    "Health",
    "MMDResult",
    "MMDTest",
    "Moments",
    "ParameterTable",
    "SlicedWasserstein",
    "SteinTest",
    "WeightedDraws",
    "aggregated_mmd_test",
    "coverage",
    "energy_overlap",
    "information",
    "inverse_information",
    "kernel_scale",
    "mmd_squared",
    "mmd_test",
    "mmd_z",
    "moments",
    "null_distribution",
    "sandwich",
    "sliced_wasserstein",
    "stein_test",
    "training_health",
]
