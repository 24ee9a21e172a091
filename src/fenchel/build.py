"""From a configuration to the objects it names."""

from collections.abc import Callable
from functools import lru_cache
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import optax

from fenchel.activations import leaky_relu, silu
from fenchel.choices import choose
from fenchel.config import Config, PotentialConfig, StartConfig, TrainingConfig
from fenchel.data import Standardiser
from fenchel.dynamics import (
    RECIPES,
    SMALL,
    AbstractDynamics,
    CentredNormal,
    Chain,
    ExactLogDet,
    Given,
    Options,
    Refresh,
    TaylorLogDet,
    momentum_dimension,
)
from fenchel.errors import InputError
from fenchel.estimation import build_estimator, domain_of, drawing_chains, states_of
from fenchel.estimators import (
    AbstractCriterion,
    AbstractEstimator,
    Domain,
    FenchelBound,
    Pairs,
    WeightedBound,
)
from fenchel.methods import METHODS
from fenchel.parameters import given
from fenchel.picture_parts import (
    GENERATORS,
    is_of_pictures,
    picture_potential,
    picture_shape,
    picture_start,
)
from fenchel.potentials import (
    MLP,
    DiagonalGaussian,
    FullGaussian,
    GaussianBase,
    InUnits,
    Ising,
    OnBase,
    Potts,
    RestrictedBoltzmann,
    SelfNormalised,
    Within,
    graphs,
)
from fenchel.samplers import (
    AbstractGradient,
    AbstractSampler,
    BackPropagation,
    Detached,
    Embedding,
    Truncated,
)
from fenchel.shapes import Array, Key, Potential
from fenchel.starts import (
    FLOWS,
    AbstractDensityStart,
    AbstractStart,
    Empirical,
    Flow,
    Replay,
)
from fenchel.starts import deep_latent as make_deep_latent
from fenchel.starts import residual as make_residual
from fenchel.train import AbstractLearner, MaxMin, Minimise, Simultaneous, Wait

ACTIVATIONS: dict[str, Callable[[Array], Array]] = {
    "silu": silu,
    "softplus": jax.nn.softplus,
    "tanh": jnp.tanh,
    "gelu": jax.nn.gelu,
    "relu": jax.nn.relu,
    "leaky-relu": leaky_relu,
}

CUSTOM = "custom"  # the kind of a part that the user built: it cannot be rebuilt from data
EMBEDDINGS = ("ade", "nf")  # the methods that learn their sampler
COORDINATES = {"standard": False, "data": True}  # whether f sees the data in their own units
DISCRETE = ("ising", "potts", "rbm")  # potentials of discrete variables

BUILD_PURPOSE = 2_311  # sets the keys of the parts apart from those of the run


class Model(NamedTuple):
    """f, and what draws from it."""

    potential: Potential
    sampler: AbstractSampler


class Parts(NamedTuple):
    """What is learnt, and what learns it."""

    potential: Potential
    sampler: AbstractSampler
    learner: AbstractLearner


def build(
    config: Config,
    dim: int,
    *,
    estimator: AbstractEstimator | None = None,
    domain: Domain | None = None,
    scaling: Standardiser | None = None,
    **own: Any,
) -> Parts:
    """The parts of a run; those given are taken as they are, as by `build_model`."""
    potential, sampler = build_model(config, dim, domain=domain, scaling=scaling, **own)
    if isinstance(sampler, Embedding) and config.method in EMBEDDINGS:
        return Parts(potential, sampler, build_maxmin(config.training, sampler, dim))
    if estimator is None:
        estimator = build_estimator(
            config.method, config.estimator, config.start, dim, potential, _keys(config)[1]
        )
    return Parts(potential, sampler, build_minimise(config.training, estimator))


def build_model(
    config: Config,
    dim: int,
    *,
    potential: Potential | None = None,
    start: AbstractStart | None = None,
    dynamics: AbstractDynamics | None = None,
    domain: Domain | None = None,
    scaling: Standardiser | None = None,
) -> Model:
    """The potential and the sampler; those parts that are given are taken as they are.

    `domain` is the configuration's in the coordinates that the sampler sees, and `scaling` the way
    from there to the data's own.
    """
    _require_own(config, {"potential": potential, "start": start, "dynamics": dynamics})
    keys = _keys(config)
    if potential is None:
        potential = _named_potential(config, dim, keys[0])
    if choose(COORDINATES, config.potential.coordinates, "coordinates"):
        scaling = scaling or Standardiser(np.zeros(dim), np.ones(dim))
        potential = _in_units(potential, config.potential, scaling)
    if config.potential.domain is not None:
        domain = domain or Domain(jnp.zeros(dim), jnp.ones(dim))
        potential = Within(potential, jnp.asarray(domain.low), jnp.asarray(domain.high))
    if config.method == "nce" or config.estimator.learns_constant:
        potential = SelfNormalised(potential)
    _check_method(config, potential)
    if config.method not in EMBEDDINGS:
        return Model(potential, drawing_chains(dim, potential, keys[2]))
    if dynamics is None:
        dynamics = build_dynamics(config.dynamics.kind, config.dynamics, dim, keys[2])
    if start is None:
        given = config.dynamics.kind == CUSTOM  # of an unknown momentum: taken to be the data's
        latent = dim if given else _latents(config.dynamics.kind, config.dynamics, dim)[0]
        precision, scale = config.dynamics.precisions[0], _base_scale(potential)
        start = _named_start(config, dim, latent, precision, scale, keys[1])
    return Model(potential, Embedding(start, dynamics, config.dynamics.precisions[-1]))


def _in_units(potential: Potential, config: PotentialConfig, scaling: Standardiser) -> Potential:
    """f of the data as they are; a named one begins where they are."""
    if states_of(potential) is not None or config.kind == "mlp":
        raise InputError(
            "The data's own coordinates are for models whose parameters have units: leave the "
            "coordinates of nets and of discrete models as they are."
        )
    mean, log_scale = (jnp.asarray(v, float) for v in (scaling.mean, np.log(scaling.scale)))
    if config.kind == "gaussian":
        potential = DiagonalGaussian(mean, -2 * log_scale)
    elif config.kind == "full-gaussian":
        potential = FullGaussian(mean, -jnp.diag(log_scale))
    return InUnits(potential, scaling.mean, scaling.scale)


def _keys(config: Config) -> Array:
    return jax.random.split(jax.random.fold_in(jax.random.key(config.seed), BUILD_PURPOSE), 3)


def noise_floor(
    config: Config, potential: Potential, learner: AbstractLearner | AbstractEstimator
) -> float:
    """The noise on training data, in standard deviations.

    It would take discrete data off their states, and others out of their domain.
    """
    bounded = states_of(potential) is not None or config.potential.domain is not None
    return 0.0 if bounded else config.training.floor(learner.noise_floor)


def _check_method(config: Config, potential: Potential) -> None:
    """Refuse a method that cannot fit this potential, and say which can."""
    name = config.method
    if name == CUSTOM:
        return
    method = choose(METHODS, name, "method")
    if states_of(potential) is not None and not method.discrete:
        able = ", ".join(other for other, entry in METHODS.items() if entry.discrete)
        raise InputError(
            f"The method {name!r} moves points along gradients, and this model's variables are "
            f"discrete: choose from {able}."
        )
    if domain_of(potential) is not None and not method.bounded:
        able = ", ".join(other for other, entry in METHODS.items() if entry.bounded)
        raise InputError(
            f"The method {name!r} does not keep to a domain: choose from {able}, or take "
            "logarithms (or logits) of the data instead."
        )
    if method.curved and config.potential.activation == "relu":
        raise InputError(
            f"The method {name!r} sees f's curvature, and a ReLU net has none: use a smooth "
            "activation, such as silu."
        )


def _base_scale(potential: Potential) -> float:
    """The width of a Gaussian base measure under f, where there is one."""
    base = potential.base if isinstance(potential, OnBase) else None
    return base.scale if isinstance(base, GaussianBase) else 1.0


def _require_own(config: Config, given: dict[str, object]) -> None:
    for name, part in given.items():
        if getattr(config, name).kind == CUSTOM and part is None:
            raise InputError(
                f"The {name} of this run was an object of your own, which no file describes: pass "
                f"one of the same structure as `{name}=`, and its numbers are filled in."
            )


def _named_potential(config: Config, dim: int, key: Key) -> Potential:
    if not is_of_pictures(config):
        return build_potential(config.potential, dim, key)
    activation = choose(ACTIVATIONS, config.potential.activation, "activation")
    return picture_potential(config.potential, picture_shape(config), activation, key)


def build_potential(config: PotentialConfig, dim: int, key: Key) -> Potential:
    activation = choose(ACTIVATIONS, config.activation, "activation")
    if config.units < 1:
        raise InputError(f"potential.units is {config.units}: give at least one hidden unit.")
    kinds: dict[str, Callable[[], Potential]] = {
        "mlp": lambda: MLP(dim, config.width, config.depth, activation, key=key),
        "gaussian": lambda: DiagonalGaussian(jnp.zeros(dim), jnp.zeros(dim)),
        "full-gaussian": lambda: FullGaussian(jnp.zeros(dim), jnp.zeros((dim, dim))),
        "ising": lambda: Ising(dim, _graph(config.graph, dim)),
        "potts": lambda: Potts(dim, config.states, _graph(config.graph, dim)),
        "rbm": lambda: RestrictedBoltzmann(dim, config.units, key=key),
    }
    potential = choose(kinds, config.kind, "potential")()
    if config.base_scale is None or config.kind != "mlp":
        return potential
    return OnBase(potential, GaussianBase(config.base_scale))


def _graph(name: str, dim: int) -> np.ndarray:
    kinds = {"complete": graphs.complete, "chain": graphs.chain}
    rows, cross, columns = name.partition("x")
    if cross and rows.isdigit() and columns.isdigit():
        if int(rows) * int(columns) != dim:
            raise InputError(f"The graph {name} has not the {dim} places that the data have.")
        return graphs.grid(int(rows), int(columns))
    return choose(kinds, name, "graph (or grid, such as 4x5)")(dim)


def _named_start(
    config: Config, dim: int, latent: int, precision: float, scale: float, key: Key
) -> AbstractStart:
    if config.start.kind not in GENERATORS:
        return build_start(config.start, dim, latent, precision, scale, key)
    momentum = _first_momentum(config.start, latent, precision)
    return picture_start(config.start, picture_shape(config), momentum, key)


def _first_momentum(config: StartConfig, latent: int, precision: float) -> CentredNormal:
    """Learnt from the model's own, or of a given size."""
    if config.momentum is None:
        return CentredNormal(latent, precision)
    return given(CentredNormal(latent, config.momentum**-2))


def build_start(
    config: StartConfig, dim: int, latent: int, precision: float, scale: float, key: Key
) -> AbstractStart:
    """`scale` is the width of the potential's base measure: flows begin there."""
    momentum = _first_momentum(config, latent, precision)
    if config.kind == "deep-latent" and not latent:
        raise InputError(
            "A deep-latent start makes its point from the momentum, and these dynamics have none: "
            "take a flow, such as --start spline, or begin the dynamics with hmc+."
        )

    layers: dict[str, Any] = {} if config.layers is None else {"layers": config.layers}
    sizes = layers | {"width": config.width, "depth": config.depth}

    def flow(kind: str) -> AbstractStart:
        own = layers if kind == "planar" else sizes
        return Flow(FLOWS[kind](dim, scale=scale, key=key, **own), momentum)

    def residual() -> AbstractStart:
        # A layer's Jacobian is not symmetric: Taylor's expansion does not mind, Chebyshev's may.
        log_det = ExactLogDet() if dim <= SMALL else TaylorLogDet(radius=Given(1.0))
        return make_residual(dim, momentum, scale=scale, log_det=log_det, key=key, **sizes)

    kinds: dict[str, Callable[[], AbstractStart]] = {
        **{kind: (lambda kind=kind: flow(kind)) for kind in FLOWS},  # type: ignore[misc]
        "deep-latent": lambda: make_deep_latent(
            dim, latent, config.width, config.depth, precision=precision, key=key
        ),
        "residual": residual,
        "empirical": lambda: Empirical(momentum),
        "replay": lambda: Replay(momentum, config.capacity, config.restart),
    }
    return choose(kinds, config.kind, "start")()


def build_dynamics(kind: str, options: Options, dim: int, key: Key) -> AbstractDynamics:
    """A recipe, or several joined by `+`, with a new momentum between any two."""
    names = kind.split("+")
    latents = _latents(kind, options, dim)
    layers: list[AbstractDynamics] = []
    for index, name in enumerate(names):
        if index:
            layers.append(Refresh(latents[index], options.precisions[0], options.precisions[-1]))
        layers.append(RECIPES[name](dim, options, jax.random.fold_in(key, index)))
    return layers[0] if len(layers) == 1 else Chain(layers)


def _latents(kind: str, options: Options, dim: int) -> list[int]:
    """The momentum's dimension in each of the recipes."""
    for name in kind.split("+"):
        choose(RECIPES, name, "dynamics")
    return [momentum_dimension(name, dim, options) for name in kind.split("+")]


def build_minimise(config: TrainingConfig, estimator: AbstractEstimator) -> Minimise:
    """A classical estimator with these settings."""
    _check_training(config)
    return Minimise(
        estimator,
        _optimiser(config.potential_rate, config.steps, config),
        decay=_decay(config),
        wait=Wait(config.wait),
    )


def build_maxmin(config: TrainingConfig, sampler: Embedding, dim: int) -> MaxMin:
    """Algorithm 1 with these settings, for points of this dimension.

    A sampler without an exact density (from a set of points, a box, a Metropolis step) has no
    importance weights, and a start without one no anchor: the paper's plain bound, or no anchor,
    then takes their place.
    """
    _check_training(config)
    dual = FenchelBound(config.entropy, config.momentum)
    bounds: dict[str, AbstractCriterion] = {
        "weighted": WeightedBound() if sampler.exact else dual,
        "fenchel": dual,
        "pairs": Pairs(),
    }
    gradients: dict[str, AbstractGradient] = {
        "truncated": Truncated(),
        "detached": Detached(),
        "bptt": BackPropagation(),
    }
    anchored = isinstance(sampler.start, AbstractDensityStart)
    learner = MaxMin if config.sampler_steps else Simultaneous
    sampler_updates = config.steps * max(1, config.sampler_steps)

    return learner(
        bound=choose(bounds, config.bound, "bound"),
        dual=dual,
        gradient=choose(gradients, config.gradient, "gradient estimator"),
        potential_optimiser=_optimiser(config.potential_rate, config.steps, config),
        start_optimiser=_optimiser(config.start_rate, sampler_updates, config),
        dynamics_optimiser=_optimiser(
            config.dynamics_rate, sampler_updates, config, config.dynamics_epsilon
        ),
        sampler_steps=config.sampler_steps,
        anchor=config.anchor_in(dim) if anchored else 0.0,
        gradient_penalty=config.gradient_penalty,
        wait=Wait(config.wait),
        decay=_decay(config),
    )


def _optimiser(
    rate: float, updates: int, config: TrainingConfig, epsilon: float = 1e-8
) -> optax.GradientTransformation:
    """Adam, with a rate that ends with the run: Optax counts updates, not iterations."""
    return _adam(rate, updates, config.final_rate, config.first_moment, epsilon)


@lru_cache(maxsize=64)
def _adam(
    rate: float, updates: int, final_rate: float, first_moment: float, epsilon: float
) -> optax.GradientTransformation:
    """One object for the same settings: a second fit with them is not compiled again."""
    schedule = optax.cosine_decay_schedule(rate, updates, final_rate)
    return optax.adam(schedule, b1=first_moment, eps=epsilon)


def _decay(config: TrainingConfig) -> float:
    """Of the moving averages.

    The learning rates fall to almost nothing, so a short look back is all that is needed; a long
    one would hand out a model from before it had converged.
    """
    return 1 - 1 / max(10.0, config.averaging * config.steps)


def _check_training(config: TrainingConfig) -> None:
    positive = ("steps", "batch", "block", "checkpoint_every")
    rates = ("potential_rate", "start_rate", "dynamics_rate", "dynamics_epsilon")
    for name in (*positive, *rates):
        if not getattr(config, name) > 0:
            raise InputError(f"training.{name} is {getattr(config, name)}: it must be positive.")
    if config.sampler_steps < 0:
        raise InputError(f"training.sampler_steps is {config.sampler_steps}: give 0 or more.")
    if not 0 <= config.first_moment < 1:
        raise InputError(f"training.first_moment is {config.first_moment}: give 0 up to below 1.")
    if not 0 <= config.averaging <= 1:
        raise InputError(f"training.averaging is {config.averaging}: give a fraction of the run.")
    if not 0 < config.final_rate <= 1:
        raise InputError(f"training.final_rate is {config.final_rate}: give a fraction above 0.")
    if config.noise is not None and config.noise < 0:
        raise InputError(f"training.noise is {config.noise}: it must not be negative.")
