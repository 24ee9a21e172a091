"""Dynamics embeddings: maps of phase space that carry their exact density along."""

from fenchel.dynamics.clip import ClipNorm, ClipValue
from fenchel.dynamics.drift import Drift
from fenchel.dynamics.inexact import Box, Metropolis
from fenchel.dynamics.kick import Kick
from fenchel.dynamics.momentum import CentredNormal, Refresh
from fenchel.dynamics.nets import MomentumScale, MomentumVelocity, ScoreForce, ScoreScale
from fenchel.dynamics.particle import AbstractDynamics, Particle, kinetic_energy, particle_at
from fenchel.dynamics.recipes import (
    RECIPES,
    Options,
    generalized_hmc,
    generalized_langevin,
    hmc,
    langevin,
    no_dynamics,
)
from fenchel.dynamics.stack import Chain, PerStep, Repeat
from fenchel.dynamics.steps import Langevin, Leapfrog

__all__ = [
    "RECIPES",
    "AbstractDynamics",
    "Box",
    "CentredNormal",
    "Chain",
    "ClipNorm",
    "ClipValue",
    "Drift",
    "Kick",
    "Langevin",
    "Leapfrog",
    "Metropolis",
    "MomentumScale",
    "MomentumVelocity",
    "Options",
    "Particle",
    "PerStep",
    "Refresh",
    "Repeat",
    "ScoreForce",
    "ScoreScale",
    "generalized_hmc",
    "generalized_langevin",
    "hmc",
    "kinetic_energy",
    "langevin",
    "no_dynamics",
    "particle_at",
]
