"""The embedding by its name, or by several."""

import jax

from fenchel.choices import choose
from fenchel.dynamics import (
    RECIPES,
    AbstractDynamics,
    Chain,
    Options,
    Refresh,
    momentum_dimension,
)
from fenchel.shapes import Key


def build_dynamics(kind: str, options: Options, dim: int, key: Key) -> AbstractDynamics:
    """A recipe, or several joined by `+`, with a new momentum between any two."""
    names = kind.split("+")
    latents = momentum_dimensions(kind, options, dim)
    layers: list[AbstractDynamics] = []
    for index, name in enumerate(names):
        if index:
            layers.append(Refresh(latents[index], options.precisions[0], options.precisions[-1]))
        layers.append(RECIPES[name](dim, options, jax.random.fold_in(key, index)))
    return layers[0] if len(layers) == 1 else Chain(layers)


def momentum_dimensions(kind: str, options: Options, dim: int) -> list[int]:
    """The momentum's dimension in each of the recipes."""
    for name in kind.split("+"):
        choose(RECIPES, name, "dynamics")
    return [momentum_dimension(name, dim, options) for name in kind.split("+")]
