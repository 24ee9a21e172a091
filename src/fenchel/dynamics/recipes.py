"""The paper's embeddings by name, each a short recipe over the same maps."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any

import diffrax
import jax

from fenchel.choices import choose
from fenchel.dynamics.clip import ClipNorm, ClipValue, no_clip
from fenchel.dynamics.damped_step import Damped
from fenchel.dynamics.drift import Drift
from fenchel.dynamics.gradient_flow import GradientFlow, Velocity, along_score
from fenchel.dynamics.gradient_step import GradientStep
from fenchel.dynamics.inexact import Box, Metropolis
from fenchel.dynamics.kick import Kick
from fenchel.dynamics.log_det import (
    AbstractLogDet,
    ChebyshevLogDet,
    ExactLogDet,
    FirstOrderLogDet,
    LanczosLogDet,
    TaylorLogDet,
)
from fenchel.dynamics.momentum import Refresh
from fenchel.dynamics.nets import (
    FlowVelocity,
    MomentumScale,
    MomentumVelocity,
    ScoreForce,
    ScoreScale,
)
from fenchel.dynamics.particle import AbstractDynamics
from fenchel.dynamics.probes import AbstractProbes, Basis, Rademacher
from fenchel.dynamics.radius import Given, PowerIteration
from fenchel.dynamics.solve import adaptive, fixed
from fenchel.dynamics.stack import Chain, PerStep, Repeat
from fenchel.dynamics.steps import Langevin, Leapfrog
from fenchel.errors import InputError
from fenchel.parameters import fixed as given_number
from fenchel.parameters import fraction, positive
from fenchel.shapes import Key


@dataclass(frozen=True)
class Options:
    """What all recipes have in common.

    `steps` momenta are used, one a step; `leapfrogs` is the number of leapfrogs with each (of the
    two HMC recipes). `latent` is the momentum's dimension (of the two generalized recipes; the
    data's by default). Step sizes are learnt from `step_size`, always positive: for each dimension
    or one for all, for each step or shared by all. `precision` is the λ of the momenta: one for
    all, or a tuple with one a step. `clip_value`, where given, takes the place of `clip_norm`.
    `damping` is what a damped step leaves of the momentum, given or learnt (`learns_damping`).

    Of the recipes without momentum: `log_det` is exact, first-order, taylor, chebyshev or lanczos
    (auto: exact up to 16 dimensions, then chebyshev), of this `order`, with so many `probes`
    (0: every direction, for a trace without noise). `delta` bounds the Hessian's eigenvalues; None
    finds a bound by power iteration. `trace` is exact or hutchinson (auto: exact up to 16
    dimensions), `solver` adaptive with this `tolerance` and at most `max_steps`, or fixed with
    `solver_steps`, `adjoint` checkpoint (back-propagation) or backsolve.
    """

    steps: int = 3
    leapfrogs: int = 1
    latent: int | None = None
    step_size: float = 0.1
    per_dimension: bool = True
    per_step: bool = True
    clip_norm: float | None = 20.0
    clip_value: float | None = None
    precision: float | tuple[float, ...] = 1.0
    box: tuple[float, float] | None = None
    metropolis: bool = False
    damping: float = 0.5
    learns_damping: bool = False
    remat: bool = False
    log_det: str = "auto"
    order: int = 8
    probes: int = 1
    delta: float | None = None
    trace: str = "auto"
    solver: str = "adaptive"
    tolerance: float = 1e-4
    max_steps: int = 32
    solver_steps: int = 8
    adjoint: str = "checkpoint"

    def __post_init__(self) -> None:
        positive_ones = ("steps", "leapfrogs", "latent", "step_size", "order", "delta")
        for name in (*positive_ones, "tolerance", "max_steps", "solver_steps"):
            value = getattr(self, name)
            if value is not None and not value > 0:
                raise InputError(f"dynamics.{name} is {value}: it must be positive.")
        if len(self.precisions) != self.steps or not all(p > 0 for p in self.precisions):
            raise InputError(
                f"dynamics.precision is {self.precision}: give one positive number, or one for "
                f"each of the {self.steps} steps."
            )
        if not 0 < self.damping < 1:
            raise InputError(
                f"dynamics.damping is {self.damping}: give a fraction of the momentum."
            )
        if self.probes < 0:
            raise InputError(f"dynamics.probes is {self.probes}: give their number, 0 for all.")
        if self.box is not None and len(self.box) != 2:
            raise InputError(f"dynamics.box is {self.box}: give its low and its high end.")
        for name in ("clip_norm", "clip_value"):
            value = getattr(self, name)
            if value is not None and not value > 0:
                raise InputError(f"dynamics.{name} is {value}: give a positive bound, or none.")

    @property
    def precisions(self) -> tuple[float, ...]:
        """λ_1, ..., λ_T."""
        if isinstance(self.precision, tuple):
            return self.precision
        return (self.precision,) * self.steps


def hmc(dim: int, options: Options, key: Key) -> AbstractDynamics:
    """HMC: leapfrogs with one momentum, then a new momentum, and so on.

    The paper's vanilla embedding, T leapfrogs with one momentum, is `steps=1, leapfrogs=T`.
    """
    kick = Kick(clip=_clip(options))

    def step(_: Key, precision: float) -> AbstractDynamics:
        trajectory = _leapfrogs(
            Leapfrog(_step_size(dim, options, options.step_size), kick), options
        )
        return Metropolis(trajectory, precision) if options.metropolis else trajectory

    return _sequence(step, dim, options, key)


def langevin(dim: int, options: Options, key: Key) -> AbstractDynamics:
    """Stochastic Langevin: half a kick and a drift with a new momentum each."""
    kick = Kick(clip=_clip(options))
    _refuse_metropolis(options, "langevin")

    def step(_: Key, precision: float) -> AbstractDynamics:
        return Langevin(_step_size(dim, options, options.step_size), kick)

    return _sequence(step, dim, options, key)


def generalized_hmc(dim: int, options: Options, key: Key) -> AbstractDynamics:
    """The generalized leapfrog, S_v, S_x, g_v and g_x learnt, in a latent momentum space."""
    latent = options.latent or dim
    _refuse_metropolis(options, "generalized-hmc")

    def step(key: Key, precision: float) -> AbstractDynamics:
        return _leapfrogs(Leapfrog(*_generalized(dim, latent, options, key)), options)

    return _sequence(step, latent, options, key)


def generalized_langevin(dim: int, options: Options, key: Key) -> AbstractDynamics:
    """Langevin with g_v, g_x and the scales learnt, in a latent momentum space."""
    latent = options.latent or dim
    _refuse_metropolis(options, "generalized-langevin")

    def step(key: Key, precision: float) -> AbstractDynamics:
        return Langevin(*_generalized(dim, latent, options, key))

    return _sequence(step, latent, options, key)


def damped(dim: int, options: Options, key: Key) -> AbstractDynamics:
    """One momentum that fades, pushed by the clipped score, and no new one between the steps."""
    _refuse_metropolis(options, "damped")
    _require_one_precision(options)
    damping = fraction if options.learns_damping else given_number

    def step(_: Key, precision: float) -> AbstractDynamics:
        size = _step_size(dim, options, options.step_size)
        return Damped(size, damping(options.damping), _clip(options), options.box)

    return _sequence(step, 0, replace(options, box=None), key)


def deterministic(dim: int, options: Options, key: Key) -> AbstractDynamics:
    """Steps along the score alone, each as long as a Langevin step of this size is on average."""
    _refuse_metropolis(options, "deterministic")
    log_det = _log_det(dim, options)

    def step(_: Key, precision: float) -> AbstractDynamics:
        return GradientStep(_step_size(dim, options, options.step_size**2 / 2), log_det)

    return _sequence(step, 0, options, key)


def continuous(dim: int, options: Options, key: Key) -> AbstractDynamics:
    """One flow along the score, at first for as long as `steps` Langevin steps of this size."""
    return _flow(dim, options, "continuous", along_score)


def generalized_continuous(dim: int, options: Options, key: Key) -> AbstractDynamics:
    """One flow along a learnt field, which starts as the score."""
    return _flow(dim, options, "generalized-continuous", FlowVelocity(dim, key=key))


def no_dynamics(dim: int, options: Options, key: Key) -> AbstractDynamics:
    """None at all: the start is the sampler (the paper's normalising-flow baseline)."""
    return Chain()


RECIPES: dict[str, Callable[[int, Options, Key], AbstractDynamics]] = {
    "hmc": hmc,
    "langevin": langevin,
    "generalized-hmc": generalized_hmc,
    "generalized-langevin": generalized_langevin,
    "damped": damped,
    "deterministic": deterministic,
    "continuous": continuous,
    "generalized-continuous": generalized_continuous,
    "none": no_dynamics,
}
WITHOUT_MOMENTUM = ("deterministic", "continuous", "generalized-continuous")
SMALL = 16  # dimensions, up to which whole Jacobians are cheap


def momentum_dimension(name: str, dim: int, options: Options) -> int:
    """Of the momentum that a recipe needs."""
    if name in WITHOUT_MOMENTUM:
        return 0
    return options.latent or dim if name.startswith("generalized") else dim


def _generalized(dim: int, latent: int, options: Options, key: Key):
    """A step size, a kick and a drift with everything learnable."""
    scale_v, scale_x, maps = jax.random.split(key, 3)
    kick = Kick(
        ScoreScale(dim, latent, key=scale_v), ScoreForce(dim, latent, key=maps), _clip(options)
    )
    drift = Drift(MomentumScale(dim, latent, key=scale_x), MomentumVelocity(dim, latent, key=maps))
    # With a momentum space of another dimension a step size a dimension has no meaning: the
    # projections, which are learnt, take its part.
    shape = (dim,) if options.per_dimension and latent == dim else ()
    return positive(options.step_size, shape), kick, drift


def _sequence(
    make: Callable[[Key, float], AbstractDynamics], latent: int, options: Options, key: Key
) -> AbstractDynamics:
    """`steps` of them, with a new momentum between any two."""
    precisions = options.precisions

    def boxed(key: Key, precision: float) -> AbstractDynamics:
        step = make(key, precision)
        return step if options.box is None else Chain([step, Box(*options.box)])

    if not options.per_step:
        _require_one_precision(options)
        refresh = Refresh(latent, precisions[0]) if latent else Chain()
        return Repeat(boxed(key, precisions[0]), options.steps, refresh, options.remat)
    layers = list(map(boxed, jax.random.split(key, options.steps), precisions))
    refreshes = [Refresh(latent, new, old) for old, new in pairwise(precisions)]
    return PerStep.of(layers, refreshes if latent else [], options.remat)


def _flow(dim: int, options: Options, name: str, velocity: Velocity) -> AbstractDynamics:
    _refuse_metropolis(options, name)
    adjoints: dict[str, Callable[[], diffrax.AbstractAdjoint]] = {
        "checkpoint": diffrax.RecursiveCheckpointAdjoint,
        "backsolve": diffrax.BacksolveAdjoint,
    }
    adjoint = choose(adjoints, options.adjoint, "adjoint")()
    solvers = {
        "adaptive": lambda: adaptive(options.tolerance, options.max_steps, adjoint),
        "fixed": lambda: fixed(options.solver_steps, adjoint=adjoint),
    }
    probes = {
        "exact": Basis,
        "hutchinson": lambda: _probes(options),
        "auto": Basis if dim <= SMALL else lambda: _probes(options),
    }
    flow: AbstractDynamics = GradientFlow(
        positive(options.steps * options.step_size**2 / 2),
        velocity,
        choose(probes, options.trace, "trace")(),
        choose(solvers, options.solver, "solver")(),
    )
    return flow if options.box is None else Chain([flow, Box(*options.box)])


def _log_det(dim: int, options: Options) -> AbstractLogDet:
    radius = PowerIteration() if options.delta is None else Given(options.delta)
    settings: dict[str, Any] = {
        "order": options.order,
        "probes": _probes(options),
        "radius": radius,
    }
    kinds: dict[str, Callable[[], AbstractLogDet]] = {
        "exact": ExactLogDet,
        "first-order": lambda: FirstOrderLogDet(radius=radius),
        "taylor": lambda: TaylorLogDet(**settings),
        "chebyshev": lambda: ChebyshevLogDet(**settings),
        "lanczos": lambda: LanczosLogDet(**settings),
    }
    kinds["auto"] = kinds["exact" if dim <= SMALL else "chebyshev"]
    return choose(kinds, options.log_det, "log-determinant")()


def _probes(options: Options) -> AbstractProbes:
    return Rademacher(options.probes) if options.probes else Basis()


def _leapfrogs(leapfrog: Leapfrog, options: Options) -> AbstractDynamics:
    if options.leapfrogs == 1:
        return leapfrog
    return Repeat(leapfrog, options.leapfrogs, remat=options.remat)


def _step_size(dim: int, options: Options, size: float):
    return positive(size, (dim,) if options.per_dimension else ())


def _clip(options: Options):
    if options.clip_value is not None:
        return ClipValue(options.clip_value)
    return no_clip if options.clip_norm is None else ClipNorm(options.clip_norm)


def _require_one_precision(options: Options) -> None:
    if len(set(options.precisions)) > 1:
        raise InputError("Steps that share their parameters share λ too: give one precision.")


def _refuse_metropolis(options: Options, name: str) -> None:
    if options.metropolis:
        raise InputError(
            f"A Metropolis step needs reversible dynamics that keep volume, and {name} is not: "
            "use it with hmc."
        )
