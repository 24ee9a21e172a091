"""Dynamics embeddings: maps of phase space, or of x alone, that carry their density along."""

from fenchel.dynamics.clip import ClipNorm, ClipValue
from fenchel.dynamics.damped_step import Damped
from fenchel.dynamics.drift import Drift
from fenchel.dynamics.fixed_point import step_back
from fenchel.dynamics.flow import AbstractFlow, Undone, shortened
from fenchel.dynamics.gibbs import Gibbs, HiddenGibbs
from fenchel.dynamics.gradient_flow import GradientFlow, along_score
from fenchel.dynamics.gradient_step import GradientStep
from fenchel.dynamics.inexact import Box, Metropolis
from fenchel.dynamics.inverse import flows_of, undo
from fenchel.dynamics.kick import Kick
from fenchel.dynamics.log_det import (
    AbstractLogDet,
    ChebyshevLogDet,
    ExactLogDet,
    FirstOrderLogDet,
    LanczosLogDet,
    TaylorLogDet,
)
from fenchel.dynamics.momentum import CentredNormal, Refresh
from fenchel.dynamics.nets import (
    FlowVelocity,
    MomentumScale,
    MomentumVelocity,
    ScoreForce,
    ScoreScale,
)
from fenchel.dynamics.particle import (
    AbstractDynamics,
    Particle,
    acceptance,
    kinetic_energy,
    particle_at,
)
from fenchel.dynamics.probes import AbstractProbes, Basis, Rademacher, trace
from fenchel.dynamics.radius import AbstractRadius, Given, PowerIteration
from fenchel.dynamics.recipes import (
    RECIPES,
    SMALL,
    Options,
    continuous,
    damped,
    deterministic,
    generalized_continuous,
    generalized_hmc,
    generalized_langevin,
    hmc,
    langevin,
    momentum_dimension,
    no_dynamics,
)
from fenchel.dynamics.solve import Solve, adaptive, fixed
from fenchel.dynamics.stack import Chain, PerStep, Repeat
from fenchel.dynamics.steps import Langevin, Leapfrog, scaled, step_sizes
from fenchel.dynamics.unroll import follow, unroll

__all__ = [
    "RECIPES",
    "SMALL",
    "AbstractDynamics",
    "AbstractFlow",
    "AbstractLogDet",
    "AbstractProbes",
    "AbstractRadius",
    "Basis",
    "Box",
    "CentredNormal",
    "Chain",
    "ChebyshevLogDet",
    "ClipNorm",
    "ClipValue",
    "Damped",
    "Drift",
    "ExactLogDet",
    "FirstOrderLogDet",
    "FlowVelocity",
    "Gibbs",
    "Given",
    "GradientFlow",
    "GradientStep",
    "HiddenGibbs",
    "Kick",
    "LanczosLogDet",
    "Langevin",
    "Leapfrog",
    "Metropolis",
    "MomentumScale",
    "MomentumVelocity",
    "Options",
    "Particle",
    "PerStep",
    "PowerIteration",
    "Rademacher",
    "Refresh",
    "Repeat",
    "ScoreForce",
    "ScoreScale",
    "Solve",
    "TaylorLogDet",
    "Undone",
    "acceptance",
    "adaptive",
    "along_score",
    "continuous",
    "damped",
    "deterministic",
    "fixed",
    "flows_of",
    "follow",
    "generalized_continuous",
    "generalized_hmc",
    "generalized_langevin",
    "hmc",
    "kinetic_energy",
    "langevin",
    "momentum_dimension",
    "no_dynamics",
    "particle_at",
    "scaled",
    "shortened",
    "step_back",
    "step_sizes",
    "trace",
    "undo",
    "unroll",
]
