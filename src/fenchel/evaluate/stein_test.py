"""Could the data come from exp f? A test by the kernel Stein discrepancy, without log Z or samples.

Stein's kernel h(x, y) = s(x)·s(y) k + s(x)·∇_y k + s(y)·∇_x k + ∇_x·∇_y k, with the score s = ∇f,
has mean zero over y from p ∝ exp f, whatever x is. The statistic is its mean over pairs of points.
Under the null it is a degenerate U-statistic, whose distribution is imitated by random signs on the
points: mean over pairs of e_i e_j h(x_i, x_j) (the wild bootstrap).

A score knows nothing of the masses of modes far apart: a mixture's wrong weights are barely seen.
"""

from dataclasses import dataclass

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jaxtyping import Array, Float

from fenchel.errors import InputError
from fenchel.estimators import InverseMultiquadric
from fenchel.evaluate.checks import check_at_least, checked_points
from fenchel.evaluate.mmd import median_squared_distance
from fenchel.evaluate.signed_sums import exact_product, signed_sums, squared_distances
from fenchel.shapes import Points, Potential

SCORES_TOGETHER = 1_024
INDEPENDENT = 0.5


@dataclass(frozen=True)
class SteinTest:
    """A squared kernel Stein discrepancy, and its rank among those under random signs."""

    value: float
    """The unbiased squared discrepancy: about zero, of either sign, where f is right."""
    p_value: float
    """The share of bootstrap draws, the value itself among them, that are at least as large."""
    draws: int
    """Bootstrap values compared: the statistic itself, and those under random signs."""
    n: int
    """Data points."""
    scale: float
    """The kernel is (1 + |x - y|² / scale²)^-1/2."""


def stein_test(
    f: Potential,
    data: np.ndarray,
    *,
    scale: float | None = None,
    draws: int = 500,
    switching: float = INDEPENDENT,
    seed: int,
) -> SteinTest:
    """Whether `data` (n, d) look like draws from p ∝ exp f, as seen by an inverse multiquadric.

    Arguments:
        f: the log density of one point, up to a constant, in the units of the data.
        data: the points; from a chain, in the chain's order.
        scale: the kernel's; without one, the median distance between the points.
        draws: bootstrap values compared; no p-value is smaller than 1 / draws.
        switching: the probability that a sign differs from the one before. At 1/2 signs are
            independent, as the data must then be. Signs of a smaller one stay alike for about
            1 / (2 switching) points: for a chain let that be some three times as long as the
            chain's own memory (its autocorrelation time), and much less than n.
        seed: of the signs.
    """
    data = checked_points(data, "data")
    if scale is None:
        scale = float(np.sqrt(median_squared_distance(data, "data")))
    elif not 0.0 < scale < np.inf:
        raise InputError(f"scale is {scale}: give a positive length, or none for the median's.")
    n = len(data)
    signs = _signs(n, draws - 1, switching, seed)
    # In units of the scale, in which a score is `scale` times as large; and centred, since products
    # lose digits far from the origin.
    points = (data - np.median(data, axis=0)) / scale
    rows = (points, _scores(f, data) * scale)
    sums = signed_sums(_SteinKernel(), rows, signs)
    values = np.concatenate([sums.plain, sums.quadratic[0]]) / (n * (n - 1) * scale**2)
    if not np.isfinite(values).all():
        raise InputError(
            "The points, or f's scores at them, are so large that the test's values are not "
            "finite: scale the points, as to a standard deviation of 1."
        )
    return SteinTest(float(values[0]), float(np.mean(values >= values[0])), draws, n, scale)


class _SteinKernel(eqx.Module):
    """h between rows of (point, score), both in units of the kernel's scale."""

    kernel: InverseMultiquadric = InverseMultiquadric()

    def __call__(
        self, first: tuple[Points, Points], second: tuple[Points, Points]
    ) -> list[Float[Array, "n m"]]:
        (x, s_x), (y, s_y) = first, second
        u = squared_distances(x, y)
        value, slope, curvature = self._profile(u)
        # (x - y)·(s(y) - s(x)), multiplied out.
        along = exact_product(x, s_y.T) + exact_product(s_x, y.T)
        own = jnp.sum(x * s_x, axis=1)[:, None] + jnp.sum(y * s_y, axis=1)[None, :]
        mixed = -2.0 * slope * x.shape[1] - 4.0 * curvature * u
        return [value * exact_product(s_x, s_y.T) + 2.0 * slope * (along - own) + mixed]

    def _profile(self, u: Array) -> tuple[Array, Array, Array]:
        """The kernel as a function of the squared distance, and its first two derivatives."""
        one = jnp.ones_like(u)
        derivative = lambda u: jax.jvp(self.kernel.profile, (u,), (one,))[1]  # noqa: E731
        slope, curvature = jax.jvp(derivative, (u,), (one,))
        return self.kernel.profile(u), slope, curvature


def _scores(f: Potential, data: np.ndarray) -> np.ndarray:
    points = jnp.asarray(data, dtype=float)
    value = eqx.filter_eval_shape(f, points[0])
    if getattr(value, "shape", None) != ():
        raise InputError(
            f"f of one point is {value}, not a number: give f(x) as a scalar for one x of (d,)."
        )
    scores = np.asarray(_gradients(f, points), dtype=np.float64)
    if not np.isfinite(scores).all():
        raise InputError(
            "The gradient of f is not finite at some of the data: "
            "leave those points out, or give an f that is smooth there."
        )
    return scores


@eqx.filter_jit
def _gradients(f: Potential, points: Points) -> Points:
    return lax.map(jax.grad(f), points, batch_size=SCORES_TOGETHER)


def _signs(n: int, columns: int, switching: float, seed: int) -> Float[np.ndarray, "n columns"]:
    """Columns of signs, each a chain that changes with probability `switching` at every point."""
    check_at_least(columns + 1, 2, "draws")
    if not 0.0 < switching <= INDEPENDENT:
        raise InputError(
            f"switching is {switching}: give a probability above 0, and 1/2 for independent data."
        )
    rng = np.random.default_rng(seed)
    changes = rng.random((n, columns)) < switching
    changes[0] = rng.random(columns) < 0.5
    return 1.0 - 2.0 * (np.cumsum(changes, axis=0) % 2)
