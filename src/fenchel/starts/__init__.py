"""Starts q0(x, v): flows, latent variable models, data points, a replay buffer."""

from fenchel.starts.empirical import Empirical, begins_at_data
from fenchel.starts.flow import FLOWS, Flow, affine_coupling, planar, spline_coupling
from fenchel.starts.latent import DeepLatent, deep_latent
from fenchel.starts.replay import Buffer, Replay
from fenchel.starts.residual import Contraction, Residual, residual
from fenchel.starts.start import AbstractDensityStart, AbstractStart, AbstractStatelessStart

__all__ = [
    "FLOWS",
    "AbstractDensityStart",
    "AbstractStart",
    "AbstractStatelessStart",
    "Buffer",
    "Contraction",
    "DeepLatent",
    "Empirical",
    "Flow",
    "Replay",
    "Residual",
    "affine_coupling",
    "begins_at_data",
    "deep_latent",
    "planar",
    "residual",
    "spline_coupling",
]
