"""Fenchel: fit unnormalised models p(x) ∝ exp f(x), and learn their sampler with them.

    import fenchel as fx
    fit = fx.fit("moons")
    fit.sample(1000)
    fit.log_density(x)

The parts, for those who build their own, are in `fx.potentials`, `fx.dynamics`, `fx.starts`,
`fx.samplers`, `fx.estimators`, `fx.train`, `fx.data`, `fx.evaluate`,
`fx.evidence` and `fx.report`.
"""

from fenchel import (
    data,
    dynamics,
    estimators,
    evaluate,
    evidence,
    parameters,
    potentials,
    report,
    samplers,
    starts,
    train,
)
from fenchel.config import Config
from fenchel.errors import DivergenceError, FenchelError, InputError
from fenchel.evidence import LogPartition
from fenchel.fitting import fit
from fenchel.result import Fit
from fenchel.samplers import Embedding
from fenchel.saving import load
from fenchel.train import MaxMin
from fenchel.version import __version__

__all__ = [
    "Config",
    "DivergenceError",
    "Embedding",
    "FenchelError",
    "Fit",
    "InputError",
    "LogPartition",
    "MaxMin",
    "__version__",
    "data",
    "dynamics",
    "estimators",
    "evaluate",
    "evidence",
    "fit",
    "load",
    "parameters",
    "potentials",
    "report",
    "samplers",
    "starts",
    "train",
]
