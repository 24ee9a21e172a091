"""What f makes of training, held-out and generated pictures, and of noise.

It is shown them as in training: real pictures spread over their grey levels' cells, samples as they
were drawn.
"""

from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from fenchel.data import Pictures
from fenchel.errors import InputError
from fenchel.evaluate import energy_overlap
from fenchel.report.findings import Findings, Say
from fenchel.report.lines import Line
from fenchel.report.pictures.box_likelihood import box_noise
from fenchel.report.pictures.histograms import save_energies
from fenchel.report.pictures.opened import PictureRun
from fenchel.result import Fit
from fenchel.seeds import apart

PART = 2_048  # pictures at a time: they are large as floating-point numbers
MOST = 2 * PART  # real pictures of either part
GOOD, BAD = 0.8, 0.5  # of the overlap
SAME = 0.9  # the overlap of training and held-out pictures, unless the first are known by heart


class Energies(NamedTuple):
    """f of each, up to one constant."""

    train: np.ndarray
    held_out: np.ndarray | None
    drawn: np.ndarray
    noise: np.ndarray  # uniform on [-1, 1]

    @property
    def real(self) -> np.ndarray:
        """What samples are held against: held-out pictures, where there are any."""
        return self.train if self.held_out is None else self.held_out

    @property
    def whose(self) -> str:
        return "training" if self.held_out is None else "held-out"


class Drawn(NamedTuple):
    """Samples as bytes, and f of them before they were rounded."""

    pictures: np.ndarray
    f: np.ndarray


def drawn_pictures(fit: Fit, count: int, seed: int, say: Say) -> Drawn:
    """So many samples, a part at a time."""
    parts = []
    for done in range(0, count, PART):
        say(f"samples, {done:,} of {count:,}")
        x = fit.sample(min(PART, count - done), apart(seed, done))
        if not np.isfinite(x).all():
            raise InputError(
                "The run draws samples that are not finite, and cannot be judged: fit it anew with "
                "smaller learning rates."
            )
        parts.append(Drawn(fit.as_pictures(x), fit.potential(x)))
    return Drawn(*(np.concatenate(pieces) for pieces in zip(*parts, strict=True)))


def energies_of(run: PictureRun, drawn: Drawn, seed: int) -> Energies:
    fit, rng = run.fit, np.random.default_rng(seed)
    train = potential_of(fit, _spread(fit, run.train, rng))
    held_out = None if run.held_out is None else potential_of(fit, _spread(fit, run.held_out, rng))
    return Energies(train, held_out, drawn.f, potential_of(fit, box_noise(fit.standardiser, seed)))


def add_overlaps(found: Findings, f: Energies) -> None:
    """Of samples and real pictures, and of training and held-out ones."""
    both = energy_overlap(f.drawn, f.real)
    verdict = "good" if both.overlap > GOOD else "caution" if both.overlap > BAD else "bad"
    value = f"{both.overlap:.1%}, means {both.difference:+.4g} ± {both.standard_error:.2g} apart"
    meaning = (
        f"How far f's values at {both.n:,} samples and at {both.m:,} {f.whose} pictures have one "
        "distribution: see energies.png."
    )
    found.add(
        Line("energy overlap", value, verdict, meaning),
        energy_overlap=both.overlap,
        energy_difference=both.difference,
        energy_ks_p=both.ks_p_value,
    )
    if f.held_out is not None:
        _add_known_by_heart(found, f.train, f.held_out)


def _add_known_by_heart(found: Findings, train: np.ndarray, held_out: np.ndarray) -> None:
    both = energy_overlap(train, held_out)
    value = f"{both.overlap:.1%}, means {both.difference:+.4g} ± {both.standard_error:.2g} apart"
    meaning = "Of training and held-out pictures: an f that tells them apart has them by heart."
    verdict = "good" if both.overlap > SAME else "caution"
    found.add(
        Line("energy overlap, real pictures", value, verdict, meaning),
        energy_overlap_held_out=both.overlap,
        energy_difference_held_out=both.difference,
    )


def save_histograms(f: Energies, name: str, path: Path) -> None:
    """The paper's figure 3 b and d."""
    held_out = {} if f.held_out is None else {"held-out pictures": f.held_out}
    series: dict[str, ArrayLike] = {"training pictures": f.train, **held_out, "samples": f.drawn}
    save_energies(series, path, title=f"{name}: f of pictures, real and drawn")


def potential_of(fit: Fit, x: np.ndarray) -> np.ndarray:
    """f at each of many pictures, as rows or as bytes, a part at a time."""
    return np.concatenate([fit.potential(x[i : i + PART]) for i in range(0, len(x), PART)])


def _spread(fit: Fit, pictures: Pictures, rng: np.random.Generator) -> np.ndarray:
    """Levels as in training, each anywhere in its cell."""
    rows = pictures.rows()[:MOST]
    return rows + fit.config.pictures.dequantise * rng.random(rows.shape)
