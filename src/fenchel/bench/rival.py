"""FlowJAX on the same data: a neural spline flow, trained by FlowJAX's own loop at its defaults.

A flow has its density for free and fits nothing unnormalised; it says what a good density estimator
of this size makes of these sets. Its size is that of our f and start together.
"""

import time
from functools import cache
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import optax
import paramax
from flowjax.bijections import RationalQuadraticSpline
from flowjax.distributions import AbstractDistribution, Normal
from flowjax.flows import coupling_flow
from flowjax.train import fit_to_data
from flowjax.train.losses import MaximumLikelihoodLoss

from fenchel.bench.jobs import DIM, Prepared
from fenchel.data import Standardiser
from fenchel.parameters import learnt, split
from fenchel.shapes import PyTree

LAYERS, WIDTH, DEPTH = 8, 64, 2
KNOTS, INTERVAL = 10, 4
BATCH = 100  # FlowJAX's
NOISE_PURPOSE = 4_421  # sets the noise floor's key apart from the flow's

# FlowJAX's own defaults, given as objects of ours so that its step compiles once for all jobs.
OPTIMISER = optax.adam(5e-4)
LOSS = MaximumLikelihoodLoss()


class Flowing(NamedTuple):
    """A fitted flow, in the data's units."""

    flow: AbstractDistribution
    standardiser: Standardiser

    @property
    def kinds(self) -> tuple[str, ...]:
        return ("raw",)

    def sample(self, kind: str, n: int, seed: int) -> np.ndarray:
        drawn = _sample(self.flow, n, jax.random.key(seed))
        return self.standardiser.inverse(np.asarray(drawn, np.float64))

    def log_density(self, x: np.ndarray) -> np.ndarray:
        z = jnp.asarray(self.standardiser.forward(x), jnp.result_type(float))
        return np.asarray(_log_prob(self.flow, z), np.float64) - self.standardiser.log_scale

    def remarks(self) -> dict[str, Any]:
        return {}


def fit_flow(prepared: Prepared, epochs: int | None = None) -> tuple[Flowing, dict[str, Any]]:
    """The flow, and how its training went; `epochs` are at most FlowJAX's 100."""
    key = jax.random.key(prepared.job.seed)
    _compile(len(prepared.points))
    began = time.perf_counter()
    flow, losses = _train(new_flow(key), _seen(prepared), key, epochs)
    seconds = time.perf_counter() - began
    lost = not bool(np.isfinite(losses["val"]).all())
    about = {"seconds": seconds, "epochs": len(losses["train"]), "diverged": lost}
    return Flowing(flow, prepared.standardiser), about


def new_flow(key: jax.Array) -> AbstractDistribution:
    """Its numbers in the frame that all share: each flow made has functions of its own, and by
    those alone FlowJAX's step would compile anew."""
    return eqx.combine(learnt(_made(key)), _frame())


@cache
def _frame() -> PyTree:
    return split(_made(jax.random.key(0)))[1]


def _made(key: jax.Array) -> AbstractDistribution:
    return coupling_flow(
        key,
        base_dist=Normal(jnp.zeros(DIM)),
        transformer=RationalQuadraticSpline(knots=KNOTS, interval=INTERVAL),
        flow_layers=LAYERS,
        nn_width=WIDTH,
        nn_depth=DEPTH,
    )


def _seen(prepared: Prepared) -> jax.Array:
    """The data with our noise floor, drawn once: a curve has no density for a flow either."""
    key = jax.random.fold_in(jax.random.key(prepared.job.seed), NOISE_PURPOSE)
    noise = jax.random.normal(key, prepared.points.shape)
    return prepared.points + prepared.noise_floor * noise


@cache
def _compile(rows: int) -> None:
    """One epoch on noise, once for data of this size: what is timed afterwards is training."""
    key = jax.random.key(0)
    _train(new_flow(key), jax.random.normal(key, (rows, DIM)), key, 1)


def _train(flow: AbstractDistribution, data: jax.Array, key: jax.Array, epochs: int | None):
    most: dict[str, Any] = {} if epochs is None else {"max_epochs": epochs}
    return fit_to_data(
        key, flow, data, optimizer=OPTIMISER, loss_fn=LOSS, show_progress=False, **most
    )


@eqx.filter_jit
def _sample(flow: AbstractDistribution, n: int, key: jax.Array) -> jax.Array:
    return paramax.unwrap(flow).sample(key, (n,))


@eqx.filter_jit
def _log_prob(flow: AbstractDistribution, z: jax.Array) -> jax.Array:
    return paramax.unwrap(flow).log_prob(z)
