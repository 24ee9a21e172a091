"""Algorithm 1: the sampler descends, the potential ascends.

This file alone knows who does which.
"""

from typing import NamedTuple, cast

import equinox as eqx
import jax
import jax.numpy as jnp
import optax
import paramax
from jax import lax

from fenchel.dynamics import Particle, acceptance, shortened
from fenchel.errors import InputError
from fenchel.estimators import (
    AbstractBound,
    AbstractCriterion,
    FenchelBound,
    WeightedBound,
    anchor,
    effective_sample_size,
    energy_lag,
    gradient_penalty,
    log_mean_exp,
    weight_lag,
)
from fenchel.parameters import definite, learnt, split
from fenchel.samplers import (
    AbstractGradient,
    AbstractSampler,
    BackPropagation,
    Embedding,
    Scouts,
    Truncated,
    valued,
)
from fenchel.shapes import Array, Key, Points, Potential, PyTree, Scalar
from fenchel.starts import AbstractDensityStart
from fenchel.train.guard import Guard, Outcome
from fenchel.train.learner import AbstractLearner
from fenchel.train.state import Info, TrainState
from fenchel.train.wait import Wait

# Below the other methods': importance weights bear a model that is steeper than its sampler, and
# where the true density is singular the floor is most of what the likelihood lacks.
SAMPLER_NOISE_FLOOR = 0.003
SCOUTS = 6_007  # sets their key apart from that of the draws beside them


class Seen(NamedTuple):
    """What the objective saw on its way."""

    particles: Particle
    at_data: Scalar  # the mean of f over the batch
    log_likelihood: Scalar


class Health(NamedTuple):
    """What the potential's step learns about the run."""

    particles: Particle
    at_data: Scalar  # the mean of f over the batch
    loss: Scalar
    log_likelihood: Scalar
    lag: Scalar
    trust: Scalar


class MaxMin(AbstractLearner):
    """One iteration: `sampler_steps` steps of the sampler, then one of the potential.

    **Arguments:**

    - `bound`: what f ascends: a likelihood with this estimate of log Z, or another criterion.
    - `dual`: the sampler's objective, with its entropy and momentum coefficients.
    - `gradient`: how the potential's step sees the draws.
    - `potential_optimiser`, `start_optimiser`, `dynamics_optimiser`: Optax's.
    - `anchor`: the weight of the start's own log likelihood of the data in the sampler's step.
    - `gradient_penalty`: the weight in the potential's step of E|∇f|², over half of data and draws.
    - `scouts`: who looks after f where the start hardly goes; None for nobody.
    - `decay`: of the moving averages.
    - `wait`: how the potential waits for its sampler.
    - `guard`: what happens to steps that are not finite.
    - `relief`: what the steps of strained flows are multiplied by.
    """

    bound: AbstractCriterion = WeightedBound()
    dual: FenchelBound = FenchelBound()
    gradient: AbstractGradient = Truncated()
    potential_optimiser: optax.GradientTransformation = eqx.field(
        static=True, default=optax.adam(5e-4)
    )
    start_optimiser: optax.GradientTransformation = eqx.field(static=True, default=optax.adam(1e-3))
    dynamics_optimiser: optax.GradientTransformation = eqx.field(
        static=True, default=optax.adam(1e-3)
    )
    sampler_steps: int = eqx.field(static=True, default=2)
    anchor: float = eqx.field(static=True, default=1.0)
    gradient_penalty: float = eqx.field(static=True, default=0.0)
    scouts: Scouts | None = None
    decay: float = eqx.field(static=True, default=0.998)
    wait: Wait = Wait()
    guard: Guard = Guard()
    relief: float = eqx.field(static=True, default=0.5)

    @property
    def batches(self) -> int:
        return self.sampler_steps + 1

    @property
    def patience(self) -> int:
        return self.guard.patience

    @property
    def noise_floor(self) -> float:
        return SAMPLER_NOISE_FLOOR

    def check(self, sampler: AbstractSampler) -> None:
        """Refuse what cannot work together."""
        if self.bound.needs_density and not sampler.exact:
            raise InputError(
                "Importance weights need a sampler with an exact density, and this one has none: "
                "use the FenchelBound, or a start and dynamics that are exact."
            )
        dense = isinstance(getattr(sampler, "start", None), AbstractDensityStart)
        if self.anchor and not dense:
            raise InputError(
                "The anchor needs a start with a density of its own, such as a flow: "
                "use one, or set the anchor to 0."
            )
        if self.scouts is not None:
            self._check_scouts(dense)

    def _check_scouts(self, dense: bool) -> None:
        if not (dense and self.bound.needs_density and self.anchor):
            raise InputError(
                "Scouts share the estimate of log Z with importance weights, where the start is "
                "less dense than they are: use the WeightedBound and a start such as a flow, with "
                "an anchor that keeps it where data are, or no scouts."
            )
        if isinstance(self.gradient, BackPropagation):
            raise InputError(
                "Scouts count where the start hardly goes, and whether a draw ends there is not "
                "differentiated: use the truncated gradient, or no scouts."
            )

    def init(
        self, potential: Potential, sampler: AbstractSampler, data: Points, key: Key
    ) -> TrainState:
        """Start from these two; `data` is seen only by samplers that remember points."""
        self.check(sampler)
        potential, sampler = definite((potential, sampler))
        state_key, run_key = jax.random.split(key)
        return TrainState(
            potential=potential,
            sampler=sampler,
            averages=learnt((potential, sampler)),
            potential_memory=self.potential_optimiser.init(learnt(potential)),
            sampler_memory=self.sampler_optimiser().init(learnt(sampler)),
            sampler_state=sampler.init(data, state_key),
            estimator_state=None,
            potential_guard=self.guard.init(),
            sampler_guard=self.guard.init(),
            iteration=jnp.zeros((), jnp.int32),
            key=run_key,
        )

    def step(self, state: TrainState, batches: Array, key: Key) -> tuple[TrainState, Info]:
        """One iteration; `batches` has one batch for each sampler step and one for f's."""
        sampler_key, potential_key = jax.random.split(key)
        state, sampler_outcomes = self._learn_sampler(state, batches[:-1], sampler_key)
        state, outcome, health = self._learn_potential(state, batches[-1], potential_key)
        return self.concluded(state, health, outcome, sampler_outcomes)

    def concluded(
        self, state: TrainState, health: Health, outcome: Outcome, sampler: Outcome
    ) -> tuple[TrainState, Info]:
        """The iteration's end, once both have learnt."""
        strain = jnp.max(health.particles.strain)
        state = self._relieve(state, strain >= 1).advanced(~outcome.dropped, self.decay)
        return state, _info(state, health, outcome, sampler, strain)

    def _relieve(self, state: TrainState, strained: Array) -> TrainState:
        """Shorten the steps of flows that may have folded, for all particles alike."""
        factor = jnp.where(strained, self.relief, 1.0)
        potential, sampler = state.averages
        return state._replace(
            sampler=shortened(state.sampler, factor),
            averages=(potential, shortened(sampler, factor)),
        )

    def _learn_sampler(
        self, state: TrainState, batches: Array, key: Key
    ) -> tuple[TrainState, Outcome]:
        params, static = split(state.sampler)
        optimiser = self.sampler_optimiser()

        def loss(params: PyTree, batch: Points, memory: PyTree, key: Key):
            sampler = eqx.combine(params, static)
            particles, memory = sampler.draw(state.potential, batch, memory, key)
            value = -self.dual.log_partition(particles)
            if self.anchor:
                value -= self.anchor * anchor(paramax.unwrap(sampler.start), batch)
            return value, memory

        def one(carry, inputs):
            params, memory, sampler_state, guard = carry
            (value, sampler_state), grads = jax.value_and_grad(loss, has_aux=True)(
                params, inputs[0], sampler_state, inputs[1]
            )
            params, memory, guard, outcome = self.guard.step(
                guard, optimiser, value, grads, params, memory
            )
            return (params, memory, sampler_state, guard), outcome

        carry = (params, state.sampler_memory, state.sampler_state, state.sampler_guard)
        keys = jax.random.split(key, batches.shape[0])
        (params, memory, sampler_state, guard), outcomes = lax.scan(one, carry, (batches, keys))
        state = state._replace(
            sampler=eqx.combine(params, static),
            sampler_memory=memory,
            sampler_state=sampler_state,
            sampler_guard=guard,
        )
        return state, outcomes

    def _learn_potential(
        self, state: TrainState, batch: Points, key: Key
    ) -> tuple[TrainState, Outcome, Health]:
        params, static = split(state.potential)

        def loss(params: PyTree):
            f = eqx.combine(params, static)
            total, aside = self.objective(f, state.sampler, batch, state.sampler_state, key)
            return -total, aside

        (total, (seen, sampler_state)), grads = jax.value_and_grad(loss, has_aux=True)(params)
        particles, at_data, value = seen
        lag = self.lag(state, at_data, particles)
        trust = self.wait.trust(lag, batch.shape[-1])
        params, memory, guard, outcome = self.guard.step(
            state.potential_guard,
            self.potential_optimiser,
            total,
            grads,
            params,
            state.potential_memory,
            trust,
        )
        state = state._replace(
            potential=eqx.combine(params, static),
            potential_memory=memory,
            sampler_state=sampler_state,
            potential_guard=guard,
        )
        return state, outcome, Health(particles, at_data, total, value, lag, trust)

    def objective(
        self, f: Potential, sampler: AbstractSampler, batch: Points, memory: PyTree, key: Key
    ) -> tuple[Scalar, tuple[Seen, PyTree]]:
        """What f ascends, on one draw; and what was seen of it, with the sampler's new memory."""
        particles, memory = self.gradient.moved(sampler, f, batch, memory, key)
        f = paramax.unwrap(f)
        # At data and draws in one pass: twice as many points take less than twice as long.
        values = jax.vmap(f)(jnp.concatenate([batch, particles.x]))
        at_data, at_draws = jnp.split(values, [batch.shape[0]])
        particles = valued(particles, at_draws)
        weighed = self._scouted(particles, f, sampler, key)
        total = self.bound.value(at_data, weighed)
        if self.gradient_penalty:  # of points that stand still: the sampler does not feel it
            # Every other one of them will do for a mean that takes second derivatives.
            points = jnp.concatenate([batch[::2], lax.stop_gradient(particles.x)[::2]])
            total -= self.gradient_penalty * gradient_penalty(f, points)
        bound = self.bound if isinstance(self.bound, AbstractBound) else self.dual
        value = bound.value(at_data, weighed)
        return total, (Seen(particles, jnp.mean(at_data), value), memory)

    def _scouted(
        self, particles: Particle, f: Potential, sampler: AbstractSampler, key: Key
    ) -> Particle:
        """With scouts beside them, who share the estimate of log Z."""
        if self.scouts is None:
            return particles
        start = paramax.unwrap(cast(Embedding, sampler).start)
        own_key = jax.random.fold_in(key, SCOUTS)
        return self.scouts.beside(particles, f, cast(AbstractDensityStart, start), own_key)

    def lag(self, state: TrainState, at_data: Scalar, particles: Particle) -> Scalar:
        """How far the sampler is behind; `at_data` is the mean of f over the batch.

        Weights tell it only where exp f is what is fitted.
        """
        if state.sampler.exact and (self.bound.needs_density or self.dual.entropy == 1):
            return weight_lag(particles)
        return energy_lag(at_data, particles)

    def sampler_optimiser(self) -> optax.GradientTransformation:
        """The start's optimiser and the dynamics' own, side by side on one sampler."""
        optimisers = {"start": self.start_optimiser, "dynamics": self.dynamics_optimiser}
        return optax.multi_transform(optimisers, _part)


def _part(sampler: PyTree) -> PyTree:
    """Which optimiser each parameter of an embedding belongs to."""
    labels = jax.tree.map(lambda _: "dynamics", sampler)
    if not isinstance(sampler, Embedding):
        return labels
    return eqx.tree_at(
        lambda s: s.start,
        labels,
        jax.tree.map(lambda _: "start", sampler.start),
    )


def _info(
    state: TrainState, health: Health, outcome: Outcome, sampler: Outcome, strain: Scalar
) -> Info:
    log_w = health.particles.log_weight
    return Info(
        loss=health.loss,
        log_likelihood=health.log_likelihood,
        potential_data=health.at_data,
        potential_draws=jnp.mean(health.particles.f),
        log_partition=log_mean_exp(log_w),
        log_partition_lower=jnp.mean(log_w),
        ess=effective_sample_size(log_w),
        potential_grad_norm=outcome.grad_norm,
        sampler_grad_norm=jnp.max(sampler.grad_norm, initial=0.0),
        potential_rate=state.potential_guard.rate,
        sampler_rate=state.sampler_guard.rate,
        lag=health.lag,
        trust=health.trust,
        acceptance=acceptance(health.particles),
        strain=strain,
        shortened=(strain >= 1).astype(jnp.int32),
        dropped_potential=outcome.dropped.astype(jnp.int32),
        dropped_sampler=jnp.sum(sampler.dropped.astype(jnp.int32)),
        # Each has its own: good steps of the one must not hide that the other is stuck.
        potential_streak=state.potential_guard.streak,
        sampler_streak=state.sampler_guard.streak,
    )
