"""Dynamics after dynamics: a chain of any, one repeated, or one with its own parameters a step."""

from abc import abstractmethod
from collections.abc import Callable, Sequence

import equinox as eqx
import jax
from jax import lax

from fenchel.dynamics.particle import AbstractDynamics, Particle
from fenchel.shapes import Array, Key, Potential, PyTree
from fenchel.stacking import stack, unstack

UNROLL = 4  # steps written out at a time
LARGE = 512  # dimensions, from which on a step costs more than the loop around it
LONGEST = 32  # steps that are written out nevertheless, on a GPU; more take long to compile


class AbstractStack(AbstractDynamics):
    """Dynamics made of others, which can be taken apart."""

    @abstractmethod
    def in_order(self) -> list[AbstractDynamics]:
        """The layers, one after the other as they are run."""

    def keys(self, key: Key) -> list[Key]:
        """What each of them gets of the stack's own key, by one call for all."""
        return list(jax.random.split(key, len(self.in_order())))


class Chain(AbstractStack):
    """Each layer after the one before; no layers at all leave the particle where it is."""

    layers: tuple[AbstractDynamics, ...]

    def __init__(self, layers: Sequence[AbstractDynamics] = ()):
        self.layers = tuple(layers)

    @property
    def exact(self) -> bool:
        return all(layer.exact for layer in self.layers)

    def __call__(self, f: Potential, particle: Particle, key: Key) -> Particle:
        for layer, own in zip(self.layers, self.keys(key), strict=True):
            particle = layer(f, particle, own)
        return particle

    def in_order(self) -> list[AbstractDynamics]:
        return list(self.layers)


class Repeat(AbstractStack):
    """The same layer `count` times with the same parameters, and `between` between any two.

    `remat` recomputes a step's inner values in the backward pass instead of keeping them, so that
    memory hardly grows with `count`; it costs about one more forward pass.
    """

    layer: AbstractDynamics
    count: int = eqx.field(static=True)
    between: AbstractDynamics = Chain()
    remat: bool = eqx.field(static=True, default=False)

    @property
    def exact(self) -> bool:
        return self.layer.exact and self.between.exact

    def __call__(self, f: Potential, particle: Particle, key: Key) -> Particle:
        others, last = _step_keys(key, self.count)

        def step(particle: Particle, keys: Key) -> Particle:
            return self.between(f, self.layer(f, particle, keys[0]), keys[1])

        unroll = _written_out(self.layer, particle.x.size, len(others), self.remat)
        return self.layer(f, _scan(step, particle, others, unroll, self.remat), last)

    def in_order(self) -> list[AbstractDynamics]:
        return [self.layer] + [self.between, self.layer] * (self.count - 1)


class PerStep(AbstractStack):
    """A layer a step, all of one kind, each with its own parameters; likewise what is between.

    `layers` and `between` are modules whose arrays have the steps as their first axis (`count` of
    the one, `count - 1` of the other), as made by `PerStep.of`.
    """

    layers: AbstractDynamics
    between: AbstractDynamics
    count: int = eqx.field(static=True)
    remat: bool = eqx.field(static=True, default=False)

    @classmethod
    def of(
        cls, layers: Sequence[AbstractDynamics], between: Sequence[AbstractDynamics], remat: bool
    ) -> "PerStep":
        """From a list of layers of equal shapes, and one fewer between them."""
        # Nothing is between the steps of a single one.
        return cls(stack(layers), stack(between) if between else Chain(), len(layers), remat)

    @property
    def exact(self) -> bool:
        return self.layers.exact and self.between.exact

    def __call__(self, f: Potential, particle: Particle, key: Key) -> Particle:
        others, last = _step_keys(key, self.count)
        again = (unstack(self.layers, slice(-1)), self.between)
        arrays, static = eqx.partition(again, eqx.is_array)

        def step(particle: Particle, inputs: tuple[PyTree, Key]) -> Particle:
            own, keys = inputs
            layer, between = eqx.combine(own, static)
            return between(f, layer(f, particle, keys[0]), keys[1])

        unroll = _written_out(self.layers, particle.x.size, len(others), self.remat)
        particle = _scan(step, particle, (arrays, others), unroll, self.remat)
        return unstack(self.layers, -1)(f, particle, last)

    def in_order(self) -> list[AbstractDynamics]:
        layers = [unstack(self.layers, 0)]
        for index in range(1, self.count):
            layers += [unstack(self.between, index - 1), unstack(self.layers, index)]
        return layers


def _step_keys(key: Key, count: int) -> tuple[Key, Key]:
    """Of each step but the last, with what comes after it: (count - 1, 2); and of the last.

    The last is no part of a loop, so that what nobody asks for in the end (often the score there,
    which is as dear as the step) is not computed.
    """
    keys = jax.random.split(key, 2 * count - 1)
    return keys[:-1].reshape(count - 1, 2), keys[-1]


def _scan(step: Callable, particle: Particle, inputs: PyTree, unroll: int, remat: bool) -> Particle:
    """All steps in turn, so many at a time written out."""
    step = jax.checkpoint(step) if remat else step

    def body(particle: Particle, x: PyTree) -> tuple[Particle, None]:
        particle = step(particle, x)
        return _arrived(particle) if unroll > UNROLL else particle, None

    return lax.scan(body, particle, inputs, unroll=unroll)[0]


def _arrived(particle: Particle) -> Particle:
    """The same, of which the compiler shall make no kernel that goes back through many steps.

    Such kernels compute the earlier steps anew for every later one, and take minutes to be made; of
    as few steps as are written out of a loop they do no harm.
    """
    moving = lambda p: (p.x, p.v, p.score)  # noqa: E731
    return eqx.tree_at(moving, particle, tuple(map(_by_itself, moving(particle))))


@jax.custom_jvp
def _by_itself(value: Array) -> Array:
    """The same, of which a derivative is computed before whatever comes of it."""
    return value


@_by_itself.defjvp
def _by_itself_jvp(primals: tuple[Array], tangents: tuple[Array]):
    return _by_itself(*primals), lax.optimization_barrier(tangents[0])


def _written_out(layer: AbstractDynamics, dim: int, count: int, remat: bool) -> int:
    """How many steps at a time: where they are small, a loop costs more than a step.

    Where they are large, what they keep for the way back is copied into arrays of the loop and out
    of them again, which a GPU spends time on that its arithmetic could have. Of loops in loops it
    is the innermost that is written out.
    """
    if remat:
        return 1
    if dim < LARGE:
        return UNROLL
    innermost = not any(map(_is_loop, jax.tree.leaves(layer, is_leaf=_is_loop)))
    return count if innermost and jax.default_backend() == "gpu" and 0 < count <= LONGEST else 1


def _is_loop(node: PyTree) -> bool:
    return isinstance(node, Repeat | PerStep)
