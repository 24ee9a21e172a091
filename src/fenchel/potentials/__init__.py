"""f: unnormalised log densities, p(x) ∝ exp f(x). Any callable from a point to a scalar is one."""

from fenchel.potentials.base_measure import GaussianBase, OnBase
from fenchel.potentials.gaussian import DiagonalGaussian, FullGaussian
from fenchel.potentials.linear import Linear
from fenchel.potentials.mlp import MLP

__all__ = ["MLP", "DiagonalGaussian", "FullGaussian", "GaussianBase", "Linear", "OnBase"]
