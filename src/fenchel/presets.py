"""Settings by name, for data that the defaults are not made for."""

from typing import Any

from fenchel.choices import choose
from fenchel.config import Config

# The paper's settings for pictures: appendix D.2 and the released code.
_PICTURES: dict[str, Any] = {
    "potential": {
        "kind": "conv",
        "width": 64,
        "activation": "leaky-relu",
        "precision": "bfloat16",
        "base_scale": None,
    },
    "start": {
        "kind": "deep-picture",
        "width": 64,
        "latent": 512,
        "precision": "bfloat16",
        "momentum": 1e-4,
    },
    "dynamics": {
        "kind": "damped",
        "steps": 30,
        "step_size": 10.0,
        "damping": 0.5,
        "clip_value": 0.01,
        "box": [-1.0, 1.0],
        "per_step": False,
    },
    "training": {
        "steps": 200_000,
        "batch": 64,
        "bound": "fenchel",
        "gradient": "detached",
        "sampler_steps": 0,
        "anchor": 0.0,
        "entropy": 1e-5,
        "momentum": 1e-5,
        "potential_rate": 1e-4,
        "start_rate": 1e-4,
        "dynamics_rate": 1e-4,
        "first_moment": 0.0,
        "dynamics_epsilon": 1e-5,
        "final_rate": 1.0,
        "averaging": 0.005,
        "noise": 0.0,
        "checkpoint_every": 2_000,
    },
}

# The nonparametric variant, for completion: long chains that go on from a buffer.
_COMPLETION: dict[str, Any] = {
    "start": {"kind": "replay", "capacity": 10_000, "restart": 0.05, "momentum": 1e-4},
    "dynamics": {
        "steps": 60,
        "step_size": 10.0,  # the paper's η of √10, of which its leapfrog takes the square
        "damping": 0.9,
        "learns_damping": True,
        "clip_value": 0.1,
    },
    # The nonparametric objective has no entropy: it would do nothing but drive the damping.
    "training": {"steps": 60_000, "noise": 0.03, "entropy": 0.0},
}

# What a spectral norm and the plain objective leave flat, pairs and a penalty on the slope do not:
# f is steep enough for the dynamics to move pictures, and still does not run away. Step sizes learn
# slowly, or else they grow as f flattens, and f flattens as they grow.
_PAIRS: dict[str, Any] = {
    "potential": {"norm": "none"},
    "dynamics": {"step_size": 0.02, "clip_value": 1.0},
    "training": {
        "steps": 100_000,
        "bound": "pairs",
        "gradient_penalty": 0.02,
        "potential_rate": 2e-4,
        "start_rate": 2e-4,
        "dynamics_rate": 1e-5,
        "final_rate": 0.1,
        "averaging": 0.02,
    },
}

_RESIDUAL: dict[str, Any] = {
    "potential": {"kind": "residual-conv", "width": 128},
    "start": {"kind": "residual-picture", "width": 256, "latent": 128},
    "dynamics": {"steps": 10, "step_size": 0.03},
    "training": {"steps": 50_000, "gradient_penalty": 0.01, "averaging": 0.05},
}

_DIGITS: dict[str, Any] = {
    "dynamics": {"step_size": 0.05},
    "training": {"steps": 20_000, "gradient_penalty": 0.5},
}

# Every other chain begins with half a digit, and is not handed out: twice as many for as many. The
# others begin with noise. With steps of 0.05 most of them stayed there, since f learns hardly more
# from two kinds that it tells apart for sure; narrow nets with longer steps led all of them out,
# and at four times the rate completed digits better.
_CHAINS: dict[str, Any] = {
    "start": {"fresh": "occluded", "capacity": 20_000},
    "dynamics": {"step_size": 0.3},
    "training": {"potential_rate": 8e-4},
}

_COLOURED: dict[str, Any] = {"pictures": {"flips": True}}

# Ten steps reach as far along a score as thirty of a third of their length, for a third of the
# scores. At a quarter of these rates of learning, and at half, f and start come along more slowly.
_CIFAR: dict[str, Any] = {
    "dynamics": {"steps": 10, "step_size": 0.3},
    "training": {"gradient_penalty": 0.05, "potential_rate": 8e-4, "start_rate": 8e-4},
}


def _merged(*layers: dict[str, Any]) -> dict[str, Any]:
    """Sections of the later layers over those of the earlier ones."""
    sections: dict[str, Any] = {}
    for layer in layers:
        for name, values in layer.items():
            sections[name] = sections.get(name, {}) | values
    return sections


_SETTINGS: dict[str, dict[str, Any]] = {
    "mnist": _merged(_PICTURES, _PAIRS, _DIGITS),
    "mnist-paper": _merged(_PICTURES),
    "mnist-completion": _merged(_PICTURES, _COMPLETION, _PAIRS, _DIGITS, _CHAINS),
    "mnist-completion-paper": _merged(_PICTURES, _COMPLETION),
    "cifar10": _merged(_PICTURES, _PAIRS, _CIFAR, _COLOURED),
    "cifar10-paper": _merged(_PICTURES),
    "cifar10-residual": _merged(_PICTURES, _PAIRS, _RESIDUAL, _COLOURED),
}


def preset(name: str) -> Config:
    """The settings of that name."""
    return Config.from_dict(choose(_SETTINGS, name, "preset"))


PRESETS = tuple(_SETTINGS)
