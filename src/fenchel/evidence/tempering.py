"""Tempered sequential Monte Carlo, through BlackJAX: annealing whose chains are resampled.

Each run is many particles that go along the path together and are resampled at every station;
its estimate of Z is unbiased, so that independent runs are weights like any others.
"""

import equinox as eqx
import jax
import jax.numpy as jnp
import paramax
from jax import lax

from fenchel.evidence.annealing import AbstractReference, Annealing, Stations, check_counts
from fenchel.evidence.bracket import GROUPS
from fenchel.shapes import Array, Key, Points, Potential


class Tempering(eqx.Module):
    """So many independent runs of so many particles over so many stations."""

    runs: int = eqx.field(static=True, default=128)  # enough for their weights' tail to be judged
    particles: int = eqx.field(static=True, default=128)
    stations: int = eqx.field(static=True, default=30)
    leapfrogs: int = eqx.field(static=True, default=5)
    moves: int = eqx.field(static=True, default=2)

    def __check_init__(self) -> None:
        least = {"runs": GROUPS, "particles": 2, "stations": 2, "leapfrogs": 1, "moves": 1}
        check_counts(self, least)

    def prepare(self, f: Potential, reference: AbstractReference, key: Key) -> Stations:
        """The stations of annealing."""
        pilot = Annealing(max(self.particles, 64), self.stations, self.leapfrogs)
        return pilot.prepare(f, reference, key)

    @eqx.filter_jit
    def forward(
        self, f: Potential, reference: AbstractReference, stations: Stations, key: Key
    ) -> tuple[Array, Points]:
        """The log weight of each run, and where all particles arrive: (runs, particles, d)."""
        from blackjax.mcmc import hmc
        from blackjax.smc import resampling, tempered

        f, reference = paramax.unwrap((f, reference))
        kernel = tempered.build_kernel(
            reference.log_density,
            lambda x: f(x) - reference.log_density(x),
            hmc.build_kernel(),
            hmc.init,
            resampling.systematic,
        )

        def run(key: Key) -> tuple[Array, Points]:
            start_key, move_key, pick_key = jax.random.split(key, 3)
            x = jax.vmap(reference.draw)(jax.random.split(start_key, self.particles))
            first = tempered.init(x)._replace(tempering_param=jnp.zeros((), x.dtype))

            def step(state, inputs):
                beta, size, step_key = inputs
                parameters = {
                    "step_size": size[None],
                    "inverse_mass_matrix": jnp.ones((1, x.shape[1])),
                    "num_integration_steps": jnp.full(1, self.leapfrogs),
                }
                state, info = kernel(step_key, state, self.moves, beta, parameters)
                return state, info.log_likelihood_increment

            betas, sizes = stations
            keys = jax.random.split(move_key, self.stations)
            state, gained = lax.scan(step, first, (betas[1:], sizes, keys))
            last = jax.random.choice(pick_key, self.particles, (self.particles,), p=state.weights)
            return jnp.sum(gained), state.particles[last]

        return jax.vmap(run)(jax.random.split(key, self.runs))
