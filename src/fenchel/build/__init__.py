"""From a configuration to the objects it names."""

from fenchel.build.dynamics import build_dynamics
from fenchel.build.learner import build_maxmin, build_minimise
from fenchel.build.model import Model, build_model
from fenchel.build.names import CUSTOM, DISCRETE, EMBEDDINGS
from fenchel.build.parts import Parts, build, noise_floor
from fenchel.build.potential import ACTIVATIONS, build_potential
from fenchel.build.start import build_start

__all__ = [
    "ACTIVATIONS",
    "CUSTOM",
    "DISCRETE",
    "EMBEDDINGS",
    "Model",
    "Parts",
    "build",
    "build_dynamics",
    "build_maxmin",
    "build_minimise",
    "build_model",
    "build_potential",
    "build_start",
    "noise_floor",
]
