"""A fitted model, in the data's own units."""

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import paramax
from jax import lax
from numpy.typing import ArrayLike

from fenchel import inference
from fenchel.build import EMBEDDINGS
from fenchel.config import Config
from fenchel.data import Standardiser, as_rows
from fenchel.errors import InputError
from fenchel.estimation import domain_of, states_of, whole_measure
from fenchel.estimators import (
    AbstractMeasure,
    Domain,
    MaximumLikelihood,
    Nodes,
    Quadrature,
    effective_sample_size,
    log_mean_exp,
)
from fenchel.evaluate import ParameterTable, WeightedDraws
from fenchel.inference import Inference, Seen
from fenchel.parameters import flat
from fenchel.potentials import SelfNormalised
from fenchel.samplers import AbstractSampler, Embedding
from fenchel.shapes import Array, Key, Points, Potential, PyTree

POOL = 8  # candidates for each corrected draw
CHUNK = 2_048  # draws at a time
PARTITION_CHUNKS = 16  # of them, for log Z
FALL = 5.0  # nats, by which f must fall to where its integral is cut off
MISS = 1e-3  # standard deviations: by so much an inverse may be off
MODEL_DRAWS = 64  # for each datum, so that their noise is an eighth of a standard error, but
FEWEST_DRAWS, MOST_DRAWS = 2**15, 2**19  # at least and at most so many, and less where
MOST_SLOPES = 2**25  # numbers would not hold f's slopes at them
MODEL_PURPOSE = 3_083  # sets them apart
PARTITION_PURPOSE = 1_847  # sets its draws apart from those of `sample` with the same seed


class LogPartition(NamedTuple):
    """log Z, and how well it is known.

    An integral or a sum over all states is taken to be exact, and a constant that noise contrast
    learnt is what it is: neither has draws.
    """

    lower: float  # a lower bound in expectation: the mean of the log weights
    estimate: float  # the logarithm of the mean weight: a tighter one
    standard_error: float  # of the estimate
    ess: float  # effective sample size of the weights, as a fraction of the draws
    draws: int
    how: str = "importance weights"


@dataclass(frozen=True, eq=False)
class Fit:
    """A potential, its sampler, and the scaling between their coordinates and the data's.

    `f` and `sampler` live on standardised data; every method here takes and returns data in its
    own units.
    """

    f: Potential
    sampler: AbstractSampler
    sampler_state: PyTree
    points: Points  # data points, for samplers that begin at them; else one row of zeros
    standardiser: Standardiser
    config: Config
    columns: tuple[str, ...]
    name: str
    seen: Seen | None = None  # the training data and their estimator; not saved

    @property
    def dim(self) -> int:
        return len(self.columns)

    def potential(self, x: ArrayLike) -> np.ndarray:
        """f at each row of x: the unnormalised log density."""
        z = self.standardiser.forward(as_rows(x))
        states = states_of(self.f)
        if states is not None and not np.isin(np.round(z, 6), states).all():
            raise InputError("A value is none of this model's states: give those of its data.")
        return np.asarray(_values(self.f, jnp.asarray(z, jnp.result_type(float))), np.float64)

    def log_density(self, x: ArrayLike) -> np.ndarray:
        """The normalised log density at each row of x, with log Z by `log_partition`."""
        return self.potential(x) - self.log_partition().estimate

    def sampler_log_density(self, x: ArrayLike) -> np.ndarray:
        """log q at each row of x: the density of the raw sampler itself, by undoing its dynamics.

        Only samplers without momenta have one (deterministic, continuous and
        generalized-continuous dynamics, or none); with stochastic log-determinants or traces it is
        an estimate.
        """
        if not isinstance(self.sampler, Embedding):
            raise InputError("Only an embedding has a density at a given point.")
        z = jnp.asarray(self.standardiser.forward(as_rows(x)), jnp.result_type(float))
        key = jax.random.key(self.config.seed)
        log_q, miss = map(np.asarray, _sampler_log_density(self.f, self.sampler, z, key))
        lost = int(np.sum(~(miss < MISS)))
        if lost:
            raise InputError(
                f"The sampler cannot be undone at {lost} of {len(z)} points: its steps along the "
                "score are too long there (η δ is 1 or more), so that the map may fold. Fit with "
                "a smaller dynamics.step_size, or with continuous dynamics."
            )
        return log_q.astype(np.float64) - self.standardiser.log_scale

    def log_partition(self) -> LogPartition:
        """log of the integral of exp f over the data's space.

        By importance sampling where the sampler has a density; else by quadrature in one or two
        columns, by enumeration of up to 2^20 discrete states, or as learnt by noise contrast.
        """
        return self._log_partition

    @property
    def has_log_partition(self) -> bool:
        """Whether `log_partition`, and with it the normalised density, is to be had."""
        try:
            self.log_partition()
        except InputError:
            return False
        return True

    def sample(self, n: int, seed: int = 0, corrected: bool | None = None) -> np.ndarray:
        """n draws, (n, d).

        `corrected` draws are resampled by their importance weights from a pool eight times as
        large, which removes most of the sampler's own error; `corrected=False` gives the raw
        sampler. By default they are corrected wherever the sampler has an exact density.
        """
        if n < 1:
            raise InputError(f"{n} samples were asked for: ask for at least one.")
        if corrected is None:
            corrected = self.sampler.exact
        if corrected:
            self._require_density("Corrected samples")
        # Whole chunks, whatever n: the pool is never small, and nothing compiles twice.
        keys = jax.random.split(jax.random.key(seed), -(-n // CHUNK))
        draw = _resampled if corrected else _raw
        chunks = [np.asarray(draw(self._drawing, CHUNK, key), np.float64) for key in keys]
        return self.standardiser.inverse(np.concatenate(chunks)[:n])

    def summary(
        self,
        x: ArrayLike | None = None,
        *,
        covariance: str | None = None,
        level: float = 0.95,
    ) -> ParameterTable:
        """The parameters with standard errors, z, p-values and confidence intervals.

        For models with few parameters, such as `fx.potentials.Linear`. A fit that was read from
        disk has to be given its data, `x`. `covariance` is `"information"` for the inverse of the
        information, maximum likelihood's own, or `"sandwich"`, which holds for a wrong model too
        and is all that other methods have.
        """
        if not 0 < level < 1:
            raise InputError(f"A confidence level of {level}: give one between 0 and 1.")
        seen = self._seen(x)
        found = self._inferred(seen, covariance)
        return inference.table(self.f, self.config, found, self._facts(seen, found), level)

    def one_step(self, x: ArrayLike | None = None) -> "Fit":
        """This fit after one step of Newton's, to where its gradient on the data vanishes.

        What an optimiser left undone, of a standard error or two, is undone by it; the sampler
        stays, and its weights take account of the difference.
        """
        found = self._inferred(self._seen(x), None)
        parameters, rebuild = flat(self.f)
        step = np.zeros(parameters.size)
        step[found.effective] = found.asymptotics.step
        return replace(self, f=rebuild(parameters + jnp.asarray(step, parameters.dtype)))

    def save(self, path: Any) -> None:
        """Write the model as data: path/model.json and path/model.safetensors."""
        from fenchel.saving import save

        save(self, path)

    def _seen(self, x: ArrayLike | None) -> Seen:
        if x is None:
            if self.seen is None:
                raise InputError(
                    "This fit was read from disk, where its data are not: give them, as in "
                    "fit.summary(x)."
                )
            return self.seen
        data = jnp.asarray(self.standardiser.forward(as_rows(x)), jnp.result_type(float))
        if self.seen is None:
            return inference.seen_again(self.f, self.config, data)
        return self.seen._replace(data=data)

    def _inferred(self, seen: Seen, covariance: str | None) -> Inference:
        model = lambda: self._model(len(seen.data))  # noqa: E731
        return inference.infer(self.f, self.config, seen, model, covariance)

    def _facts(self, seen: Seen, found: Inference) -> list[tuple[str, str]]:
        """What stands in the head of a summary."""
        facts = [
            ("Data", self.name),
            ("Rows", f"{len(seen.data):,}"),
            ("Method", self.config.method),
            ("Parameters", str(int(np.sum(found.effective)))),
        ]
        if self.has_log_partition:
            total = self.log_density(self.standardiser.inverse(seen.data)).sum()
            facts.append(("Log likelihood", f"{total:.2f}"))
        return facts

    def _model(self, rows: int) -> AbstractMeasure:
        """What stands for integrals over the model, with the accuracy that so many data deserve."""
        if self._measure is not None and not self.sampler.exact:
            return self._measure
        if self.config.method in EMBEDDINGS:
            self._require_density("The information")
        most = min(MOST_DRAWS, MOST_SLOPES // flat(self.f)[0].size)
        count = min(max(FEWEST_DRAWS, MODEL_DRAWS * rows), most)
        own = jax.random.fold_in(jax.random.key(self.config.seed), MODEL_PURPOSE)
        keys = jax.random.split(own, -(-count // CHUNK))
        draws = [_weighted(self._drawing, CHUNK, key) for key in keys]
        return WeightedDraws(jax.tree.map(lambda *parts: jnp.concatenate(parts), *draws))

    @property
    def _drawing(self) -> tuple[Potential, AbstractSampler, PyTree, Points]:
        return self.f, self.sampler, self.sampler_state, self.points

    @property
    def _measure(self) -> AbstractMeasure | None:
        return whole_measure(self.dim, self.f, domain_of(self.f) or Domain())

    @cached_property
    def _log_partition(self) -> LogPartition:
        if self.sampler.exact:
            return self._weighted_log_partition()
        if self._measure is not None:
            value, how = self._integrated(self._measure), self._measure.name
        elif isinstance(self.f, SelfNormalised):
            value, how = 0.0, "noise contrast, which learnt it"
        else:
            raise InputError(
                "log Z of this model is not known: its sampler has no exact density, and "
                f"{self.dim} columns are too many to integrate over. Fit with ade (from a flow or "
                "a deep-latent start, without a box or a Metropolis step), whose weights bound it, "
                "or with nce, which learns it."
            )
        value += self.standardiser.log_scale
        return LogPartition(value, value, 0.0, 1.0, 0, how)

    def _integrated(self, measure: AbstractMeasure) -> float:
        value, fall = map(float, _integral(self.f, measure, self.dim))
        if not fall > FALL:
            raise InputError(
                "exp f does not fall off within reach, so that its integral is not known: put f on "
                "a base measure (fx.potentials.OnBase), or give the data's domain."
            )
        return value

    def _weighted_log_partition(self) -> LogPartition:
        own = jax.random.fold_in(jax.random.key(self.config.seed), PARTITION_PURPOSE)
        keys = jax.random.split(own, PARTITION_CHUNKS)
        log_w = jnp.concatenate([_log_weights(self._drawing, CHUNK, key) for key in keys])
        weights = np.exp(np.asarray(log_w - jnp.max(log_w), np.float64))
        jacobian = self.standardiser.log_scale
        return LogPartition(
            lower=float(jnp.mean(log_w)) + jacobian,  # -inf if any particle ran off
            estimate=float(log_mean_exp(log_w)) + jacobian,
            standard_error=float(weights.std() / weights.mean() / weights.size**0.5),
            ess=float(effective_sample_size(log_w)),
            draws=weights.size,
        )

    def _require_density(self, what: str) -> None:
        if not self.sampler.exact:
            raise InputError(
                f"{what} needs the sampler's exact density, which this one does not have (its "
                "start is a set of points, or a box or a Metropolis step broke it): fit with a "
                "flow or a deep-latent start, and without those."
            )


def _draw(drawing, n: int, key: Key):
    f, sampler, state, points = drawing
    pick_key, draw_key = jax.random.split(key)
    # Samplers that begin at the data get random points of it; the others ignore what they get.
    rows = jax.random.randint(pick_key, (n,), 0, points.shape[0])
    return sampler.draw(f, points[rows], state, draw_key)[0]


@eqx.filter_jit
def _log_weights(drawing, n: int, key: Key) -> Array:
    return _or_none(_draw(drawing, n, key).log_weight)


@eqx.filter_jit
def _weighted(drawing, n: int, key: Key) -> Nodes:
    """Draws with their weights for Z, all but f; of equal weight where there is no density."""
    particles = _draw(drawing, n, key)
    log_w = particles.log_weight if drawing[1].exact else jnp.zeros_like(particles.f)
    return Nodes(particles.x, _or_none(log_w - particles.f))


@eqx.filter_jit
def _raw(drawing, n: int, key: Key) -> Array:
    return _draw(drawing, n, key).x


@eqx.filter_jit
def _resampled(drawing, n: int, key: Key) -> Array:
    """Systematic resampling, by weights capped so that no point of the pool is taken twice.

    The cap (truncated importance sampling) costs a little bias where the weights have a heavy tail.
    """
    draw_key, offset_key, order_key = jax.random.split(key, 3)
    particles = _draw(drawing, POOL * n, draw_key)
    # In units of the cap every weight is at most 1 and they sum to n: ticks one apart meet each
    # point at most once.
    weights = _capped(jax.nn.softmax(_or_none(particles.log_weight)), n)
    cumulative = jnp.cumsum(weights)
    ticks = (jnp.arange(n) + jax.random.uniform(offset_key)) * (cumulative[-1] / n)
    chosen = jnp.minimum(jnp.searchsorted(cumulative, ticks), POOL * n - 1)
    # Neighbours in the pool are neighbours in the result: put them in random order.
    return jax.random.permutation(order_key, particles.x[chosen])


def _capped(weights: Array, n: int) -> Array:
    """min(w / c, 1) with the cap c for which these sum to n."""

    def bisect(_, bracket):
        low, high = bracket
        middle = 0.5 * (low + high)
        enough = jnp.sum(jnp.minimum(weights / middle, 1)) >= n
        return jnp.where(enough, middle, low), jnp.where(enough, high, middle)

    high = jnp.ones((), weights.dtype)
    low, _ = lax.fori_loop(0, 60, bisect, (jnp.finfo(weights.dtype).tiny * high, high))
    return jnp.minimum(weights / low, 1)


def _or_none(log_w: Array) -> Array:
    """No weight at all for a particle whose weight is not a number."""
    return jnp.where(jnp.isnan(log_w), -jnp.inf, log_w)


@eqx.filter_jit
def _sampler_log_density(f: Potential, sampler: Embedding, z: Points, key: Key):
    return sampler.log_density(f, z, key)


@eqx.filter_jit
def _integral(f: Potential, measure: AbstractMeasure, dim: int) -> tuple[Array, Array]:
    """log Z, and by how much f falls to the ends of the range where they are open."""
    f = paramax.unwrap(f)
    oracle = MaximumLikelihood(measure)
    fall = measure.fall(f, dim) if isinstance(measure, Quadrature) else jnp.inf
    return oracle.log_partition(f, dim), jnp.asarray(fall)


@eqx.filter_jit
def _values(f: Potential, z: Points) -> Array:
    return lax.map(paramax.unwrap(f), z, batch_size=4096)
