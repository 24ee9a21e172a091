"""From a configuration to the objects it names."""

from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import optax

from fenchel.choices import choose
from fenchel.config import Config, PotentialConfig, StartConfig, TrainingConfig
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
from fenchel.estimators import AbstractBound, FenchelBound, WeightedBound
from fenchel.potentials import MLP, DiagonalGaussian, FullGaussian, GaussianBase, OnBase
from fenchel.samplers import AbstractGradient, BackPropagation, Embedding, Truncated
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
from fenchel.train import MaxMin, Wait

METHODS = {"ade": "adversarial dynamics embedding: the model and its sampler learnt together"}

ACTIVATIONS: dict[str, Callable[[Array], Array]] = {
    "silu": jax.nn.silu,
    "softplus": jax.nn.softplus,
    "tanh": jnp.tanh,
    "gelu": jax.nn.gelu,
    "relu": jax.nn.relu,
}

CUSTOM = "custom"  # the kind of a part that the user built: it cannot be rebuilt from data


BUILD_PURPOSE = 2_311  # sets the keys of the parts apart from those of the run


class Parts(NamedTuple):
    """What is learnt, and what learns it."""

    potential: Potential
    sampler: Embedding
    maxmin: MaxMin


def build(
    config: Config,
    dim: int,
    *,
    potential: Potential | None = None,
    start: AbstractStart | None = None,
    dynamics: AbstractDynamics | None = None,
) -> Parts:
    """The parts of a run; those given are taken as they are."""
    choose(METHODS, config.method, "method")
    _require_own(config, {"potential": potential, "start": start, "dynamics": dynamics})
    keys = jax.random.split(jax.random.fold_in(jax.random.key(config.seed), BUILD_PURPOSE), 3)
    if potential is None:
        potential = build_potential(config.potential, dim, keys[0])
    if dynamics is None:
        dynamics = build_dynamics(config.dynamics.kind, config.dynamics, dim, keys[2])
    if start is None:
        own = config.dynamics.kind == CUSTOM  # of an unknown momentum: taken to be the data's
        latent = dim if own else _latents(config.dynamics.kind, config.dynamics, dim)[0]
        precision, scale = config.dynamics.precisions[0], _base_scale(potential)
        start = build_start(config.start, dim, latent, precision, scale, keys[1])
    sampler = Embedding(start, dynamics, config.dynamics.precisions[-1])
    return Parts(potential, sampler, build_maxmin(config.training, sampler))


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


def build_potential(config: PotentialConfig, dim: int, key: Key) -> Potential:
    activation = choose(ACTIVATIONS, config.activation, "activation")
    kinds: dict[str, Callable[[], Potential]] = {
        "mlp": lambda: MLP(dim, config.width, config.depth, activation, key=key),
        "gaussian": lambda: DiagonalGaussian(jnp.zeros(dim), jnp.zeros(dim)),
        "full-gaussian": lambda: FullGaussian(jnp.zeros(dim), jnp.zeros((dim, dim))),
    }
    potential = choose(kinds, config.kind, "potential")()
    if config.base_scale is None or config.kind != "mlp":
        return potential
    return OnBase(potential, GaussianBase(config.base_scale))


def build_start(
    config: StartConfig, dim: int, latent: int, precision: float, scale: float, key: Key
) -> AbstractStart:
    """`scale` is the width of the potential's base measure: flows begin there."""
    momentum = CentredNormal(latent, precision)
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


def build_maxmin(config: TrainingConfig, sampler: Embedding) -> MaxMin:
    """Algorithm 1 with these settings.

    A sampler without an exact density (from a set of points, a box, a Metropolis step) has no
    importance weights, and a start without one no anchor: the paper's plain bound, or no anchor,
    then takes their place.
    """
    _check_training(config)
    dual = FenchelBound(config.entropy, config.momentum)
    bounds: dict[str, AbstractBound] = {
        "weighted": WeightedBound() if sampler.exact else dual,
        "fenchel": dual,
    }
    gradients: dict[str, AbstractGradient] = {"truncated": Truncated(), "bptt": BackPropagation()}
    anchored = isinstance(sampler.start, AbstractDensityStart)

    def optimiser(rate: float, updates: int) -> optax.GradientTransformation:
        """Adam, with a rate that ends with the run: Optax counts updates, not iterations."""
        return optax.adam(optax.cosine_decay_schedule(rate, updates, config.final_rate))

    sampler_updates = config.steps * config.sampler_steps

    return MaxMin(
        bound=choose(bounds, config.bound, "bound"),
        dual=dual,
        gradient=choose(gradients, config.gradient, "gradient estimator"),
        potential_optimiser=optimiser(config.potential_rate, config.steps),
        start_optimiser=optimiser(config.start_rate, sampler_updates),
        dynamics_optimiser=optimiser(config.dynamics_rate, sampler_updates),
        sampler_steps=config.sampler_steps,
        anchor=config.anchor if anchored else 0.0,
        gradient_penalty=config.gradient_penalty,
        wait=Wait(config.wait),
        # The learning rates fall to almost nothing, so a short look back is all that is needed;
        # a long one would hand out a model from before it had converged.
        decay=1 - 1 / max(10.0, config.averaging * config.steps),
    )


def _check_training(config: TrainingConfig) -> None:
    positive = ("steps", "batch", "sampler_steps", "block", "checkpoint_every")
    rates = ("potential_rate", "start_rate", "dynamics_rate")
    for name in (*positive, *rates):
        if not getattr(config, name) > 0:
            raise InputError(f"training.{name} is {getattr(config, name)}: it must be positive.")
    if not 0 <= config.averaging <= 1:
        raise InputError(f"training.averaging is {config.averaging}: give a fraction of the run.")
    if not 0 < config.final_rate <= 1:
        raise InputError(f"training.final_rate is {config.final_rate}: give a fraction above 0.")
    if config.noise < 0:
        raise InputError(f"training.noise is {config.noise}: it must not be negative.")
