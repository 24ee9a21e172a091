"""A fitted model in a few numbers and three pictures."""

from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from fenchel.data import Samples, Toy
from fenchel.evaluate import mmd_z
from fenchel.report.figures import (
    density_figure,
    moments_figure,
    samples_figure,
    save,
    training_figure,
)
from fenchel.report.opened import FRESH, SEED_OFFSET
from fenchel.result import Fit
from fenchel.runs import RunFolder
from fenchel.seeds import apart

DRAWS = 2_000
FEW_VALUES = 10  # data with no more are hardly continuous
CURE = "fit with --potential discrete"


class Summary(NamedTuple):
    values: dict[str, Any]  # for machines
    rows: list[tuple[str, str]]  # for people


def summarise(fit: Fit, samples: Samples) -> Summary:
    """How good the fit is, as far as it can be known."""
    values: dict[str, Any] = {}
    rows: list[tuple[str, str]] = []
    if fit.sampler.exact:
        z = fit.log_partition()
        values.update(
            log_partition=z.estimate,
            log_partition_lower=z.lower,
            log_partition_upper=z.upper,
            log_partition_bound=z.bound,
            ess=z.ess,
            caution=z.caution,
        )
        within = f"within {z.lower:.4f} to {z.upper:.4f}"
        rows.append(("log Z", f"{z.estimate:.4f} ± {z.standard_error:.4f}, {within}"))
        caution = f": {z.caution}" if z.caution else ""
        rows.append(("effective sample size", f"{z.ess:.1%} of {z.draws:,} draws{caution}"))
    elif fit.has_log_partition:
        z = fit.log_partition()
        values.update(log_partition=z.estimate, caution=z.caution)
        rows.append(
            ("log Z", f"{z.estimate:.4f}, by {z.how}{f': {z.caution}' if z.caution else ''}")
        )
    if fit.has_log_partition:
        _add_likelihood(fit, samples, values, rows)
    if samples.toy is not None:
        _add_mmd(fit, samples.toy, values, rows)
    distinct = len(np.unique(samples.x))
    if _looks_discrete(samples.x, distinct) and not fit.standardiser.counting:
        values["distinct_values"] = distinct
        rows.append(("note", f"the data have {distinct} values only: for a discrete model, {CURE}"))
    return Summary(values, rows)


def _looks_discrete(x: np.ndarray, distinct: int) -> bool:
    coded = distinct == 2 or bool(np.all(x == np.round(x)))
    return coded and distinct <= FEW_VALUES and x.size > 10 * distinct


def write_figures(fit: Fit, samples: Samples, folder: Path) -> None:
    """Data against samples, the learnt density, and the training, as pictures in the run."""
    run = RunFolder(folder)
    run.figures.mkdir(exist_ok=True)
    drawn = fit.sample(DRAWS, seed=fit.config.seed)
    # Files are often sorted: a random part of them, not the first rows.
    rows = np.random.default_rng(fit.config.seed).permutation(len(samples.x))[:DRAWS]
    data = samples.x[rows]
    names = samples.columns
    title = samples.name
    if fit.standardiser.counting:
        picture = moments_figure(data, drawn, title=title)
    else:
        picture = samples_figure(data, drawn, names=names, title=title)
    save(picture, run.figures / "samples.png")
    if fit.has_log_partition:
        figure = density_figure(fit.log_density, data, samples=drawn, names=names, title=title)
        save(figure, run.figures / "density.png")
    save(training_figure(run.read_metrics()), run.figures / "training.png")


def _add_likelihood(
    fit: Fit, samples: Samples, values: dict[str, Any], rows: list[tuple[str, str]]
) -> None:
    toy = samples.toy
    if toy is None:
        mean = float(fit.log_density(samples.x).mean())
        values["log_likelihood"] = mean
        rows.append(("mean log likelihood, training data", f"{mean:.4f}"))
        return
    fresh = toy.sample(FRESH, fit.config.seed + SEED_OFFSET)
    mean = float(fit.log_density(fresh).mean())
    values["log_likelihood"] = mean
    text = f"{mean:.4f}"
    if toy.log_density is not None:
        truth = float(toy.log_density(fresh).mean())
        values["true_log_likelihood"] = truth
        text += f" (true density: {truth:.4f})"
    rows.append(("mean log likelihood, fresh data", text))


def _add_mmd(fit: Fit, toy: Toy, values: dict[str, Any], rows: list[tuple[str, str]]) -> None:
    """Samples against truth, beside truth against truth."""
    seed = apart(fit.config.seed, SEED_OFFSET)
    kinds = {"raw sampler": False, "corrected": True} if fit.is_corrected else {"sampler": False}
    for kind, corrected in kinds.items():
        drawn = fit.sample(DRAWS, seed=seed, corrected=corrected)
        result = mmd_z(drawn, toy.sample, seed=seed)
        name = f"mmd_{'corrected' if corrected else 'raw'}"
        values[name], values[f"{name}_z"] = result.value, result.z
        verdict = "indistinguishable" if result.z < 2 else "distinguishable"
        rows.append(
            (
                f"MMD² × 1e3, {kind}",
                f"{1e3 * result.value:.2f}, z = {result.z:.2f} ({verdict} from the truth "
                f"at n = {result.n:,})",
            )
        )
