"""f: unnormalised log densities, p(x) ∝ exp f(x). Any callable from a point to a scalar is one."""

from fenchel.potentials import graphs
from fenchel.potentials.base_measure import GaussianBase, OnBase, base_scale
from fenchel.potentials.clamped import Clamped
from fenchel.potentials.gaussian import DiagonalGaussian, FullGaussian
from fenchel.potentials.in_units import InUnits
from fenchel.potentials.ising import Ising, Potts
from fenchel.potentials.linear import Linear
from fenchel.potentials.mlp import MLP
from fenchel.potentials.normalised import SelfNormalised
from fenchel.potentials.pictures import ConvNet, ResidualNet, Scaled, spectral
from fenchel.potentials.rbm import RestrictedBoltzmann
from fenchel.potentials.within import Within

__all__ = [
    "MLP",
    "Clamped",
    "ConvNet",
    "DiagonalGaussian",
    "FullGaussian",
    "GaussianBase",
    "InUnits",
    "Ising",
    "Linear",
    "OnBase",
    "Potts",
    "ResidualNet",
    "RestrictedBoltzmann",
    "Scaled",
    "SelfNormalised",
    "Within",
    "base_scale",
    "graphs",
    "spectral",
]
