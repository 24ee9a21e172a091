"""The classical estimators: f descends alone, on a loss whose dual is fixed."""

import equinox as eqx
import jax
import jax.numpy as jnp
import optax
import paramax

from fenchel.estimators import AbstractEstimator
from fenchel.parameters import definite, learnt, split
from fenchel.samplers import AbstractSampler
from fenchel.shapes import Array, Key, Points, Potential, PyTree
from fenchel.train.guard import Guard, keep_if
from fenchel.train.learner import AbstractLearner
from fenchel.train.state import Info, TrainState
from fenchel.train.wait import Wait


class Minimise(AbstractLearner):
    """One iteration: one step of f down the estimator's loss.

    The state's sampler does not take part: it is what the fitted model will be drawn with.
    `wait` applies to duals that run after f, as chains do: f's steps shrink while data and draws
    are far apart in mean f.
    """

    estimator: AbstractEstimator
    optimiser: optax.GradientTransformation = eqx.field(static=True, default=optax.adam(1e-3))
    decay: float = eqx.field(static=True, default=0.998)
    wait: Wait = Wait()
    guard: Guard = Guard()

    @property
    def batches(self) -> int:
        return 1

    @property
    def patience(self) -> int:
        return self.guard.patience

    @property
    def noise_floor(self) -> float:
        return self.estimator.noise_floor

    def init(
        self, potential: Potential, sampler: AbstractSampler, data: Points, key: Key
    ) -> TrainState:
        potential, sampler = definite((potential, sampler))
        sampler_key, memory_key, run_key = jax.random.split(key, 3)
        return TrainState(
            potential=potential,
            sampler=sampler,
            averages=learnt((potential, sampler)),
            potential_memory=self.optimiser.init(learnt(potential)),
            sampler_memory=None,
            sampler_state=sampler.init(data, sampler_key),
            estimator_state=self.estimator.init(data, memory_key),
            potential_guard=self.guard.init(),
            sampler_guard=self.guard.init(),
            iteration=jnp.zeros((), jnp.int32),
            key=run_key,
        )

    def step(self, state: TrainState, batches: Array, key: Key) -> tuple[TrainState, Info]:
        params, static = split(state.potential)

        def loss(params: PyTree):
            f = paramax.unwrap(eqx.combine(params, static))
            estimate = self.estimator.estimate(f, batches[0], state.estimator_state, key)
            return estimate.loss, estimate

        (value, estimate), grads = jax.value_and_grad(loss, has_aux=True)(params)
        trust = self.wait.trust(estimate.lag, batches.shape[-1])
        params, memory, guard, outcome = self.guard.step(
            state.potential_guard,
            self.optimiser,
            value,
            grads,
            params,
            state.potential_memory,
            trust,
        )
        good = ~outcome.dropped
        state = state._replace(
            potential=eqx.combine(params, static),
            potential_memory=memory,
            estimator_state=keep_if(good, estimate.memory, state.estimator_state),
            potential_guard=guard,
        ).advanced(good, self.decay)
        info = Info.of_loss(value, outcome, guard, estimate.lag, trust, estimate.acceptance)
        return state, info
