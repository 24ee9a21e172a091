"""The choices of a run as plain data: what a configuration file may say, and what a run records."""

import json
import tomllib
import types
from dataclasses import asdict, dataclass, field, fields, is_dataclass, replace
from pathlib import Path
from typing import Any, TypeVar, Union, get_args, get_origin, get_type_hints

from fenchel.choices import nearest
from fenchel.dynamics import Options
from fenchel.errors import InputError

T = TypeVar("T")

# What runs did before there was a setting for it, where that is not the default now.
BEFORE: dict[str, dict[str, Any]] = {"training": {"scouts": 0.0}}
RECORD = "fenchel-run"  # the format of a run's record, one part of which is its choices


@dataclass(frozen=True)
class PotentialConfig:
    """f. `base_scale` is the width of the Gaussian base measure under it; null for none.

    `coordinates` are those that f sees: standard ones, or the data's own ("data"), in which its
    parameters then are. `domain` is where the data can be, in their own units and for every
    column: its low and its high end, of which one may be infinite. `graph` (complete, chain, or a
    grid such as 4x5) and `states` are those of discrete models, `units` the hidden ones of a
    Boltzmann machine. Nets of pictures compute in this `precision`, with weights as `norm` says
    (spectral or none); what multiplies them, `scale`, is given or learnt (`learns_scale`).
    """

    kind: str = "mlp"
    width: int = 128
    depth: int = 3
    activation: str = "silu"
    base_scale: float | None = 1.5
    coordinates: str = "standard"
    domain: tuple[float, ...] | None = None
    graph: str = "complete"
    states: int = 2
    units: int = 16
    precision: str = "float32"
    norm: str = "spectral"
    scale: float = 1.0
    learns_scale: bool = False

    def __post_init__(self) -> None:
        _check_sizes("potential", self, {"width": 1, "depth": 0})
        if self.base_scale is not None and not self.base_scale > 0:
            raise InputError(
                f"potential.base_scale is {self.base_scale}: give a positive width, or none."
            )


@dataclass(frozen=True)
class StartConfig:
    """q0(x, v). `layers` is the flow's, `capacity` and `restart` the replay buffer's, and `fresh`
    how its chains begin: as noise, or, of pictures, some with half of one (occluded).

    Of a picture's start: the dimension of its `latent` variable, the `precision` in which its net
    computes, and the largest deviation of a pixel (`spread`). `momentum` is the standard deviation
    of the first momentum, where it is not the dynamics' own.
    """

    kind: str = "spline"
    layers: int | None = None
    width: int = 64
    depth: int = 2
    capacity: int = 10_000
    restart: float = 0.05
    fresh: str = "noise"
    latent: int = 512
    precision: str = "float32"
    spread: float = 1e-3
    momentum: float | None = None

    def __post_init__(self) -> None:
        _check_sizes("start", self, {"layers": 1, "width": 1, "depth": 0, "capacity": 1})
        if not 0 <= self.restart <= 1:
            raise InputError(f"start.restart is {self.restart}: give a probability, from 0 to 1.")
        for name in ("latent", "spread", "momentum"):
            value = getattr(self, name)
            if value is not None and not value > 0:
                raise InputError(f"start.{name} is {value}: it must be positive.")


@dataclass(frozen=True)
class PicturesConfig:
    """Data that are pictures: their height, width and channels, which are the data's own.

    Grey levels are spread over a cell this wide (`dequantise`, 0 to 1), and `flips` shows every
    second picture in a mirror.
    """

    shape: tuple[int, ...] | None = None
    dequantise: float = 1.0
    flips: bool = False

    def __post_init__(self) -> None:
        if not 0 <= self.dequantise <= 1:
            raise InputError(
                f"pictures.dequantise is {self.dequantise}: a grey level is 1 wide, give from 0 to "
                "1 of it."
            )


@dataclass(frozen=True)
class DynamicsConfig(Options):
    """The embedding: a recipe's name, or several joined by `+`, with the options of all."""

    kind: str = "hmc"


@dataclass(frozen=True)
class EstimatorConfig:
    """The settings of the classical methods; each reads its own.

    Chains: `k` steps of the `kernel` (langevin, or hmc with so many `leapfrogs`), with a
    `metropolis` step or without; so many `chains` persist; `energy_penalty`, if not the method's
    own. Score matching: `probes` if sliced, `sigma` if denoising. Stein: `stein_kernel` (imq, rbf)
    and its scale. Conditionals: `nodes` of the quadrature, columns in a `block`. Non-local: so many
    `cells`. Probability flow: trajectories of `leapfrogs` of size `flow_step`. Noise contrast:
    `noise` (gaussian, flow), points a datum (`ratio`); `learns_constant` is set for an estimator
    object that needs it, as noise contrast does. The ensemble has kernels of its own.
    """

    k: int = 10
    kernel: str = "langevin"
    leapfrogs: int = 3
    step_size: float = 0.1
    metropolis: bool = True
    chains: int = 1_024
    energy_penalty: float | None = None
    probes: int = 1
    sigma: float = 0.1
    stein_kernel: str = "imq"
    stein_scale: float = 1.0
    nodes: int = 48
    block: int = 2
    cells: int = 4
    flow_step: float = 0.3
    noise: str = "gaussian"
    ratio: int = 4
    learns_constant: bool = False

    def __post_init__(self) -> None:
        for name in ("step_size", "sigma", "stein_scale", "flow_step"):
            if not getattr(self, name) > 0:
                raise InputError(f"estimator.{name} is {getattr(self, name)}: it must be positive.")
        for name in ("k", "leapfrogs", "chains", "probes", "nodes", "block", "cells", "ratio"):
            if getattr(self, name) < 1:
                raise InputError(f"estimator.{name} is {getattr(self, name)}: give at least 1.")


@dataclass(frozen=True)
class TrainingConfig:
    """How both are learnt; see `fenchel.train.MaxMin` for what each part does.

    `bound`: weighted, fenchel or pairs. `gradient`: truncated, detached or bptt. With no
    `sampler_steps` of its own the sampler learns from f's draws, both at once. `first_moment` is
    Adam's decay of the first moment, `dynamics_epsilon` the dynamics' own Adam's. `anchor` is its
    weight (1 in the plane and less in more dimensions if null), `scouts` how many there are for
    each particle in f's step, where f stands on a base measure, its start is anchored, and the
    gradient stops at the draws. `noise` is the noise floor on
    standardised data (the method's own if null), `final_rate` what the learning rates fall to, as a
    fraction, at the end of the run, and `averaging` how much of the run the moving averages look
    back on.
    """

    steps: int = 3_000
    batch: int = 256
    bound: str = "weighted"
    gradient: str = "truncated"
    sampler_steps: int = 2
    anchor: float | None = None
    entropy: float = 1.0
    momentum: float = 1.0
    gradient_penalty: float = 0.0
    scouts: float = 0.25
    potential_rate: float = 2e-3
    start_rate: float = 1e-3
    dynamics_rate: float = 5e-3
    first_moment: float = 0.9
    dynamics_epsilon: float = 1e-8
    wait: float = 1.0
    final_rate: float = 0.05
    averaging: float = 0.01
    noise: float | None = None
    block: int = 100
    checkpoint_every: int = 1_000

    def anchor_in(self, dim: int) -> float:
        """The anchor's weight: as it is set, or else 2/d.

        It holds the start to a finite set of rows. In the plane they show where the modes are; in
        many dimensions a flow learns them by heart, and the importance weights degenerate.
        """
        return min(1.0, 2 / dim) if self.anchor is None else self.anchor

    def temperature(self, exact: bool) -> float:
        """c, by which the sampler's entropy is weighed: what is fitted is then exp f/c.

        With importance weights, which `exact` samplers have, it is exp f whatever they learn.
        """
        return 1.0 if self.bound == "weighted" and exact else self.entropy

    def floor(self, own: float) -> float:
        """The noise floor: as it is set, or else the method's own."""
        return own if self.noise is None else self.noise


@dataclass(frozen=True)
class Config:
    """Everything that a run depends on besides its data."""

    method: str = "ade"
    seed: int = 0
    potential: PotentialConfig = field(default_factory=PotentialConfig)
    start: StartConfig = field(default_factory=StartConfig)
    dynamics: DynamicsConfig = field(default_factory=DynamicsConfig)
    estimator: EstimatorConfig = field(default_factory=EstimatorConfig)
    training: TrainingConfig = field(default_factory=TrainingConfig)
    pictures: PicturesConfig = field(default_factory=PicturesConfig)

    def to_dict(self) -> dict[str, Any]:
        return json.loads(json.dumps(asdict(self)))

    @classmethod
    def from_dict(cls, values: dict[str, Any]) -> "Config":
        """Strictly: an unknown name or a value of the wrong type is an error that says so."""
        return _parse(cls, values, "")

    @classmethod
    def from_file(cls, path: str | Path) -> "Config":
        """From a TOML or JSON file, or a run's config.json; what is left out keeps its default."""
        return cls.from_dict(_read(Path(path)))

    def with_values(self, **values: Any) -> "Config":
        """A copy with some values changed, named as `training__steps=100`; None changes nothing."""
        config = self
        for name, value in values.items():
            if value is not None:
                section, _, key = name.rpartition("__")
                part = replace(getattr(config, section), **{key: value}) if section else value
                config = replace(config, **{section or key: part})
        return config


def _check_sizes(section: str, part: Any, least: dict[str, int]) -> None:
    for name, lowest in least.items():
        value = getattr(part, name)
        if value is not None and value < lowest:
            raise InputError(f"{section}.{name} is {value}: give at least {lowest}.")


def completed(record: Any) -> Any:
    """A record of settings by an earlier version, with what it did before there were some of them.

    What is no record stays as it is.
    """
    if not isinstance(record, dict):
        return record
    sections = {
        name: before | record.get(name, {})
        for name, before in BEFORE.items()
        if isinstance(record.get(name, {}), dict)
    }
    return record | sections


def _read(path: Path) -> dict[str, Any]:
    readers = {".toml": tomllib.loads, ".json": json.loads}
    if path.suffix not in readers:
        raise InputError(f"{path} is no configuration file: its name must end in .toml or .json.")
    try:
        values: Any = readers[path.suffix](path.read_text(encoding="utf-8"))
    except OSError as error:
        raise InputError(f"{path} cannot be read: {error.strerror}.") from None
    except ValueError as error:
        raise InputError(f"{path} is not valid {path.suffix[1:].upper()}: {error}.") from None
    if isinstance(values, dict) and values.get("format") == RECORD:
        values = completed(values.get("config"))
    if not isinstance(values, dict):
        raise InputError(f"{path} must hold named values, such as `seed` or a [training] section.")
    return values


def _parse(cls: type[T], values: Any, where: str) -> T:
    if not isinstance(values, dict):
        raise InputError(f"{where.rstrip('.')} must be a section with named values.")
    hints = get_type_hints(cls)
    known = [f.name for f in fields(cls)]  # type: ignore[arg-type]
    for name in values:
        if name not in known:
            raise InputError(
                f"The configuration has no {where}{name}{nearest(name, known)}: "
                f"choose from {', '.join(known)}."
            )
    return cls(**{name: _value(hints[name], v, where + name) for name, v in values.items()})


def _value(hint: Any, value: Any, name: str) -> Any:
    if is_dataclass(hint):
        return _parse(hint, value, f"{name}.")  # type: ignore[arg-type]
    options = get_args(hint) if get_origin(hint) in (Union, types.UnionType) else (hint,)
    for option in options:
        fits, parsed = _fit(option, value)
        if fits:
            return parsed
    wanted = " or ".join(_in_words(option) for option in options)
    given = json.dumps(value, default=str)
    raise InputError(f"{name} is {given} in the configuration, and must be {wanted}.")


def _fit(option: Any, value: Any) -> tuple[bool, Any]:
    """Whether the value is of that type, and the value as that type."""
    if option is types.NoneType:
        return value is None, None
    if get_origin(option) is tuple:
        kind = get_args(option)[0]
        numbers = isinstance(value, list | tuple) and all(_fit(kind, v)[0] for v in value)
        return numbers, tuple(map(kind, value)) if numbers else None
    if option is float:
        return isinstance(value, int | float) and not isinstance(value, bool), value
    if option is int:
        return isinstance(value, int) and not isinstance(value, bool), value
    return isinstance(value, option), value


def _in_words(option: Any) -> str:
    words = {int: "a whole number", float: "a number", str: "a word", bool: "true or false"}
    return "null" if option is types.NoneType else words.get(option, "a list of numbers")
