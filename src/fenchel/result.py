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
from fenchel.completion import completions
from fenchel.config import Config
from fenchel.data import (
    Pictures,
    Standardiser,
    as_mask,
    as_rows,
    half_mask,
    load_pictures,
)
from fenchel.drawing import FEW, LARGE, Drawing
from fenchel.errors import InputError
from fenchel.estimation import domain_of, states_of, whole_measure
from fenchel.estimators import AbstractMeasure, Domain
from fenchel.evaluate import ParameterTable, WeightedDraws
from fenchel.evidence import Chains, LogPartition, nuts
from fenchel.inference import Inference, Seen
from fenchel.parameters import flat
from fenchel.partition import Account, can_be_summed, log_partition, usual
from fenchel.picture_parts import Shape, is_of_pictures, picture_shape
from fenchel.potentials import SelfNormalised
from fenchel.samplers import AbstractSampler, Embedding
from fenchel.seeds import key_of
from fenchel.shapes import Array, Key, Points, Potential, PyTree

FAR = 1e30  # standard deviations
MISS = 1e-3  # standard deviations: by so much an inverse may be off
MODEL_DRAWS = 64  # for each datum, so that their noise is an eighth of a standard error, but
FEWEST_DRAWS, MOST_DRAWS = 2**15, 2**19  # at least and at most so many, and less where
MOST_SLOPES = 2**25  # numbers would not hold f's slopes at them
MODEL_PURPOSE = 3_083  # sets them apart
REFERENCE_PURPOSE = 6_451  # and those of reference chains


class LogLikelihood(NamedTuple):
    """The mean log likelihood of some rows, and how well it is known."""

    lower: float
    upper: float  # what log Z's bracket makes of it
    estimate: float
    standard_error: float  # over rows, and of log Z
    rows: int
    ess: float  # log Z's
    pareto_k: float
    caution: str


@dataclass(frozen=True, eq=False, repr=False)
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

    def __repr__(self) -> str:
        columns = f"{self.dim} column{'' if self.dim == 1 else 's'}"
        learnt = ("potential", "start", "dynamics") if self._learns_sampler else ("potential",)
        parts = ", ".join(f"{name} {getattr(self.config, name).kind}" for name in learnt)
        return f"<Fit of {self.name}: {columns}, method {self.config.method}, {parts}>"

    @property
    def dim(self) -> int:
        return len(self.columns)

    @property
    def temperature(self) -> float:
        """c, where what was fitted is exp f/c: of most models 1, of pictures far less."""
        return self.config.training.temperature(self.sampler.exact)

    @property
    def is_corrected(self) -> bool:
        """Whether `sample` corrects its draws by their weights, which are those of exp f."""
        return self.sampler.exact and self.temperature == 1

    @property
    def shape(self) -> Shape | None:
        """Height, width and channels, where the data are pictures."""
        return picture_shape(self.config) if is_of_pictures(self.config) else None

    def potential(self, x: ArrayLike) -> np.ndarray:
        """f at each row of x: the unnormalised log density.

        A model of pictures also takes them as bytes (n, height, width, channels).
        """
        # So far out f on a base measure is minus infinity; further, where numbers of single
        # precision end, it would not be a number.
        z = np.clip(self.standardiser.forward(as_rows(self._as_levels(x))), -FAR, FAR)
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

    def log_partition(
        self, by: Account | None = None, points: ArrayLike | None = None
    ) -> LogPartition:
        """log of the integral of exp f over the data's space, between two bounds.

        **Arguments:**

        - `by`: `"weights"`, the sampler's importance weights, where it has a density;
          `"quadrature"`, a sum over a grid in up to three columns or over all states;
          `"annealing"` from the sampler's start to f and back, or an `fx.evidence.Annealing` with
          settings of your own; `"tempering"` (sequential Monte Carlo), likewise; `"learnt"`, the
          constant of noise contrast. Without a choice, the first of them that can be had.
        - `points`: rows at which annealing's way back begins, after long chains on f: held-out
          data, say. Without them it begins at the sampler's own draws, and cannot notice a mode
          that the sampler has lost.
        """
        by = by or usual(self._drawing, self.dim)
        if points is not None:
            z = self.standardiser.forward(as_rows(points))
            found = log_partition(self._drawing, self.dim, self.config.seed, by, z)
            return found.moved(self.standardiser.log_scale)
        known, name = self._partitions, repr(by)
        if name not in known:
            found = log_partition(self._drawing, self.dim, self.config.seed, by)
            known[name] = found.moved(self.standardiser.log_scale)
        return known[name]

    @property
    def accounts(self) -> tuple[str, ...]:
        """The ways in which `log_partition` can be had, but for tempering."""
        ways = {
            "weights": self.sampler.exact,
            "annealing": states_of(self.f) is None and domain_of(self.f) is None,
            "quadrature": can_be_summed(self.f, self.dim),
            "learnt": isinstance(self.f, SelfNormalised),
        }
        return tuple(name for name, possible in ways.items() if possible)

    def log_likelihood(self, x: ArrayLike, by: Account | None = None) -> LogLikelihood:
        """The mean log likelihood of the rows of x; `by` is `log_partition`'s."""
        values, z = self.potential(x), self.log_partition(by)
        n, (mean, error) = len(values), mean_with_error(values)
        lost = n - int(np.isfinite(values).sum())
        cautions = [f"f is not finite at {lost:,} of {n:,} rows"] if lost else []
        return LogLikelihood(
            lower=float(mean - z.upper),
            upper=float(mean - z.lower),
            estimate=float(mean - z.estimate),
            standard_error=float(np.hypot(error, z.standard_error)),
            rows=n,
            ess=z.ess,
            pareto_k=z.pareto_k,
            caution="; ".join([*cautions, *([z.caution] if z.caution else [])]),
        )

    def reference(
        self, draws: int = 1_000, *, chains: int = 4, warm_up: int = 500, seed: int = 0
    ) -> Chains:
        """Draws of exp f by the No-U-Turn sampler, begun at the sampler's own, with R-hat and
        effective sample sizes: what to hold the sampler against."""
        if states_of(self.f) is not None or domain_of(self.f) is not None:
            raise InputError(
                "NUTS moves along f's gradient over all of space, and this model is discrete or "
                "within a domain: its own chains are the reference."
            )
        begin_key, run_key = jax.random.split(jax.random.fold_in(key_of(seed), REFERENCE_PURPOSE))
        begin = jnp.asarray(self._drawing.finite(chains, begin_key), jnp.result_type(float))
        found = nuts(self.f, begin, self.columns, run_key, draws, warm_up)
        return replace(found, x=self.standardiser.inverse(found.x))

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
        sampler. By default they are corrected wherever the sampler has an exact density and exp f
        itself was fitted: see `temperature`.
        """
        if n < 1:
            raise InputError(f"{n} samples were asked for: ask for at least one.")
        key = key_of(seed)
        corrected = self.is_corrected if corrected is None else corrected
        draw = self._drawing.corrected if corrected else self._drawing.raw
        return self.standardiser.inverse(draw(n, key))

    def pictures(self, n: int, seed: int = 0) -> np.ndarray:
        """n draws as pictures: bytes (n, height, width, channels)."""
        return self.as_pictures(self.sample(n, seed))

    def complete(
        self,
        pictures: ArrayLike,
        mask: str | ArrayLike = "lower",
        *,
        rounds: int = 20,
        seed: int = 0,
    ) -> np.ndarray:
        """Pictures of which a part is hidden, completed by the learnt dynamics.

        **Arguments:**

        - `pictures`: bytes (n, height, width, channels).
        - `mask`: what to complete: `"lower"`, `"upper"`, `"left"`, `"right"`, or an array of
          a picture's shape that is true there.
        - `rounds`: how often the whole dynamics are run, each time with a new momentum.

        **Returns:** bytes (rounds + 1, n, height, width, channels): what is hidden begins as
        noise; the last frame is the completion.
        """
        shape = self.shape
        if shape is None:
            raise InputError("Completion is for models of pictures: this is one of a table.")
        if rounds < 1:
            raise InputError(f"{rounds} rounds were asked for: ask for at least one.")
        given = load_pictures(pictures)
        hidden = half_mask(mask, shape) if isinstance(mask, str) else as_mask(mask, shape)
        levels = self._as_levels(given.x)
        self.standardiser.check_dimension(levels)
        z = jnp.asarray(self.standardiser.forward(levels), jnp.result_type(float))
        free = jnp.asarray(hidden.ravel())
        key = key_of(seed)
        box = (-1.0, 1.0)
        # As bytes, of which there is room for many, before the next few are completed.
        parts = [
            [self.as_pictures(self.standardiser.inverse(np.asarray(x))) for x in frames]
            for frames in completions(self.f, self.sampler, z, free, rounds, box, FEW, key)
        ]
        # What was given comes back as it was, to the byte.
        return np.where(hidden, np.concatenate(parts, axis=1), given.x)

    def _as_levels(self, x: ArrayLike) -> ArrayLike:
        """Pictures as rows of levels, each in the middle of the cell that it was spread over."""
        if self.shape is None or np.ndim(x) not in (3, 4):
            return x
        return load_pictures(x).rows() + self.config.pictures.dequantise / 2

    def as_pictures(self, x: np.ndarray) -> np.ndarray:
        """Rows, as `sample` draws them, as bytes (n, height, width, channels)."""
        if self.shape is None:
            raise InputError("This is a model of a table, not of pictures: use `sample`.")
        middle = self.config.pictures.dequantise / 2
        return Pictures.of_rows(x - middle, self.shape).x

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
        moved = replace(self, f=rebuild(parameters + jnp.asarray(step, parameters.dtype)))
        if moved.has_log_partition:
            caution = moved.log_partition().caution
            if caution and not self.log_partition().caution:
                raise InputError(
                    f"One step leads to an f whose integral is in doubt ({caution}): train longer."
                )
        return moved

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
        quick = [way for way in ("weights", "quadrature") if way in self.accounts]
        if quick:
            mean = self.log_likelihood(self.standardiser.inverse(seen.data), quick[0]).estimate
            facts.append(("Log likelihood", f"{len(seen.data) * mean:.2f}"))
        return facts

    def _model(self, rows: int) -> AbstractMeasure:
        """What stands for integrals over the model, with the accuracy that so many data deserve."""
        if self._measure is not None and not self.sampler.exact:
            return self._measure
        if self._learns_sampler:
            self._drawing.require_density("The information")
        most = min(MOST_DRAWS, MOST_SLOPES // flat(self.f)[0].size)
        count = min(max(FEWEST_DRAWS, MODEL_DRAWS * rows), most)
        own = jax.random.fold_in(jax.random.key(self.config.seed), MODEL_PURPOSE)
        return WeightedDraws(self._drawing.weighted(count, own))

    @property
    def _learns_sampler(self) -> bool:
        return self.config.method in EMBEDDINGS

    @property
    def _drawing(self) -> Drawing:
        return Drawing(self.f, self.sampler, self.sampler_state, self.points)

    @property
    def _measure(self) -> AbstractMeasure | None:
        return whole_measure(self.dim, self.f, domain_of(self.f) or Domain())

    @cached_property
    def _partitions(self) -> dict[str, LogPartition]:
        return {}  # what `log_partition` has found so far


def mean_with_error(values: np.ndarray) -> tuple[float, float]:
    """The mean and its standard error, which nobody knows of one value."""
    spread = np.inf
    if len(values) > 1:
        with np.errstate(invalid="ignore"):  # a row without any density leaves no spread
            spread = values.std(ddof=1)
    return float(values.mean()), float(spread / len(values) ** 0.5)


@eqx.filter_jit
def _sampler_log_density(f: Potential, sampler: Embedding, z: Points, key: Key):
    return sampler.log_density(f, z, key)


@eqx.filter_jit
def _values(f: Potential, z: Points) -> Array:
    return lax.map(paramax.unwrap(f), z, batch_size=4096 if z.shape[1] < LARGE else FEW)
