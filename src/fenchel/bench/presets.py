"""The settings of each method.

Those of the paper are the released code's, whose model and sampler for the toys `released` builds;
its data were made on the fly, and here batches are drawn from a large sample. It has no code for
score matching and contrastive divergence: these share net, batch and length with the others, have
Adam as it is, and their samples come from tuned chains. Score matching needs a smooth net, and so
has SiLU.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

from fenchel.bench.released import released
from fenchel.build import Parts, build
from fenchel.config import Config
from fenchel.shapes import Points

NEVER = 1e9  # nats, by which a sampler may lag before f waits for it


def by_name(config: Config, points: Points) -> Parts:
    """The parts that the configuration names."""
    return build(config, points.shape[1])


class Preset(NamedTuple):
    """How a method is run.

    `standardised`: whether it sees data in standard units, or in their own. `parts` makes what is
    learnt and what learns it.
    """

    config: Config
    column: str  # the column of the paper's Table 2 that it belongs beside
    standardised: bool = True
    parts: Callable[[Config, Points], Parts] = by_name


_PAPER: dict[str, Any] = {
    "potential": {"width": 128, "depth": 3, "activation": "relu", "base_scale": None},
    "start": {"kind": "planar", "layers": 10},
    "dynamics": {"kind": "hmc", "steps": 5, "leapfrogs": 1, "step_size": 0.01, "clip_norm": 1.0},
    "training": {
        "steps": 10_000,  # 100 epochs of 100
        "batch": 100,
        "bound": "fenchel",
        "gradient": "truncated",
        "sampler_steps": 5,
        "anchor": 0.0,
        "potential_rate": 1e-3,
        "start_rate": 1e-3,
        "dynamics_rate": 1e-3,
        "wait": NEVER,
        "final_rate": 1.0,
        "averaging": 0.01,  # of the run: a decay of 0.99 an iteration
        "noise": 0.0,
    },
}


def _as_paper(**changes: Any) -> Config:
    return Config.from_dict(_PAPER | changes)


_GAUSSIAN: dict[str, Any] = {"potential": {"kind": "gaussian"}}
_SMOOTH = {"potential": _PAPER["potential"] | {"activation": "silu"}}

PRESETS: dict[str, Preset] = {
    "sm": Preset(_as_paper(method="score-matching", **_SMOOTH), "SM", standardised=False),
    "nf": Preset(
        _as_paper(method="nf", dynamics={"kind": "none"}), "NF", standardised=False, parts=released
    ),
    "cd15": Preset(_as_paper(method="cd", estimator={"k": 15}), "CD-15", standardised=False),
    "ade-paper": Preset(
        _as_paper(training=_PAPER["training"] | {"momentum": 0.0}),
        "ADE",
        standardised=False,
        parts=released,
    ),
    "ade": Preset(Config().with_values(training__steps=20_000), "ADE"),
}

# The recovery of a Gaussian, in any dimension: a net of Gaussian output as the start, Metropolis
# steps, and a tight clip. (The paper's text has 3 steps, its code 5.)
RECOVERY: dict[str, Preset] = {
    "cd15": Preset(
        _as_paper(method="cd", estimator={"k": 15}, **_GAUSSIAN), "CD-15", standardised=False
    ),
    "ade-paper": Preset(
        _as_paper(
            start={"kind": "deep-latent", "width": 128, "depth": 2},
            dynamics=_PAPER["dynamics"] | {"clip_norm": 0.1, "metropolis": True},
            **_GAUSSIAN,
        ),
        "ADE",
        standardised=False,
    ),
    "ade": Preset(Config.from_dict(_GAUSSIAN).with_values(training__steps=10_000), "ADE"),
}
