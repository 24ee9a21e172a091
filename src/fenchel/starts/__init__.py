"""Starts q0(x, v): flows, latent variable models, data points, a replay buffer."""

from fenchel.starts.batch_norm import BATCH, BatchNorm, SettledNorm
from fenchel.starts.empirical import Empirical, begins_at_data
from fenchel.starts.flow import FLOWS, Flow, affine_coupling, planar, spline_coupling
from fenchel.starts.fresh import AbstractFresh, Noise, Occluded
from fenchel.starts.generator import Generator, deconvolutional, residual_generator
from fenchel.starts.latent import DeepLatent, deep_latent
from fenchel.starts.picture import DeepPicture
from fenchel.starts.replay import Buffer, Replay, put_back
from fenchel.starts.residual import Contraction, Residual, residual
from fenchel.starts.start import AbstractDensityStart, AbstractStart, AbstractStatelessStart

__all__ = [
    "BATCH",
    "FLOWS",
    "AbstractDensityStart",
    "AbstractFresh",
    "AbstractStart",
    "AbstractStatelessStart",
    "BatchNorm",
    "Buffer",
    "Contraction",
    "DeepLatent",
    "DeepPicture",
    "Empirical",
    "Flow",
    "Generator",
    "Noise",
    "Occluded",
    "Replay",
    "Residual",
    "SettledNorm",
    "affine_coupling",
    "begins_at_data",
    "deconvolutional",
    "deep_latent",
    "planar",
    "put_back",
    "residual",
    "residual_generator",
    "spline_coupling",
]
