"""The two steps of the paper's section 3.2, each a splitting into kicks and drifts."""

from typing import TypeVar

import equinox as eqx
import jax
import numpy as np
import paramax

from fenchel.dynamics.damped_step import Damped
from fenchel.dynamics.drift import Drift
from fenchel.dynamics.kick import Kick
from fenchel.dynamics.particle import AbstractDynamics, Particle
from fenchel.parameters import times
from fenchel.shapes import Array, Key, Potential, PyTree, Scalar

T = TypeVar("T", bound=PyTree)


class Leapfrog(AbstractDynamics):
    """Half a kick, a drift, half a kick.

    With the default kick and drift this is plain HMC; with S_v, S_x, g_v and g_x given or learnt
    it is the generalized leapfrog, in a momentum space of any dimension.
    """

    step_size: Array
    kick: Kick = Kick()
    drift: Drift = Drift()

    @property
    def exact(self) -> bool:
        return True

    def __call__(self, f: Potential, particle: Particle, key: Key) -> Particle:
        particle = self.kick(particle, self.step_size / 2)
        particle = self.drift(f, particle, self.step_size)
        return self.kick(particle, self.step_size / 2)


class Langevin(AbstractDynamics):
    """Half a kick and a drift: one step of Langevin dynamics with noise v.

    With v ~ N(0, I) the point moves by ε²/2 ∇f + ε v: Langevin dynamics of step ε².
    """

    step_size: Array
    kick: Kick = Kick()
    drift: Drift = Drift()

    @property
    def exact(self) -> bool:
        return True

    def __call__(self, f: Potential, particle: Particle, key: Key) -> Particle:
        return self.drift(f, self.kick(particle, self.step_size / 2), self.step_size)


def scaled(tree: T, factor: Scalar | float) -> T:
    """Every step in the tree with its size multiplied by this; parameters may still be wrapped."""

    def longer(node):
        if not _is_step(node):
            return node
        return eqx.tree_at(lambda step: step.step_size, node, times(node.step_size, factor))

    return jax.tree.map(longer, tree, is_leaf=_is_step)


def step_sizes(tree: PyTree) -> np.ndarray:
    """The sizes of all steps in the tree, in a row."""
    nodes = jax.tree.leaves(tree, is_leaf=_is_step)
    sizes = [np.ravel(paramax.unwrap(node.step_size)) for node in nodes if _is_step(node)]
    return np.concatenate(sizes) if sizes else np.zeros(0)


def _is_step(node: object) -> bool:
    return isinstance(node, Leapfrog | Langevin | Damped)
