"""f by its name."""

from collections.abc import Callable

import jax
import jax.numpy as jnp
import numpy as np

from fenchel.activations import leaky_relu, silu
from fenchel.choices import choose
from fenchel.config import Config, PotentialConfig
from fenchel.errors import InputError
from fenchel.picture_parts import is_of_pictures, picture_potential, picture_shape
from fenchel.potentials import (
    MLP,
    DiagonalGaussian,
    FullGaussian,
    GaussianBase,
    Ising,
    OnBase,
    Potts,
    RestrictedBoltzmann,
    graphs,
)
from fenchel.shapes import Array, Key, Potential

ACTIVATIONS: dict[str, Callable[[Array], Array]] = {
    "silu": silu,
    "softplus": jax.nn.softplus,
    "tanh": jnp.tanh,
    "gelu": jax.nn.gelu,
    "relu": jax.nn.relu,
    "leaky-relu": leaky_relu,
}


def named_potential(config: Config, dim: int, key: Key) -> Potential:
    """Of a table's columns, or of pictures."""
    if not is_of_pictures(config):
        return build_potential(config.potential, dim, key)
    activation = choose(ACTIVATIONS, config.potential.activation, "activation")
    return picture_potential(config.potential, picture_shape(config), activation, key)


def build_potential(config: PotentialConfig, dim: int, key: Key) -> Potential:
    activation = choose(ACTIVATIONS, config.activation, "activation")
    if config.units < 1:
        raise InputError(f"potential.units is {config.units}: give at least one hidden unit.")
    kinds: dict[str, Callable[[], Potential]] = {
        "mlp": lambda: MLP(dim, config.width, config.depth, activation, key=key),
        "gaussian": lambda: DiagonalGaussian(jnp.zeros(dim), jnp.zeros(dim)),
        "full-gaussian": lambda: FullGaussian(jnp.zeros(dim), jnp.zeros((dim, dim))),
        "ising": lambda: Ising(dim, _graph(config.graph, dim)),
        "potts": lambda: Potts(dim, config.states, _graph(config.graph, dim)),
        "rbm": lambda: RestrictedBoltzmann(dim, config.units, key=key),
    }
    potential = choose(kinds, config.kind, "potential")()
    if config.base_scale is None or config.kind != "mlp":
        return potential
    return OnBase(potential, GaussianBase(config.base_scale))


def _graph(name: str, dim: int) -> np.ndarray:
    kinds = {"complete": graphs.complete, "chain": graphs.chain}
    rows, cross, columns = name.partition("x")
    if cross and rows.isdigit() and columns.isdigit():
        if int(rows) * int(columns) != dim:
            raise InputError(f"The graph {name} has not the {dim} places that the data have.")
        return graphs.grid(int(rows), int(columns))
    return choose(kinds, name, "graph (or grid, such as 4x5)")(dim)
