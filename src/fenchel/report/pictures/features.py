"""Samples against real pictures as the Inception networks see them: FID, IS-slim, coverage."""

from collections.abc import Callable, Sequence
from functools import partial
from typing import NamedTuple

import numpy as np

from fenchel.evaluate import (
    Coverage,
    FeatureMoments,
    Inception,
    SlimInception,
    class_probabilities,
    coverage,
    feature_moments,
    features,
    frechet_distance,
    inception_score,
)
from fenchel.report.findings import Findings, Say
from fenchel.report.lines import Line
from fenchel.report.pictures.opened import PictureRun

BATCH = 256  # pictures at a time
ROWS = 2_048  # of features at a time, in the sums of squares
MOST_COVERED = 5_000  # features of either set
SPLITS = 10
FID_GOOD, FID_BAD = 10.0, 50.0  # more than that of held-out pictures; in 2019 few had the first
SCORE_GOOD, SCORE_BAD = 0.9, 0.6  # of real pictures' score
RATE_GOOD, RATE_BAD = 0.8, 0.5  # of held-out pictures' rates
PUBLISHED = (10_000, 50_000)


class Features(NamedTuple):
    """Rows of features: of the training pictures, of samples, and of held-out pictures if any."""

    train: np.ndarray
    drawn: np.ndarray
    held_out: np.ndarray | None


def features_of(network: Inception, run: PictureRun, drawn: np.ndarray, say: Say) -> Features:
    """All of them, in batches of one size: the network takes long to compile."""
    held_out = None if run.held_out is None else run.held_out.x
    sets = {"training pictures": run.train.x, "samples": drawn, "held-out pictures": held_out}
    batch = min(BATCH, *(len(x) for x in sets.values() if x is not None))
    found = [
        None if x is None else features(network, x, batch=batch, progress=_spoken(say, name))
        for name, x in sets.items()
    ]
    return Features(*found)  # type: ignore[arg-type]


def look_of(network: Inception, say: Say) -> Callable[[np.ndarray], np.ndarray]:
    """What makes features of the mirror images of a few of those pictures."""
    return partial(features, network, batch=BATCH, progress=_spoken(say, "mirror images"))


def add_distances(found: Findings, seen: Features, counts: Sequence[int]) -> None:
    """FID at each number of samples, beside that of held-out pictures."""
    found.say("moments of features")
    reference = _moments(seen.train)
    for count in counts:
        found.say(f"FID at {count:,}")
        own = frechet_distance(_moments(seen.drawn[:count]), reference)
        name, numbers = f"fid_{count}", {f"fid_{count}": own.value}
        numbers[f"{name}_baseline"] = own.baseline
        value, verdict = f"{own.value:.2f}", ""
        meaning = f"Of {own.n:,} samples against {own.m:,} training pictures; "
        if seen.held_out is not None:
            floor = frechet_distance(_moments(seen.held_out[:count]), reference)
            value += f", held-out pictures {floor.value:.2f}"
            meaning += f"{floor.n:,} held-out pictures are a perfect sampler's; "
            numbers |= {f"{name}_floor": floor.value, f"{name}_floor_pictures": floor.n}
            # FID falls with the number of pictures: the two are compared by as many of each.
            fair = own
            if floor.n != own.n:
                fair = frechet_distance(_moments(seen.drawn[: floor.n]), reference)
                value += f" (as many samples {fair.value:.2f})"
                numbers[f"{name}_as_many"] = fair.value
            excess = fair.value - floor.value
            verdict = "good" if excess < FID_GOOD else "caution" if excess < FID_BAD else "bad"
        meaning += f"chance alone makes about {own.baseline:.2f} of so many. "
        meaning += _comparable(own.n, seen.train.shape[1])
        found.add(Line(f"FID at {count:,} samples", value, verdict, meaning), **numbers)


def _comparable(count: int, columns: int) -> str:
    if count <= columns:
        return f"With no more samples than features ({columns:,}) it is no FID to be published."
    if count not in PUBLISHED:
        return "Published ones are of 10,000 or 50,000 samples."
    return "Comparable with published ones of as many samples."


def _moments(rows: np.ndarray) -> FeatureMoments:
    return feature_moments(rows[i : i + ROWS] for i in range(0, len(rows), ROWS))


def add_score(found: Findings, network: SlimInception, run: PictureRun, drawn: np.ndarray) -> None:
    """IS-slim of samples and of as many training pictures."""
    count = min(len(drawn), len(run.train))
    sets = {"samples": drawn[:count], "training pictures": run.train.x[:count]}
    batch = min(BATCH, count)
    scores = {}
    for name, pictures in sets.items():
        say = _spoken(found.say, f"{name}, for IS-slim")
        classes = class_probabilities(network, pictures, batch=batch, progress=say)
        scores[name] = inception_score(classes, splits=SPLITS)
    (own, own_error), (real, real_error) = scores.values()
    ratio = own / real
    value = f"{own:.3f} ± {own_error:.3f}, training pictures {real:.3f}: ratio {ratio:.3f}"
    meaning = (
        f"Of {count:,} each, by TF-slim's Inception-v3: only the ratio compares with published "
        "Inception scores. The paper's 7.55 is 0.672 of CIFAR-10's, SN-GAN's is 0.660."
    )
    verdict = "good" if ratio > SCORE_GOOD else "caution" if ratio > SCORE_BAD else "bad"
    if run.shape[-1] == 1:
        verdict, meaning = "", f"{meaning} Grey pictures are none of its classes: it says little."
    found.add(
        Line("IS-slim", value, verdict, meaning),
        is_slim=own,
        is_slim_deviation=own_error,
        is_slim_training=real,
        is_slim_training_deviation=real_error,
        is_slim_ratio=ratio,
        is_slim_pictures=count,
    )


def add_coverage(found: Findings, seen: Features) -> None:
    """Precision, recall, density and coverage, beside those of held-out pictures."""
    found.say("coverage of features")
    others = [x for x in seen if x is not None]
    count = min(MOST_COVERED, *map(len, others))
    own = coverage(seen.drawn[:count], seen.train[:count])
    numbers = _rates(own)
    value, verdict = _in_words(own), ""
    meaning = (
        f"Of {count:,} samples and training pictures, by balls to the {own.k}th neighbour's "
        "features: are samples where pictures are, and pictures where samples are?"
    )
    if seen.held_out is not None:
        real = coverage(seen.held_out[:count], seen.train[:count])
        meaning += f" Held-out pictures: {_in_words(real)}."
        shares = {k: v / max(_rates(real)[k], 1e-9) for k, v in numbers.items() if k != "density"}
        lowest = min(shares.values())
        verdict = "good" if lowest > RATE_GOOD else "caution" if lowest > RATE_BAD else "bad"
        numbers |= {f"{name}_held_out": rate for name, rate in _rates(real).items()}
    found.add(Line("nearest features", value, verdict, meaning), **numbers)


def _rates(cover: Coverage) -> dict[str, float]:
    return {name: getattr(cover, name) for name in ("precision", "recall", "density", "coverage")}


def _in_words(cover: Coverage) -> str:
    return (
        f"precision {cover.precision:.1%}, recall {cover.recall:.1%}, density {cover.density:.2f}, "
        f"coverage {cover.coverage:.1%}"
    )


def _spoken(say: Say, name: str) -> Callable[[int, int], None]:
    return lambda done, total: say(f"features of {name}, {done:,} of {total:,}")
