"""The toys' model and sampler as in the paper's released code, part by part.

What sets it apart from a configuration of ours: nets and flow begin as Glorot's, flows have a
hyperbolic tangent, every leapfrog is a Metropolis proposal, both score and momentum are clipped,
the step sizes are plain numbers, which may change their sign, the momenta are standard normal ones
at no cost, samples are kept in the data's range, Adam clips its gradients, and nothing is averaged.

What remains different: a step that is not finite is dropped here, and the rates backed off, where
the code puts zeros into its gradient. Here the range is that of all data, and a point that leaves
it is brought back whether or not it was accepted; there it is that of a thousand points, and the
script that asks for it spells the option in a way that its parser may pass over.
"""

from collections.abc import Callable
from dataclasses import replace

import equinox as eqx
import jax
import jax.numpy as jnp
from flowjax.bijections import Chain as Composed
from flowjax.distributions import AbstractDistribution, StandardNormal, Transformed

from fenchel.bench.clipped_adam import clipped_adam
from fenchel.bench.planar import Planar
from fenchel.build import ACTIVATIONS, Parts, build_maxmin
from fenchel.config import Config
from fenchel.dynamics import (
    AbstractDynamics,
    Box,
    CentredNormal,
    Chain,
    ClipNorm,
    Drift,
    Kick,
    Leapfrog,
    Metropolis,
    PerStep,
    Refresh,
)
from fenchel.parameters import given
from fenchel.potentials import MLP
from fenchel.samplers import Embedding
from fenchel.shapes import Array, Key, Points
from fenchel.starts import Flow

PURPOSE = 5_303  # sets the keys of the parts apart from those of the run


def released(config: Config, points: Points) -> Parts:
    """f, its sampler and what learns them, with the sizes and rates of the configuration."""
    dim = points.shape[1]
    keys = jax.random.split(jax.random.fold_in(jax.random.key(config.seed), PURPOSE))
    potential = net(config, dim, keys[0])
    start = Flow(planar(dim, config.start.layers or 10, keys[1]), standard_normal(dim))
    sampler = Embedding(start, dynamics(config, points))
    training = config.training
    learner = replace(
        build_maxmin(training, sampler, dim),
        potential_optimiser=clipped_adam(training.potential_rate, training.first_moment),
        start_optimiser=clipped_adam(training.start_rate, training.first_moment),
        dynamics_optimiser=clipped_adam(training.dynamics_rate, training.first_moment),
        decay=0.0,
    )
    return Parts(potential, sampler, learner)


def net(config: Config, dim: int, key: Key) -> MLP:
    sizes = config.potential
    mlp = MLP(dim, sizes.width, sizes.depth, ACTIVATIONS[sizes.activation], key=key)
    layers = tuple(map(_as_glorot, mlp.net.layers, jax.random.split(key, len(mlp.net.layers))))
    return eqx.tree_at(lambda mlp: mlp.net.layers, mlp, layers)


def _as_glorot(layer: eqx.nn.Linear, key: Key) -> eqx.nn.Linear:
    """The bias as a matrix of one row, too."""
    outputs, inputs = layer.weight.shape
    weight_key, bias_key = jax.random.split(key)
    weight = glorot(weight_key, layer.weight.shape, inputs + outputs)
    bias = glorot(bias_key, (outputs,), 1 + outputs)
    return eqx.tree_at(lambda layer: (layer.weight, layer.bias), layer, (weight, bias))


def glorot(key: Key, shape: tuple[int, ...], ends: int) -> Array:
    """Uniform, of variance 2 / ends, the number of a layer's inputs and outputs."""
    limit = (6 / ends) ** 0.5
    return jax.random.uniform(key, shape, minval=-limit, maxval=limit)


def planar(dim: int, layers: int, key: Key) -> AbstractDistribution:
    """To Glorot a vector has as many inputs as outputs."""

    def layer(key: Key) -> Planar:
        w_key, u_key, b_key = jax.random.split(key, 3)
        w, u = (glorot(own, (dim,), 2 * dim) for own in (w_key, u_key))
        return Planar(w, u, glorot(b_key, (), 2))

    base = StandardNormal((dim,))  # type: ignore[call-arg]  # its __init__ is hidden from mypy
    return Transformed(base, Composed([layer(own) for own in jax.random.split(key, layers)]))


def standard_normal(dim: int) -> CentredNormal:
    """Its scale is not learnt."""
    return given(CentredNormal(dim))


def dynamics(config: Config, points: Points) -> AbstractDynamics:
    """One leapfrog with each momentum, accepted or not, and back into the data's range."""
    if config.dynamics.kind == "none":
        return Chain()
    dim, options = points.shape[1], config.dynamics
    clip: Callable[[Array], Array] = ClipNorm(options.clip_norm or jnp.inf)
    size = jnp.full((dim,), options.step_size)
    leapfrog = Leapfrog(size, Kick(clip=clip), Drift(velocity=clip))
    step = Chain([Metropolis(leapfrog), Box(float(points.min()), float(points.max()))])
    fresh = eqx.tree_at(lambda refresh: refresh.momentum, Refresh(dim), standard_normal(dim))
    return PerStep.of([step] * options.steps, [fresh] * (options.steps - 1), remat=False)
