"""Sums of a kernel over all pairs of rows, under many choices of the rows' signs at once.

Relabelling two samples and the wild bootstrap both ask for Σ_{i≠j} e_i e_j k(z_i, z_j), with other
signs e for every resample. The kernel is the same each time: with the signs side by side in a
matrix E, all of the resamples are one product K E. It is taken in blocks, each pair of blocks once
since k is symmetric, so that memory grows with the number of rows and not with its square.
"""

from collections.abc import Callable, Sequence
from typing import NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jaxtyping import Array, Float

from fenchel.shapes import Points, PyTree

ROWS_PER_BLOCK = 512

Kernels = Callable[[PyTree, PyTree], Sequence[Float[Array, "r c"]]]
"""Symmetric kernels between a block of rows and another: a matrix for each kernel."""


class SignedSums(NamedTuple):
    """Sums over the pairs i ≠ j, of `k` kernels under `b` choices of signs."""

    plain: Float[np.ndarray, " k"]
    """Σ k(z_i, z_j)."""
    linear: Float[np.ndarray, "k b"]
    """Σ e_i k(z_i, z_j)."""
    quadratic: Float[np.ndarray, "k b"]
    """Σ e_i e_j k(z_i, z_j)."""


def signed_sums(kernels: Kernels, rows: PyTree, signs: np.ndarray) -> SignedSums:
    """The sums of `kernels` over the pairs of `rows`, arrays (n, ...), for `signs` of (n, b)."""
    n = len(signs)
    blocks = -(-n // ROWS_PER_BLOCK)
    per_block = -(-n // blocks)

    def in_blocks(array: np.ndarray) -> Array:
        padding = [(0, blocks * per_block - n)] + [(0, 0)] * (array.ndim - 1)
        padded = np.pad(array, padding)  # with zeros: a row whose sign is zero is in no sum
        return jnp.asarray(padded.reshape(blocks, per_block, *array.shape[1:]), dtype=float)

    weights = in_blocks(np.column_stack([np.ones(n), signs]))
    linear, quadratic = _block_sums(kernels, jax.tree.map(in_blocks, rows), weights)
    # Large sums that nearly cancel: the last addition is done in 64 bits.
    linear = np.asarray(linear).sum(axis=0, dtype=np.float64)
    quadratic = np.asarray(quadratic).sum(axis=0, dtype=np.float64)
    return SignedSums(quadratic[:, 0], linear[:, 1:], quadratic[:, 1:])


def squared_distances(x: Points, y: Points) -> Float[Array, "n m"]:
    """Between each row of `x` and each of `y`. Centre them first: products lose digits far off."""
    norms = jnp.sum(x**2, axis=1)[:, None] + jnp.sum(y**2, axis=1)[None, :]
    return jnp.maximum(norms - 2.0 * exact_product(x, y.T), 0.0)


def exact_product(a: Float[Array, "n k"], b: Float[Array, "k m"]) -> Float[Array, "n m"]:
    """`a @ b` in full: accelerators otherwise round to 10 bits or so, more than what is tested."""
    return jnp.matmul(a, b, precision=lax.Precision.HIGHEST)


@eqx.filter_jit
def _block_sums(
    kernels: Kernels, rows: PyTree, weights: Float[Array, "blocks r b"]
) -> tuple[Float[Array, "blocks k b"], Float[Array, "blocks k b"]]:
    """What each block adds to eᵀ K 1 and to eᵀ K e, for the columns e of the weights."""
    blocks, size, _ = weights.shape
    itself = jnp.eye(size, dtype=bool)

    def block(index: Array) -> PyTree:
        return jax.tree.map(lambda array: array[index], rows)

    def block_sums(i: Array) -> tuple[Array, Array]:
        def products(j: Array) -> Array:
            pairs = [jnp.where(itself & (i == j), 0.0, k) for k in kernels(block(i), block(j))]
            return jnp.stack([exact_product(k, weights[j]) for k in pairs])

        # Blocks (i, j) and (j, i) add the same, so the one with j > i counts twice.
        later = lambda j, total: total + 2.0 * products(j)  # noqa: E731
        total = lax.fori_loop(i + 1, blocks, later, products(i))
        here = jnp.broadcast_to(weights[i], total.shape)
        # Half from either side: of the pair of blocks, e may be on the first or on the second.
        linear = 0.5 * jnp.sum(here * total[:, :, :1] + here[:, :, :1] * total, axis=1)
        return linear, jnp.sum(here * total, axis=1)

    return lax.map(block_sums, jnp.arange(blocks))
