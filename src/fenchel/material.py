"""The data as f sees them: standardised, within their domain, in batches."""

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from fenchel.build import DISCRETE, build_potential
from fenchel.config import Config
from fenchel.data import Pictures, Samples, Standardiser, default_columns
from fenchel.errors import InputError
from fenchel.estimation import states_of
from fenchel.estimators import Domain
from fenchel.picture_parts import picture_shape
from fenchel.train import AbstractBatches, Batches, PictureBatches

KEPT_POINTS = 10_000  # of the data, in models whose sampler begins at data points
SEEN_PURPOSE = 5_417  # sets that noise apart from all others


class Material(NamedTuple):
    """The data as f sees them."""

    points: jax.Array  # all of a table, or some of many pictures
    columns: tuple[str, ...]
    standardiser: Standardiser
    domain: Domain | None


def material_of(config: Config, samples: Samples | Pictures, own: dict[str, Any]) -> Material:
    if isinstance(samples, Samples):
        standardiser = _scaling(config, samples, own)
        points = jnp.asarray(standardiser.forward(samples.x), jnp.result_type(float))
        domain = _domain(config, samples, standardiser)
        return Material(points, samples.columns, standardiser, domain)
    standardiser = Standardiser.of_levels(samples.dim, config.pictures.dequantise)
    chosen = np.random.default_rng(config.seed).permutation(len(samples))[:KEPT_POINTS]
    rows = standardiser.forward(samples.rows()[np.sort(chosen)])
    points = jnp.asarray(rows, jnp.result_type(float))
    return Material(points, default_columns(samples.dim), standardiser, None)


def _scaling(config: Config, samples: Samples, own: dict[str, Any]) -> Standardiser:
    """Standard units; for a discrete model its states."""
    potential = own.get("potential")
    if potential is None and config.potential.kind in DISCRETE:
        potential = build_potential(config.potential, samples.x.shape[1], jax.random.key(0))
    states = None if potential is None else states_of(potential)
    return Standardiser.of(samples.x) if states is None else Standardiser.coding(samples.x, states)


def _domain(config: Config, samples: Samples, standardiser: Standardiser) -> Domain | None:
    """The configuration's domain, in standard units."""
    ends = config.potential.domain
    if ends is None:
        return None
    if not isinstance(ends, tuple | list) or len(ends) != 2 or not ends[0] < ends[1]:
        raise InputError(f"The domain is {ends}: give its low and its high end, as in 0,inf.")
    low, high = (np.full(samples.x.shape[1], end) for end in ends)
    outside = int(np.sum(np.any((samples.x < low) | (samples.x > high), axis=1)))
    if outside:
        raise InputError(
            f"{outside} of {len(samples.x)} rows are outside of the domain {ends}: drop them, or "
            "widen it."
        )
    low, high = standardiser.forward(low), standardiser.forward(high)
    return Domain(
        jnp.asarray(low, jnp.result_type(float)), jnp.asarray(high, jnp.result_type(float))
    )


def noisy(data: jax.Array, floor: float, key: jax.Array) -> jax.Array:
    if floor == 0:
        return data
    noise = jax.random.normal(jax.random.fold_in(key, SEEN_PURPOSE), data.shape, data.dtype)
    return data + floor * noise


def batches_of(
    config: Config, samples: Samples | Pictures, data: jax.Array, floor: float
) -> AbstractBatches:
    if isinstance(samples, Samples):
        return Batches(data, config.training.batch, floor)
    pictures = config.pictures
    return PictureBatches(
        jnp.asarray(samples.rows()),
        picture_shape(config),
        config.training.batch,
        pictures.dequantise,
        pictures.flips,
        floor,
    )
