"""The MMD of many pairs of point sets at once, on the device."""

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from fenchel.evaluate.mmd import _kernel_row_sums

TOGETHER = 8  # pairs; more would only take more memory


def mmds_squared(x: np.ndarray, y: np.ndarray, gammas: np.ndarray) -> np.ndarray:
    """Unbiased squared MMDs between `x` (r, n, d) and `y` (r, m, d), pair by pair.

    As `mmd_squared` for each; not a number where a point is not finite.
    """
    centre = np.median(y, axis=1, keepdims=True)
    n, m = x.shape[1], y.shape[1]
    sums = _sums(
        jnp.asarray(x - centre, dtype=float),
        jnp.asarray(y - centre, dtype=float),
        jnp.broadcast_to(jnp.asarray(gammas, dtype=float), (len(x),)),
    )
    # The three means nearly cancel, so their last addition is done in 64 bits.
    within_x, within_y, between = (np.asarray(rows).sum(1, dtype=np.float64) for rows in sums)
    return within_x / (n * (n - 1)) + within_y / (m * (m - 1)) - 2.0 * between / (n * m)


@jax.jit
def _sums(
    x: Float[Array, "r n d"], y: Float[Array, "r m d"], gammas: Float[Array, " r"]
) -> tuple[Float[Array, "r n"], Float[Array, "r m"], Float[Array, "r n"]]:
    def one(pair: tuple[Array, Array, Array]) -> tuple[Array, Array, Array]:
        x, y, gamma = pair
        return (
            _kernel_row_sums(x, x, gamma, skip_diagonal=True),
            _kernel_row_sums(y, y, gamma, skip_diagonal=True),
            _kernel_row_sums(x, y, gamma, skip_diagonal=False),
        )

    return jax.lax.map(one, (x, y, gammas), batch_size=TOGETHER)
