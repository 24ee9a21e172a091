"""All that can be said of how good a fit to pictures is: lines for people, numbers for machines."""

from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np

from fenchel.errors import InputError
from fenchel.evaluate import contest_health
from fenchel.report.findings import Findings, Say, sentence, silent
from fenchel.report.lines import Evaluation, Line
from fenchel.report.pictures.box_likelihood import box_likelihood, flat_likelihood
from fenchel.report.pictures.energies import (
    Energies,
    add_overlaps,
    drawn_pictures,
    energies_of,
    save_histograms,
)
from fenchel.report.pictures.features import (
    Features,
    add_coverage,
    add_distances,
    add_score,
    features_of,
    look_of,
)
from fenchel.report.pictures.grid import grid, save_picture
from fenchel.report.pictures.movement import movement
from fenchel.report.pictures.neighbours import Space, add_memorisation, save_neighbours, space_of
from fenchel.report.pictures.networks import FID_FILE, SLIM_FILE, Networks, load_networks
from fenchel.report.pictures.opened import FEWEST, PictureRun, open_picture_run
from fenchel.result import Fit
from fenchel.seeds import apart

USUAL = 10_000  # samples, unless there are fewer pictures to hold them against
MOVED = 256  # draws that are followed through the dynamics
SHOWN = 64
STILL = 0.5  # grey levels: dynamics that move a pixel by less hardly change a picture
SEED_OFFSET = 2_000_003  # far from the seeds that anybody trains or summarises with


class Named(NamedTuple):
    """A number's name for people, its name for machines, and what it is."""

    name: str
    key: str
    what: str


def evaluate_pictures(
    run: PictureRun,
    networks: Networks | None = None,
    counts: Sequence[int] | None = None,
    say: Say = silent,
) -> Evaluation:
    """Judge a run by its pictures, and put figures into its folder.

    **Arguments:**

    - `run`: from `open_picture_run`.
    - `networks`: from `load_networks`; without them there is no FID.
    - `counts`: numbers of samples for FID; by default 10,000, or as many as there are pictures
      held out.
    - `say`: is told what is being computed.
    """
    counts = _checked(run, counts)
    found, seed = Findings(say), apart(run.fit.config.seed, SEED_OFFSET)
    _training(found, run)
    _data(found, run, counts)
    drawn = drawn_pictures(run.fit, counts[-1], seed, say)
    figures = _figures(found, run)
    save_picture(grid(drawn.pictures[:SHOWN]), figures["samples"])
    seen = _features(found, run, networks, drawn.pictures, counts)
    spaces = _spaces(run, networks, drawn.pictures, seen, say)
    for space in spaces:
        add_memorisation(found, space)
    save_neighbours(drawn.pictures, run.train.x, spaces, figures["neighbours"])
    say("energies")
    energies = energies_of(run, drawn, seed)
    add_overlaps(found, energies)
    save_histograms(energies, run.fit.name, figures["energies"])
    _movement(found, run.fit, seed)
    _likelihoods(found, run, energies)
    return found.evaluation(f"{energies.whose} pictures")


def open_and_evaluate(
    run: str | Path,
    data: str | None,
    networks: str | Path | None,
    counts: Sequence[int] | None,
    say: Say,
    command: str,
) -> tuple[PictureRun, Evaluation]:
    """The same from folders: the run's, and that of the networks' weights."""
    opened = open_picture_run(run, data, command)
    eyes = None if networks is None else load_networks(networks)
    return opened, evaluate_pictures(opened, eyes, counts, say)


def _checked(run: PictureRun, counts: Sequence[int] | None) -> list[int]:
    """In order, the usual one if none are given."""
    if counts is None:
        return [min(USUAL, len(run.train if run.held_out is None else run.held_out))]
    if not counts or min(counts) < FEWEST:
        raise InputError(
            f"FID of {min(counts, default=0)} samples was asked for: ask for at least {FEWEST}."
        )
    return sorted(set(counts))


def _figures(found: Findings, run: PictureRun) -> dict[str, Path]:
    """Where each goes."""
    folder = run.folder.figures
    folder.mkdir(exist_ok=True)
    paths = {name: folder / f"{name}.png" for name in ("samples", "neighbours", "energies")}
    found.values["figures"] = {name: str(path) for name, path in paths.items()}
    return paths


def _training(found: Findings, run: PictureRun) -> None:
    health = contest_health(run.rows, run.fit.config.training.steps)
    line = Line("training", health.word, health.verdict, sentence(health.evidence))
    found.add(line, training=health.word, training_evidence=health.evidence)


def _data(found: Findings, run: PictureRun, counts: Sequence[int]) -> None:
    """What the fit is judged by, and what that leaves open."""
    held_out = 0 if run.held_out is None else len(run.held_out)
    value = f"{len(run.train):,} training and {held_out:,} held-out pictures"
    faults = []
    if run.held_out is None:
        faults.append(
            f"No picture is held out ({run.missing}), so that nothing says what is good: give an "
            ".npz file with x_train and x_test, or a folder with train and test."
        )
    if not run.own:
        faults.append("The training pictures are not those of the fit, which may know others.")
    fewer = f"; usual are {USUAL:,}" if counts[-1] < USUAL else ""
    meaning = " ".join([*faults, f"Held against them are {counts[-1]:,} samples{fewer}."])
    found.add(
        Line("pictures", value, "caution" if faults else "", meaning),
        pictures_training=len(run.train),
        pictures_held_out=held_out,
        pictures_of_the_fit=run.own,
        samples=counts[-1],
    )


def _features(
    found: Findings,
    run: PictureRun,
    networks: Networks | None,
    drawn: np.ndarray,
    counts: Sequence[int],
) -> Features | None:
    """What the networks say, and what they see."""
    if networks is None:
        _not_computed(found, "FID", f"of the FID Inception network, {FID_FILE}")
        return None
    seen = features_of(networks.inception, run, drawn, found.say)
    add_distances(found, seen, counts)
    if networks.slim is None:
        _not_computed(found, "IS-slim", f"of TF-slim's Inception-v3, {SLIM_FILE}")
    else:
        add_score(found, networks.slim, run, drawn)
    add_coverage(found, seen)
    return seen


def _spaces(
    run: PictureRun, networks: Networks | None, drawn: np.ndarray, seen: Features | None, say: Say
) -> list[Space]:
    """Where neighbours are looked for."""
    held_out = None if run.held_out is None else run.held_out.x
    by_pixels = Features(run.train.x, drawn, held_out)
    spaces = [space_of("pixels", run, drawn, by_pixels, np.asarray)]
    if networks is not None and seen is not None:
        spaces.append(space_of("features", run, drawn, seen, look_of(networks.inception, say)))
    return spaces


def _not_computed(found: Findings, name: str, weights: str) -> None:
    meaning = f"Give --networks FOLDER, a folder with the weights {weights}."
    found.add(Line(name, "not computed", "", meaning))


def _movement(found: Findings, fit: Fit, seed: int) -> None:
    found.say("what the dynamics move")
    moved = movement(fit, MOVED, seed)
    if moved is None:
        return
    value = f"{moved.levels:.3g} grey levels a pixel; f changes by {moved.gain:+.4g}"
    meaning = f"On average over {moved.draws} draws, from the start's picture to the end."
    verdict = "good"
    if moved.levels < STILL:
        verdict, meaning = "caution", f"{meaning} The samples are those of the start alone."
    found.add(
        Line("what the dynamics move", value, verdict, meaning),
        moved_levels=moved.levels,
        moved_potential=moved.gain,
    )


def _likelihoods(found: Findings, run: PictureRun, f: Energies) -> None:
    """The paper's estimate, of exp f; and the same of exp f/c, which the objective fits."""
    name = f"log likelihood of exp f, {f.whose} pictures"
    _likelihood(found, run.fit, f, 1.0, Named(name, "uniform", "The paper's estimate"))
    c = run.fit.temperature
    if c not in (0.0, 1.0):
        name = f"log likelihood of exp f/{c:g}, {f.whose} pictures"
        what = f"Of what an entropy coefficient of {c:g} fits"
        _likelihood(found, run.fit, f, c, Named(name, "uniform_fitted", what))


def _likelihood(found: Findings, fit: Fit, f: Energies, c: float, named: Named) -> None:
    scaling, cell = fit.standardiser, fit.config.pictures.dequantise
    score, flat = box_likelihood(f.real / c, f.noise / c, scaling, cell), flat_likelihood(scaling)
    z = score.log_partition
    bits = "" if score.bits is None else f", {score.bits:.4f} bits a dimension"
    value = f"{score.nats:.1f} ± {score.standard_error:.1f} nats in units of [-1, 1]{bits}"
    meaning = (
        f"{named.what}, by {z.draws:,} draws of uniform noise, worth {z.ess * z.draws:,.0f} and "
        "none of them near a picture. "
    )
    if score.worth_nothing:
        meaning += f"Worth nothing: {score.worth_nothing}."
    else:
        meaning += (
            f"A constant f has exactly {flat:.1f} (of CIFAR-10 -2129.3, near the paper's figure "
            f"but for its sign); this one differs by {score.nats - flat:+.2f}."
        )
    key = f"log_likelihood_{named.key}"
    found.add(
        Line(named.name, value, "", meaning),
        **{
            f"{key}": score.nats,
            f"{key}_error": score.standard_error,
            f"{key}_bits": score.bits,
            f"{key}_coefficient": c,
            f"{key}_flat": flat,
            f"{key}_log_partition": z.estimate,
            f"{key}_effective_draws": z.ess * z.draws,
            f"{key}_pareto_k": z.pareto_k,
            f"{key}_worth_nothing": score.worth_nothing or None,
        },
    )
