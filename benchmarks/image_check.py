"""Does the PyTorch twin of `benchmarks.images` compute what Fenchel does?

In float32, from the same parameters and the same noise: the same values of f, the same points after
the dynamics, the same gradients of the objective with respect to all that is learnt, and the same
singular vectors after a power iteration.
"""

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
from fenchel.estimators import log_likelihood
from fenchel.parameters import split
from fenchel.shapes import Array, Key, Points, PyTree
from fenchel.starts import BatchNorm
from fenchel.layers import Doubling
from fenchel.weights import renewed

SCORES = ("by_autograd", "written_out")
STEEP = 300.0  # times f: enough for many scores to be clipped
TOLERANCE = 1e-4  # as a fraction of the largest number of its kind

Table = dict[str, np.ndarray]


class DifferentWorkError(Exception):
    """The twin does not compute what Fenchel does."""


def check_same_work(config: Config) -> dict[str, float]:
    """Hold both of the twin's scores to Fenchel, with f as it is and with a steep one.

    Raises a `DifferentWorkError`; returns the largest differences, as fractions of what they are of.
    """
    worst: dict[str, float] = {}
    for scale in (config.potential.scale, STEEP * config.potential.scale):
        case = config.with_values(
            potential__precision="float32", start__precision="float32", potential__scale=scale
        )
        with jax.default_matmul_precision("highest"):
            wanted, inputs, numbers = _ours(case)
        for score in SCORES:
            for name, got in _theirs(case, score, inputs, numbers).items():
                size = np.max(np.abs(wanted[name])) + np.finfo(np.float32).tiny
                off = float(np.max(np.abs(got - wanted[name])) / size)
                worst[name] = max(worst.get(name, 0.0), off)
    wrong = {name: off for name, off in worst.items() if not off < TOLERANCE}
    if wrong:
        raise DifferentWorkError(f"The twin is off by {wrong}, where {TOLERANCE} is allowed.")
    return worst


# Fenchel's side.


def _ours(config: Config) -> tuple[Table, Table, Table]:
    """(what the twin is held to, what both get, the parameters under the twin's names)."""
    shape, batch = config.pictures.shape, config.training.batch
    dim = int(np.prod(shape))
    parts = build(config, dim)
    x_key, v_key, data_key, key = jax.random.split(jax.random.key(7), 4)
    # Points anywhere in the box and fast momenta: some must end at its walls.
    x, points = (jax.random.uniform(k, (batch, dim), minval=-1.0) for k in (x_key, data_key))
    v = 0.1 * jax.random.normal(v_key, (batch, dim))
    z, noise, v_noise = _noise(config, dim, key)
    f_grads, sampler_grads = _gradients(parts, points, key)
    wanted = {
        "f": jax.vmap(paramax.unwrap(parts.potential))(points),
        "x_T": _moved(parts, x, v),
        **_learnt(f_grads, sampler_grads),
        **_vectors(renewed(parts.potential)),
    }
    inputs = {"points": points, "x": x, "v": v, "z": z, "noise": noise, "v_noise": v_noise}
    numbers = _learnt(parts.potential, parts.sampler) | _vectors(parts.potential)
    return tuple(jax.tree.map(np.array, table) for table in (wanted, inputs, numbers))


@eqx.filter_jit
def _moved(parts: Parts, x: Points, v: Points) -> Points:
    f, sampler = paramax.unwrap((parts.potential, parts.sampler))

    def one(x, v):
        return sampler.dynamics(f, particle_at(f, x, v, jnp.zeros(())), jax.random.key(0)).x

    return jax.vmap(one)(x, v)


@eqx.filter_jit
def _gradients(parts: Parts, points: Points, key: Key) -> tuple[PyTree, PyTree]:
    """Of the objective, as `Simultaneous` has it."""
    f_params, f_static = split(parts.potential)
    sampler_params, sampler_static = split(parts.sampler)

    def objective(f_params: PyTree, sampler_params: PyTree):
        f = eqx.combine(f_params, f_static)
        sampler = eqx.combine(sampler_params, sampler_static)
        particles, _ = parts.learner.gradient.draw(sampler, f, points, None, key)
        return log_likelihood(paramax.unwrap(f), points, particles, parts.learner.bound)

    return jax.grad(objective, argnums=(0, 1))(f_params, sampler_params)


def _noise(config: Config, dim: int, key: Key) -> tuple[Array, Array, Array]:
    """The standard normal numbers that a draw makes of this key: its keys, replayed."""

    def one(key: Key) -> tuple[Array, Array, Array]:
        start_key, _ = jax.random.split(key)
        keys = jax.random.split(start_key, 3)
        sizes = (config.start.latent, dim, dim)
        z, noise, v = (jax.random.normal(k, (n,)) for k, n in zip(keys, sizes, strict=True))
        return z, noise, v

    return jax.vmap(one)(jax.random.split(key, config.training.batch))


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
    pictures = {
        name: torch.as_tensor(array).view(-1, *config.pictures.shape)
        for name, array in inputs.items()
        if name != "z"
    }
    x = pictures["x"].requires_grad_()
    z, weights = torch.as_tensor(inputs["z"]), twin.potential.used()
    got = {"f": twin.potential(weights, pictures["points"])}
    got["x_T"] = twin.move(weights, x, pictures["v"])[0].flatten(1)
    value = twin.objective(pictures["points"], z, pictures["noise"], pictures["v_noise"])
    got |= dict(zip(twin.parameters(), torch.autograd.grad(value, twin.learnt), strict=True))
    twin.potential.renew()
    got |= {f"potential.{name}": each for name, each in twin.potential.named_buffers()}
    return {name: tensor.detach().numpy() for name, tensor in got.items()}
