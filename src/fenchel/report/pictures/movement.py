"""How far the dynamics move what their start drew: where they do nothing, the start is all."""

from dataclasses import replace
from typing import NamedTuple

import numpy as np

from fenchel.dynamics import Chain
from fenchel.result import Fit
from fenchel.samplers import Embedding
from fenchel.starts import Replay


class Movement(NamedTuple):
    """Between the start's draw and the end, on average over draws."""

    levels: float  # the absolute change of a pixel, in grey levels
    gain: float  # the change of f
    draws: int


def movement(fit: Fit, draws: int, seed: int) -> Movement | None:
    """None for a sampler whose draws have no beginning of their own."""
    still = start_alone(fit)
    if still is None:
        return None
    before, after = (each.sample(draws, seed, corrected=False) for each in (still, fit))
    gain = fit.potential(after).mean() - fit.potential(before).mean()
    return Movement(float(np.abs(after - before).mean()), float(gain), draws)


def start_alone(fit: Fit) -> Fit | None:
    """The same without its dynamics: a seed draws what it would have begun with.

    None for samplers without a start, and for chains, which begin where they had come to before.
    """
    sampler = fit.sampler
    if not isinstance(sampler, Embedding) or isinstance(sampler.start, Replay):
        return None
    return replace(fit, sampler=Embedding(sampler.start, Chain()))
