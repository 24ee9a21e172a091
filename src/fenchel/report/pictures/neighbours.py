"""The training pictures that are nearest to samples: has the model learnt them by heart?

By themselves distances say nothing: smooth pictures are near to all others. They are held against
the distances of pictures that the model never saw. Where training showed every second picture in a
mirror, the mirror images are training pictures too.
"""

from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import numpy as np

from fenchel.evaluate import few_nearest, nearest
from fenchel.report.findings import Findings
from fenchel.report.lines import Line
from fenchel.report.pictures.features import Features
from fenchel.report.pictures.grid import grid, save_picture
from fenchel.report.pictures.opened import PictureRun

SHOWN = 12  # samples in the figure, each with
EACH = 4  # neighbours of either kind
SPACES = ("pixels", "features")  # in which they are near
MOST = 2_000  # samples and held-out pictures whose distances are compared
NEAR = 0.01  # the share of held-out pictures that are called near to a training picture
SUSPECT, LEARNT = 0.05, 0.5  # shares of samples that are as near

Look = Callable[[np.ndarray], np.ndarray]


class View(NamedTuple):
    """Samples and held-out pictures as points of a space, all turned in the same way."""

    turned: Look
    drawn: np.ndarray
    held_out: np.ndarray | None


class Space(NamedTuple):
    """Where it is seen how near pictures are, by pixels or by features.

    Samples and held-out pictures are looked at as they are and, where training showed mirror
    images, in a mirror: two pictures are as far apart as their mirror images (by pixels exactly),
    and to turn the training pictures instead would be to keep many more.
    """

    name: str
    train: np.ndarray
    views: list[View]


def space_of(name: str, run: PictureRun, drawn: np.ndarray, seen: Features, look: Look) -> Space:
    """`seen` are the points of all pictures, and `look` makes those of a few more."""
    real = None if seen.held_out is None else seen.held_out[:MOST]
    views = [View(_as_they_are, seen.drawn[:MOST], real)]
    if run.fit.config.pictures.flips:
        held_out = None if run.held_out is None else look(_mirrored(run.held_out.x[:MOST]))
        views.append(View(_mirrored, look(_mirrored(drawn[:MOST])), held_out))
    return Space(name, seen.train, views)


def save_neighbours(drawn: np.ndarray, train: np.ndarray, spaces: list[Space], path: Path) -> None:
    """A row for each sample: itself, then its nearest training pictures in each of the spaces."""
    columns = [drawn[:SHOWN, None]]
    for space in spaces:
        columns += [_gap(drawn), _nearest_pictures(space, train)]
    rows = np.concatenate(columns, axis=1)
    save_picture(grid(rows.reshape(-1, *rows.shape[2:]), rows.shape[1]), path)


def _nearest_pictures(space: Space, train: np.ndarray) -> np.ndarray:
    """(n, EACH, ...), turned as they are nearest."""
    found = [few_nearest(view.drawn[:SHOWN], space.train, EACH) for view in space.views]
    turned = [view.turned(train[few.indices]) for view, few in zip(space.views, found, strict=True)]
    distances = np.concatenate([few.distances for few in found], axis=1)
    order = np.argsort(distances, axis=1)[:, :EACH]
    return np.take_along_axis(np.concatenate(turned, axis=1), order[..., None, None, None], axis=1)


def _as_they_are(pictures: np.ndarray) -> np.ndarray:
    return pictures


def _mirrored(pictures: np.ndarray) -> np.ndarray:
    return pictures[..., ::-1, :]


def _gap(drawn: np.ndarray) -> np.ndarray:
    """A column of paper between what is not to be mixed up."""
    return np.full_like(drawn[:SHOWN, None], 255)


def _distances(views: list[np.ndarray], train: np.ndarray) -> np.ndarray:
    """Of each picture from its nearest training picture, in the nearest of its views."""
    found = nearest(np.concatenate(views), train).distances
    return found.reshape(len(views), -1).min(axis=0)


def add_memorisation(found: Findings, space: Space) -> None:
    """Whether samples are nearer to training pictures than held-out pictures are, in that space."""
    found.say(f"nearest neighbours by {space.name}")
    own = _distances([view.drawn for view in space.views], space.train)
    held_out = [view.held_out for view in space.views if view.held_out is not None]
    name, median = f"nearest training pictures, by {space.name}", np.median(own)
    if not held_out:
        value = f"at a median distance of {median:.4g}"
        meaning = "Without held-out pictures to compare with, it says nothing of memory."
        found.add(Line(name, value, "", meaning), **{f"nearest_{space.name}": median})
        return
    real = _distances(held_out, space.train)
    near = float(np.quantile(real, NEAR))
    share = float(np.mean(own < near))
    or_mirrored = " or its mirror image" if len(space.views) > 1 else ""
    value = f"{share:.1%} of samples are suspiciously near to one{or_mirrored}"
    meaning = (
        f"Nearer than all but {NEAR:.0%} of {len(real):,} held-out pictures; the median distance "
        f"of samples is {median:.4g}, of those pictures {np.median(real):.4g}. Some samples are in "
        f"neighbours.png, a row each, with the {EACH} that are nearest by {space.name}."
    )
    verdict = "good" if share <= SUSPECT else "caution" if share <= LEARNT else "bad"
    if verdict != "good":
        meaning += " They are learnt by heart, or too smooth."
    found.add(
        Line(name, value, verdict, meaning),
        **{
            f"near_{space.name}": share,
            f"nearest_{space.name}": median,
            f"nearest_{space.name}_held_out": np.median(real),
        },
    )
