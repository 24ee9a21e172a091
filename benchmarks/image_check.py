"""Does the PyTorch twin of `benchmarks.images` compute what Fenchel does?

In float32, from the same parameters and the same noise: the same values of f, the same points after
the dynamics, the same gradients of the objective with respect to all that is learnt, and the same
singular vectors after a power iteration.
"""

import math
from itertools import product
from typing import TypeVar

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import paramax
import torch

from benchmarks.torch_pictures import Sizes, Twin
from fenchel.build import Parts, build
from fenchel.config import Config
from fenchel.dynamics import particle_at
from fenchel.layers import Doubling
from fenchel.parameters import fixed, split
from fenchel.potentials import Scaled
from fenchel.samplers import AbstractGradient, BackPropagation, Detached
from fenchel.shapes import Array, Key, Points, Potential, PyTree
from fenchel.starts import BatchNorm
from fenchel.weights import renewed

KEY = jax.random.key(11)  # of Fenchel's draws
GRADIENTS = {"detached": Detached(), "bptt": BackPropagation()}
SCORES = ("by_autograd", "written_out")
KINDS = ("f", "x_T", "d potential", "d generator", "d log_step_size", "singular")
STEEP = 300.0  # times f: enough for many scores to be clipped
TOLERANCE = 2e-5  # as a fraction of the largest number of its kind

Table = dict[str, np.ndarray]
T = TypeVar("T")


class DifferentWorkError(Exception):
    """The twin does not compute what Fenchel does."""


def check_same_work(config: Config) -> dict[str, float]:
    """Hold both of the twin's scores to Fenchel: with both gradients, with f as it is and steep.

    Raises a `DifferentWorkError`; returns the largest differences, as fractions of the largest
    numbers.
    """
    config = config.with_values(potential__precision="float32", start__precision="float32")
    parts = build(config, math.prod(config.pictures.shape))
    inputs = _inputs(config)
    worst: dict[str, float] = {}
    for gradient, scale in product(GRADIENTS, (1.0, STEEP)):
        with jax.default_matmul_precision("highest"):  # PyTorch's own, on a CPU
            wanted, numbers = _ours(_scaled(parts, scale), GRADIENTS[gradient], inputs)
        case = config.with_values(training__gradient=gradient, potential__scale=scale)
        for score in SCORES:
            got = _theirs(case, score, inputs, numbers)
            for kind in KINDS:
                name, off = f"{kind}, {gradient}", _difference(kind, got, wanted)
                worst[name] = float(np.maximum(worst.get(name, 0.0), off))  # NaN stays
    wrong = {name: off for name, off in worst.items() if not off < TOLERANCE}
    if wrong:
        raise DifferentWorkError(f"The twin is off by {wrong}, where {TOLERANCE} is allowed.")
    return worst


def _difference(kind: str, got: Table, wanted: Table) -> float:
    """The largest of a kind, as a fraction of the largest number of that kind.

    Not of each array by itself: a bias before a batch norm has no gradient but rounding errors.
    """
    names = [name for name in wanted if name.startswith(kind)]
    size = max(np.max(np.abs(wanted[name])) for name in names)
    return float(np.max([np.max(np.abs(got[name] - wanted[name])) for name in names]) / size)


def _inputs(config: Config) -> Table:
    """Points, momenta, and the noise of a draw."""
    batch, dim = config.training.batch, math.prod(config.pictures.shape)
    x_key, v_key, data_key = jax.random.split(jax.random.key(7), 3)
    # Points anywhere in the box and fast momenta: some must end at its walls.
    x, points = (jax.random.uniform(k, (batch, dim), minval=-1.0) for k in (x_key, data_key))
    v = 0.1 * jax.random.normal(v_key, (batch, dim))
    z, noise, v_noise = _noise(config, dim)
    table = {"points": points, "x": x, "v": v, "z": z, "noise": noise, "v_noise": v_noise}
    return {name: np.array(array) for name, array in table.items()}


# Fenchel's side.


def _scaled(parts: Parts, scale: float) -> Parts:
    return parts._replace(potential=Scaled(parts.potential.potential, fixed(scale)))


def _ours(parts: Parts, gradient: AbstractGradient, inputs: Table) -> tuple[Table, Table]:
    """What the twin is held to, and the parameters; both under the twin's names."""
    f_grads, sampler_grads = _gradients(parts, gradient, inputs["points"])
    wanted = {
        "f": _valued(parts.potential, inputs["points"]),
        "x_T": _moved(parts, inputs["x"], inputs["v"]),
        **_named("d", _learnt(f_grads, sampler_grads)),
        **_named("singular", _vectors(renewed(parts.potential))),
    }
    numbers = _learnt(parts.potential, parts.sampler) | _vectors(parts.potential)
    return jax.tree.map(np.array, wanted), jax.tree.map(np.array, numbers)


@eqx.filter_jit
def _valued(f: Potential, points: Points) -> Array:
    return jax.vmap(paramax.unwrap(f))(points)


@eqx.filter_jit
def _moved(parts: Parts, x: Points, v: Points) -> Points:
    f, sampler = paramax.unwrap((parts.potential, parts.sampler))

    def one(x, v):
        return sampler.dynamics(f, particle_at(f, x, v, jnp.zeros(())), jax.random.key(0)).x

    return jax.vmap(one)(x, v)


@eqx.filter_jit
def _gradients(parts: Parts, gradient: AbstractGradient, points: Points) -> tuple[PyTree, PyTree]:
    """Of the objective, as `Simultaneous` has it."""
    f_params, f_static = split(parts.potential)
    sampler_params, sampler_static = split(parts.sampler)

    def objective(f_params: PyTree, sampler_params: PyTree):
        f = eqx.combine(f_params, f_static)
        sampler = eqx.combine(sampler_params, sampler_static)
        particles, _ = gradient.draw(sampler, f, points, None, KEY)
        return parts.learner.bound.value(jax.vmap(paramax.unwrap(f))(points), particles)

    return jax.grad(objective, argnums=(0, 1))(f_params, sampler_params)


def _noise(config: Config, dim: int) -> tuple[Array, Array, Array]:
    """The standard normal numbers that a draw makes of its key: its keys, replayed."""

    def one(key: Key) -> tuple[Array, Array, Array]:
        keys = jax.random.split(key, 3)
        sizes = (config.start.latent, dim, dim)
        z, noise, v = (jax.random.normal(k, (n,)) for k, n in zip(keys, sizes, strict=True))
        return z, noise, v

    start_keys, _ = jax.random.split(KEY, (2, config.training.batch))
    return jax.vmap(one)(start_keys)


def _learnt(potential: PyTree, sampler: PyTree) -> dict[str, Array]:
    """Parameters, or gradients with respect to them, by their names in the twin."""
    net, generator = potential.potential, sampler.start.generator
    table = {"potential.last.weight": net.last.weight.numbers.weight.T}
    for index, layer in enumerate(net.layers):
        weight = layer.weight.numbers.weight
        table[f"potential.layers.{index}.weight"] = weight.transpose(3, 2, 0, 1)
    for index, layer in enumerate((*net.layers, net.last)):
        table[f"potential.biases.{index}"] = layer.bias
    dense, last = generator.layers[0], generator.layers[-1]
    table["generator.dense"], table["generator.dense_bias"] = dense.weight.numbers, dense.bias
    table["generator.last"] = last.weight.transpose(3, 2, 0, 1)
    table["generator.last_bias"] = last.bias
    doublings = [layer for layer in generator.layers if isinstance(layer, Doubling)]
    norms = [layer for layer in generator.layers if isinstance(layer, BatchNorm)]
    for index, (layer, norm) in enumerate(zip(doublings, norms, strict=True)):
        weight = layer.weight.numbers
        weight = weight.reshape(weight.shape[0], 2, 2, -1).transpose(0, 3, 1, 2)
        table[f"generator.doublings.{index}"] = weight
        table[f"generator.biases.{index}"] = layer.bias
        table[f"generator.gains.{index}"] = norm.gain
        table[f"generator.shifts.{index}"] = norm.shift
    table["log_step_size"] = sampler.dynamics.layer.step_size.args[0].reshape(net.shape)
    return table


def _vectors(potential: PyTree) -> dict[str, Array]:
    """The singular vectors; PyTorch has the inputs' channels before the window."""
    net, table = potential.potential, {}
    for index, layer in enumerate((*net.layers, net.last)):
        norm = paramax.unwrap(layer.weight.numbers.left), paramax.unwrap(layer.weight.numbers.right)
        left = norm[0].reshape(*layer.weight.numbers.weight.shape[:-1])
        name = "potential.last" if layer is net.last else f"potential.layers.{index}"
        table[f"{name}.inner"] = jnp.moveaxis(left, -1, 0).ravel()
        table[f"{name}.outer"] = norm[1]
    return table


# The twin's.


def _theirs(config: Config, score: str, inputs: Table, numbers: Table) -> Table:
    decay = 0.999  # of no importance here
    twin = Twin(np.zeros((1, inputs["x"].shape[1]), np.uint8), Sizes.of(config, decay), score)
    twin.load(numbers)
    tensors = {name: torch.as_tensor(array) for name, array in inputs.items()}
    z = tensors.pop("z")
    pictures = {name: flat.view(-1, *config.pictures.shape) for name, flat in tensors.items()}
    points, noise, v_noise = (pictures[name] for name in ("points", "noise", "v_noise"))
    weights = twin.potential.used()
    got = {"f": twin.potential(weights, points)}
    got["x_T"] = twin.move(weights, pictures["x"].requires_grad_(), pictures["v"])[0].flatten(1)
    grads = torch.autograd.grad(twin.objective(points, z, noise, v_noise), twin.learnt)
    got |= _named("d", dict(zip(twin.parameters(), grads, strict=True)))
    twin.potential.renew()
    vectors = {f"potential.{name}": each for name, each in twin.potential.named_buffers()}
    got |= _named("singular", vectors)
    return {name: tensor.detach().numpy() for name, tensor in got.items()}


def _named(kind: str, table: dict[str, T]) -> dict[str, T]:
    return {f"{kind} {name}": value for name, value in table.items()}
