"""The nearest of the training data to each sample: has the model learnt them by heart?"""

from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int

from fenchel.errors import InputError

ROWS_PER_BLOCK = 4096  # of either set; their distances take 64 MiB


class Nearest(NamedTuple):
    """For each query the reference, or the few, nearest to it, and how far away."""

    indices: Int[np.ndarray, "n ..."]
    distances: Float[np.ndarray, "n ..."]


def nearest(queries: np.ndarray, references: np.ndarray) -> Nearest:
    """The nearest of `references` (m, ...) to each of `queries` (n, ...), in Euclidean distance.

    Points may be pictures, of bytes too, or features. Where several are about as near, to within
    single precision of the whole set's extent, any of them may be named; its distance is exact.
    """
    points, others = _checked(queries, references)
    # Squared distances come from a matrix product, which loses digits far from the origin.
    middle = others.mean(axis=0, dtype=np.float64).astype(np.float32)
    centred = [jnp.asarray(block - middle) for block in _split(points)]
    indices, squares = np.zeros(len(points), int), np.full(len(points), np.inf)
    passed = 0
    for block in _split(others):
        candidates = jnp.asarray(block - middle)
        found = [_closest(part, candidates) for part in centred]
        places, closest = (np.concatenate(parts) for parts in zip(*found, strict=True))
        nearer = closest < squares
        indices[nearer], squares[nearer] = passed + places[nearer], closest[nearer]
        passed += len(block)
    return Nearest(indices, _distances(points, others, indices))


def few_nearest(queries: np.ndarray, references: np.ndarray, k: int) -> Nearest:
    """The k of `references` nearest to each of a few `queries`, the nearest first: (n, k).

    Of all queries, the distances to all references are held at once.
    """
    points, others = _checked(queries, references)
    if not 1 <= k <= len(others):
        raise InputError(f"{k} neighbours among {len(others)}: give from 1 to {len(others)}.")
    middle = others.mean(axis=0, dtype=np.float64).astype(np.float32)
    centred = jnp.asarray(points - middle)
    parts = [np.asarray(_squares(centred, jnp.asarray(block - middle))) for block in _split(others)]
    indices = np.argsort(np.concatenate(parts, axis=1), axis=1)[:, :k]
    distances = [_distances(points, others, column) for column in indices.T]
    return Nearest(indices, np.stack(distances, axis=1))


def _checked(queries: np.ndarray, references: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    queries, references = np.asarray(queries), np.asarray(references)
    if queries.ndim < 2 or queries.shape[1:] != references.shape[1:]:
        raise InputError(
            f"The queries have shape {queries.shape} and the references {references.shape}: give "
            "(n, ...) and (m, ...) with the same axes after the first."
        )
    if 0 in queries.shape or 0 in references.shape:
        raise InputError("There are no queries or no references: give at least one of each.")
    flat = tuple(points.reshape(len(points), -1) for points in (queries, references))
    points, others = (values.astype(np.float32, copy=False) for values in flat)
    if not (np.isfinite(points).all() and np.isfinite(others).all()):
        raise InputError("Some points are not finite: drop those first.")
    return points, others


def _split(points: np.ndarray) -> list[np.ndarray]:
    return np.array_split(points, -(-len(points) // ROWS_PER_BLOCK))


@jax.jit
def _closest(
    queries: Float[Array, "n d"], references: Float[Array, "m d"]
) -> tuple[Int[Array, " n"], Float[Array, " n"]]:
    squares = _squares(queries, references)
    return jnp.argmin(squares, axis=1), jnp.min(squares, axis=1)


@jax.jit
def _squares(queries: Float[Array, "n d"], references: Float[Array, "m d"]) -> Float[Array, "n m"]:
    # Accelerators otherwise round products to 10 bits or so, and would name the wrong ones.
    products = jnp.matmul(queries, references.T, precision=jax.lax.Precision.HIGHEST)
    squares = jnp.sum(queries**2, axis=1)[:, None] + jnp.sum(references**2, axis=1)[None, :]
    return squares - 2.0 * products


def _distances(points: np.ndarray, others: np.ndarray, indices: np.ndarray) -> np.ndarray:
    blocks = zip(_split(points), _split(indices), strict=True)
    gaps = (block.astype(np.float64) - others[chosen] for block, chosen in blocks)
    return np.concatenate([np.linalg.norm(gap, axis=1) for gap in gaps])
