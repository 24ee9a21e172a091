"""Score matching: the Fisher divergence from the data to the model, without log Z.

With s = ∇f, Hyvärinen's loss is E_D[|s|²/2 + div s]. Its dual is one step of Langevin dynamics from
the data, to first order in the step and with the gradient stopped at the draw.
"""

import equinox as eqx
import jax
import jax.numpy as jnp

from fenchel.dynamics import AbstractProbes, Basis, trace
from fenchel.errors import InputError
from fenchel.estimators.domain import Domain
from fenchel.estimators.estimator import AbstractLoss, Negatives
from fenchel.shapes import Array, Key, Point, Points, Potential, Scalar


class ScoreMatching(AbstractLoss):
    """E_D[sum over i of h_i s_i²/2 + ∂_i (h_i s_i)].

    `probes` sees the Hessian's trace, by products forward over reverse: all directions (`Basis`)
    for exact score matching, random signs (`Rademacher`) for sliced. `domain` gives h, the
    distance to the nearest end: 1 on the whole line, and on a half-line or in a box a weight that
    vanishes at the boundary, without which the partial integration behind the loss is wrong.
    """

    probes: AbstractProbes = Basis()
    domain: Domain = Domain()

    @property
    def noise_floor(self) -> float:
        """The Hessian's trace rewards a score that is steep at the very data points: without a
        wider floor than others need, long runs learn the points by heart."""
        return 0.05

    def loss(self, f: Potential, batch: Points, key: Key) -> Scalar:
        keys = jax.random.split(key, batch.shape[0])
        return jnp.mean(jax.vmap(lambda x, key: self._of_one(f, x, key))(batch, keys))

    def _of_one(self, f: Potential, x: Point, key: Key) -> Scalar:
        score, product = jax.linearize(jax.grad(f), x)
        weight, slope = self.domain.weight(x)
        probes = self.probes.draw(key, x)
        curvature = trace(lambda p: weight * product(p), probes)
        return jnp.sum(0.5 * weight * score**2 + slope * score) + curvature

    def dual(self, f: Potential, batch: Points, step: Scalar | float, noise: Array) -> Negatives:
        """x + ε²/2 ∇f + ε ξ from each datum, for each row ξ of the noise; ε² is the paper's η."""
        scores = jax.vmap(jax.grad(f))(batch)
        ends = batch + 0.5 * step**2 * scores
        moved = ends[:, None] + step * noise[None]
        return Negatives.equal(moved.reshape(-1, batch.shape[1]))


class DenoisingScoreMatching(AbstractLoss):
    """E |σ s(x + σ ξ) + ξ|²/2: the score of the data smoothed by noise of this width.

    No Hessian is needed; what is learnt is the smoothed density, so σ is a bias. The noise comes
    in pairs ξ and -ξ: alone, the two terms of the square have a variance of 1/σ² that is not about
    f at all, and that cancels in the pair.
    """

    sigma: float = eqx.field(static=True, default=0.1)

    def __check_init__(self) -> None:
        if not self.sigma > 0:
            raise InputError(f"The noise of denoising score matching is {self.sigma}: give σ > 0.")

    def loss(self, f: Potential, batch: Points, key: Key) -> Scalar:
        half = jax.random.normal(key, batch.shape, batch.dtype)
        noise = jnp.concatenate([half, -half])
        scores = jax.vmap(jax.grad(f))(jnp.tile(batch, (2, 1)) + self.sigma * noise)
        return 0.5 * jnp.mean(jnp.sum((self.sigma * scores + noise) ** 2, axis=-1))
