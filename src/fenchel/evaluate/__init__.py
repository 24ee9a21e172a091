"""How good are the samples? Measures that compare points with points."""

from fenchel.evaluate.mmd import MMDResult, kernel_scale, mmd_squared, mmd_z, null_distribution

__all__ = ["MMDResult", "kernel_scale", "mmd_squared", "mmd_z", "null_distribution"]
