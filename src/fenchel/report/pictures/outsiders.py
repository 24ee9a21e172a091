"""Telling other pictures from a model's own by f alone."""

from typing import Any

import numpy as np
from scipy.stats import rankdata

from fenchel.data import Pictures, load_part, parts_of, require_shape
from fenchel.errors import InputError
from fenchel.picture_parts import picture_shape
from fenchel.report.pictures.energies import potential_of
from fenchel.result import Fit


def load_scores(fit: Fit, own: str, others: list[str], part: str | None) -> dict[str, np.ndarray]:
    """f at the pictures of each source, by its name; the first is the model's own kind.

    Of the others that part is taken too, and all of those that are not divided into parts.
    """
    pictures = {own: load_part(own, part)}
    for other in others:
        if other in pictures:
            raise InputError(f"{other} is given twice: give each source once.")
        pictures[other] = load_part(other, part if parts_of(other) else None)
    # All are looked at before any is scored, which takes long.
    matching = {source: _matching(fit, found, source) for source, found in pictures.items()}
    return {source: potential_of(fit, found.x) for source, found in matching.items()}


def table_of(scores: dict[str, np.ndarray], own: str) -> dict[str, dict[str, Any]]:
    """A row for each source: how many, their mean f, and how well f tells them from its own."""
    return {
        name: {
            "pictures": len(values),
            "mean": float(values.mean()),
            "auroc": None if name == own else auroc(scores[own], values),
        }
        for name, values in scores.items()
    }


def auroc(own: np.ndarray, other: np.ndarray) -> float:
    """How often a value of the first is larger than one of the second; a tie counts half."""
    ranks = rankdata(np.concatenate([own, other]))[: len(own)]
    wins = ranks.sum() - len(own) * (len(own) + 1) / 2
    return float(wins / (len(own) * len(other)))


def _matching(fit: Fit, pictures: Pictures, source: str) -> Pictures:
    """Pictures of the model's shape; a grey one can be shown to a model of colours."""
    shape = picture_shape(fit.config)
    if pictures.shape == (*shape[:2], 1):
        colours = np.repeat(pictures.x, shape[2], axis=-1)
        pictures = Pictures(colours, pictures.name, pictures.labels)
    require_shape(pictures, shape, source)
    return pictures
