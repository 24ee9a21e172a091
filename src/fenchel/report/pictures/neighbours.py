"""The training pictures that are nearest to samples: has the model learnt them by heart?

By themselves distances say nothing: smooth pictures are near to all others. They are held against
the distances of pictures that the model never saw.
"""

from pathlib import Path

import numpy as np

from fenchel.evaluate import few_nearest, nearest
from fenchel.report.findings import Findings
from fenchel.report.lines import Line
from fenchel.report.pictures.grid import grid, save_picture

SHOWN = 12  # samples in the figure, each with
EACH = 4  # neighbours of either kind
MOST = 2_000  # samples and held-out pictures whose distances are compared
NEAR = 0.01  # the share of held-out pictures that are called near to a training picture
SUSPECT, LEARNT = 0.05, 0.5  # shares of samples that are as near


def save_neighbours(
    drawn: np.ndarray, train: np.ndarray, spaces: list[tuple[np.ndarray, np.ndarray]], path: Path
) -> None:
    """A row for each sample: itself, then its nearest training pictures in each of the spaces.

    A space is the samples and the training pictures as points in it.
    """
    columns = [drawn[:SHOWN, None]]
    for points, others in spaces:
        few = few_nearest(points[:SHOWN], others, EACH)
        columns += [_gap(drawn), train[few]]
    rows = np.concatenate(columns, axis=1)
    save_picture(grid(rows.reshape(-1, *rows.shape[2:]), rows.shape[1]), path)


def _gap(drawn: np.ndarray) -> np.ndarray:
    """A column of paper between what is not to be mixed up."""
    return np.full_like(drawn[:SHOWN, None], 255)


def add_memorisation(
    found: Findings,
    space: str,
    drawn: np.ndarray,
    train: np.ndarray,
    held_out: np.ndarray | None,
) -> None:
    """Whether samples are nearer to training pictures than held-out pictures are, in that space."""
    found.say(f"nearest neighbours by {space}")
    own = nearest(drawn[:MOST], train).distances
    name = f"nearest training pictures, by {space}"
    if held_out is None:
        value = f"at a median distance of {np.median(own):.4g}"
        meaning = "Without held-out pictures to compare with, it says nothing of memory."
        found.add(Line(name, value, "", meaning), **{f"nearest_{space}": np.median(own)})
        return
    real = nearest(held_out[:MOST], train).distances
    near = float(np.quantile(real, NEAR))
    share = float(np.mean(own < near))
    value = f"{share:.1%} of samples are suspiciously near to one"
    meaning = (
        f"Nearer than all but {NEAR:.0%} of {len(real):,} held-out pictures; the median distance "
        f"of samples is {np.median(own):.4g}, of those pictures {np.median(real):.4g}. Some are in "
        "neighbours.png."
    )
    verdict = "good" if share <= SUSPECT else "caution" if share <= LEARNT else "bad"
    if verdict != "good":
        meaning += " They are learnt by heart, or too smooth."
    found.add(
        Line(name, value, verdict, meaning),
        **{
            f"near_{space}": share,
            f"nearest_{space}": np.median(own),
            f"nearest_{space}_held_out": np.median(real),
        },
    )
