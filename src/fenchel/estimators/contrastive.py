"""Contrastive divergence: the dual is a Markov chain, and only its start makes the difference.

CD-k starts its chains at the data, persistent CD where they stopped, replay-buffer CD anywhere in
a buffer of earlier draws, ensemble CD runs several kernels side by side. All are samplers, which
see f and do not hold it; here is the loss that they share.
"""

import equinox as eqx
import jax
import jax.numpy as jnp

from fenchel.dynamics import acceptance
from fenchel.estimators.estimator import AbstractEstimator, Estimate, Negatives, contrast
from fenchel.estimators.lag import energy_lag
from fenchel.estimators.regularisers import mean_potential
from fenchel.samplers import AbstractSampler, Truncated
from fenchel.shapes import Key, Points, Potential, PyTree


class ContrastiveDivergence(AbstractEstimator):
    """E_q[f] - E_D[f], where `chains` draws from q and is not learnt.

    `energy_penalty` weighs Du and Mordatch's regularisation, the mean square of f over data and
    draws, which keeps a net without a base measure from drifting off.
    """

    chains: AbstractSampler
    energy_penalty: float = eqx.field(static=True, default=0.0)

    def init(self, data: Points, key: Key) -> PyTree:
        return self.chains.init(data, key)

    def estimate(self, f: Potential, batch: Points, memory: PyTree, key: Key) -> Estimate:
        particles, memory = Truncated().draw(self.chains, f, batch, memory, key)
        loss = -contrast(f, batch, Negatives.equal(particles.x))
        if self.energy_penalty:
            energies = jax.vmap(f)(batch)
            loss += self.energy_penalty * (jnp.mean(energies**2) + jnp.mean(particles.f**2))
        lag = energy_lag(mean_potential(f, batch), particles)
        return Estimate(loss, memory, lag, acceptance(particles))

    def dual(self, f: Potential, batch: Points, memory: PyTree, key: Key) -> Negatives:
        """Where the chains are after their steps."""
        return Negatives.equal(self.chains.draw(f, batch, memory, key)[0].x)
