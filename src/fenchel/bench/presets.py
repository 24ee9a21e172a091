"""The settings of each method, as plain data.

Those of the paper are the released code's. What could not be matched: the weights of its nets
began smaller, and its f and sampler were not averaged for drawing; it also clipped the momentum
before the drift, kept the momentum's scale at 1 and left its cost out of the objective, where
momenta here are not clipped, have a learnt scale and pay for it; its data were made on the fly,
and here batches are drawn from a large sample. It has no code for score matching and contrastive
divergence: these share net, batch, optimiser and length with the others, and their samples come
from tuned chains. Score matching needs a smooth net, and so has SiLU.
"""

from typing import Any, NamedTuple

from fenchel.config import Config

NEVER = 1e9  # nats, by which a sampler may lag before f waits for it


class Preset(NamedTuple):
    """How a method is run.

    `standardised`: whether it sees data in standard units, or in their own. `boxed`: whether its
    samples are clipped to the data's range.
    """

    config: Config
    column: str  # the column of the paper's Table 2 that it belongs beside
    standardised: bool = True
    boxed: bool = False


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
    "nf": Preset(_as_paper(method="nf", dynamics={"kind": "none"}), "NF", standardised=False),
    "cd15": Preset(_as_paper(method="cd", estimator={"k": 15}), "CD-15", standardised=False),
    "ade-paper": Preset(_as_paper(), "ADE", standardised=False, boxed=True),
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
