"""f and its sampler, as a configuration has them."""

from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from fenchel.build.dynamics import build_dynamics, momentum_dimensions
from fenchel.build.names import CUSTOM, EMBEDDINGS
from fenchel.build.potential import named_potential
from fenchel.build.start import named_start
from fenchel.choices import choose
from fenchel.config import Config, PotentialConfig
from fenchel.data import Standardiser
from fenchel.dynamics import AbstractDynamics
from fenchel.errors import InputError
from fenchel.estimation import domain_of, drawing_chains, states_of
from fenchel.estimators import Domain
from fenchel.methods import METHODS
from fenchel.potentials import (
    DiagonalGaussian,
    FullGaussian,
    InUnits,
    SelfNormalised,
    Within,
    base_scale,
)
from fenchel.samplers import AbstractSampler, Embedding
from fenchel.shapes import Array, Potential
from fenchel.starts import AbstractStart

COORDINATES = {"standard": False, "data": True}  # whether f sees the data in their own units
BUILD_PURPOSE = 2_311  # sets the keys of the parts apart from those of the run


class Model(NamedTuple):
    """f, and what draws from it."""

    potential: Potential
    sampler: AbstractSampler


def build_model(
    config: Config,
    dim: int,
    *,
    potential: Potential | None = None,
    start: AbstractStart | None = None,
    dynamics: AbstractDynamics | None = None,
    domain: Domain | None = None,
    scaling: Standardiser | None = None,
) -> Model:
    """The potential and the sampler; those parts that are given are taken as they are.

    `domain` is the configuration's in the coordinates that the sampler sees, and `scaling` the way
    from there to the data's own.
    """
    _require_own(config, {"potential": potential, "start": start, "dynamics": dynamics})
    keys = part_keys(config)
    if potential is None:
        potential = named_potential(config, dim, keys[0])
    if choose(COORDINATES, config.potential.coordinates, "coordinates"):
        scaling = scaling or Standardiser(np.zeros(dim), np.ones(dim))
        potential = _in_units(potential, config.potential, scaling)
    if config.potential.domain is not None:
        domain = domain or Domain(jnp.zeros(dim), jnp.ones(dim))
        potential = Within(potential, jnp.asarray(domain.low), jnp.asarray(domain.high))
    if config.method == "nce" or config.estimator.learns_constant:
        potential = SelfNormalised(potential)
    _check_method(config, potential)
    if config.method not in EMBEDDINGS:
        return Model(potential, drawing_chains(dim, potential, keys[2]))
    if dynamics is None:
        dynamics = build_dynamics(config.dynamics.kind, config.dynamics, dim, keys[2])
    if start is None:
        given = config.dynamics.kind == CUSTOM  # of an unknown momentum: taken to be the data's
        latent = (
            dim if given else momentum_dimensions(config.dynamics.kind, config.dynamics, dim)[0]
        )
        precision, scale = config.dynamics.precisions[0], base_scale(potential) or 1.0
        start = named_start(config, dim, latent, precision, scale, keys[1])
    return Model(potential, Embedding(start, dynamics, config.dynamics.precisions[-1]))


def _in_units(potential: Potential, config: PotentialConfig, scaling: Standardiser) -> Potential:
    """f of the data as they are; a named one begins where they are."""
    if states_of(potential) is not None or config.kind == "mlp":
        raise InputError(
            "The data's own coordinates are for models whose parameters have units: leave the "
            "coordinates of nets and of discrete models as they are."
        )
    mean, log_scale = (jnp.asarray(v, float) for v in (scaling.mean, np.log(scaling.scale)))
    if config.kind == "gaussian":
        potential = DiagonalGaussian(mean, -2 * log_scale)
    elif config.kind == "full-gaussian":
        potential = FullGaussian(mean, -jnp.diag(log_scale))
    return InUnits(potential, scaling.mean, scaling.scale)


def part_keys(config: Config) -> Array:
    """For f, the start and the dynamics."""
    return jax.random.split(jax.random.fold_in(jax.random.key(config.seed), BUILD_PURPOSE), 3)


def _check_method(config: Config, potential: Potential) -> None:
    """Refuse a method that cannot fit this potential, and say which can."""
    name = config.method
    if name == CUSTOM:
        return
    method = choose(METHODS, name, "method")
    if states_of(potential) is not None and not method.discrete:
        able = ", ".join(other for other, entry in METHODS.items() if entry.discrete)
        raise InputError(
            f"The method {name!r} moves points along gradients, and this model's variables are "
            f"discrete: choose from {able}."
        )
    if domain_of(potential) is not None and not method.bounded:
        able = ", ".join(other for other, entry in METHODS.items() if entry.bounded)
        raise InputError(
            f"The method {name!r} does not keep to a domain: choose from {able}, or take "
            "logarithms (or logits) of the data instead."
        )
    if method.curved and config.potential.activation == "relu":
        raise InputError(
            f"The method {name!r} sees f's curvature, and a ReLU net has none: use a smooth "
            "activation, such as silu."
        )


def _require_own(config: Config, given: dict[str, object]) -> None:
    for name, part in given.items():
        if getattr(config, name).kind == CUSTOM and part is None:
            raise InputError(
                f"The {name} of this run was an object of your own, which no file describes: pass "
                f"one of the same structure as `{name}=`, and its numbers are filled in."
            )
