"""How good are the samples? Measures that compare points with points."""

from fenchel.evaluate.coverage import Coverage, coverage
from fenchel.evaluate.mmd import MMDResult, kernel_scale, mmd_squared, mmd_z, null_distribution
from fenchel.evaluate.overlap import EnergyOverlap, energy_overlap
from fenchel.evaluate.stein_test import SteinTest, stein_test
from fenchel.evaluate.two_sample import AggregatedMMDTest, MMDTest, aggregated_mmd_test, mmd_test
from fenchel.evaluate.wasserstein import SlicedWasserstein, sliced_wasserstein

__all__ = [
    "AggregatedMMDTest",
    "Coverage",
    "EnergyOverlap",
    "MMDResult",
    "MMDTest",
    "SlicedWasserstein",
    "SteinTest",
    "aggregated_mmd_test",
    "coverage",
    "energy_overlap",
    "kernel_scale",
    "mmd_squared",
    "mmd_test",
    "mmd_z",
    "null_distribution",
    "sliced_wasserstein",
    "stein_test",
]
