"""All that can be said of how good a fit is: lines for people, numbers for machines.

What is tested is tested in standard units, so that no column counts more than another.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np
import paramax

from fenchel.data import Samples, Toy
from fenchel.dynamics import step_sizes
from fenchel.errors import InputError
from fenchel.estimation import domain_of, states_of
from fenchel.evaluate import (
    aggregated_mmd_test,
    coverage,
    energy_overlap,
    mmd_test,
    mmd_z,
    sliced_wasserstein,
    stein_test,
    training_health,
)
from fenchel.evaluate.checks import LARGEST
from fenchel.evidence import Annealing, Chains, LogPartition
from fenchel.report.findings import Findings, Say, sentence, silent
from fenchel.report.lines import Evaluation, Line
from fenchel.result import Fit
from fenchel.seeds import apart

MOST_POINTS = 5_000  # of data and samples in tests
TRUTH_POINTS = 2_000  # for the z-score against truth
CHAINS, CHAIN_DRAWS = 4, 500  # of the reference
PERMUTATIONS = 500  # or draws of the bootstrap: one over it is the smallest p-value
UNLIKELY, IMPOSSIBLE = 0.01, 1 / PERMUTATIONS  # p-values for a caution, and for a fault
NARROW, WIDE = 0.1, 1.0  # nats, of the bracket on log Z
ROUNDING = 0.01  # nats, by which brackets may be apart: sums are in single precision
LACK_GOOD, LACK_BAD = 0.02, 0.1  # nats between the likelihood and the truth's
OVERLAP_GOOD, OVERLAP_BAD = 0.9, 0.7
RATE_GOOD, RATE_BAD = 0.9, 0.75  # of precision, recall and coverage, beside those of the data
NEIGHBOURS = 5  # the nearest of which their balls reach to
RATE_LEAST = 0.05  # below which no rate of the data's own is a measure
FEWEST = 100  # finite values that say anything, where others are not finite
SHORT = Annealing(chains=256, stations=60)  # enough from a start that was learnt
RAW = "raw samples"
SEED_OFFSET = 2_000_003  # far from the seeds that anybody trains or summarises with


def evaluate(
    fit: Fit,
    samples: Samples,
    rows: Sequence[dict[str, Any]],
    whose: str = "these data",
    say: Say = silent,
) -> Evaluation:
    """Judge a fit by these data, and its training by the rows of its metrics.

    `whose` data they are goes into the text; `say` is told what is being computed.
    """
    furthest = np.abs(fit.standardiser.forward(samples.x)).max(initial=0.0)
    if furthest > LARGEST:
        raise InputError(
            f"The data reach {furthest:.2g} standard deviations from the mean of those that were "
            "fitted, so that nothing can be computed there: drop such rows, or see whether the "
            "units are the same."
        )
    found = Findings(say)
    _training(found, fit, rows)
    _log_partition(found, fit, samples)
    _likelihood(found, fit, samples, whose)
    _samples(found, fit, samples)
    _sampler(found, fit)
    return found.evaluation(whose)


def _training(found: Findings, fit: Fit, rows: Sequence[dict[str, Any]]) -> None:
    health = training_health(rows, fit.dim, fit.config.training.steps)
    line = Line("training", health.word, health.verdict, sentence(health.evidence))
    found.add(line, training=health.word, training_evidence=health.evidence)


def _log_partition(found: Findings, fit: Fit, samples: Samples) -> None:
    """By every account that can be given: they should agree."""
    names = {
        "weights": "by the sampler's weights",
        "annealing": "by annealing",
        "quadrature": "by integration",
        "learnt": "as noise contrast learnt it",
    }
    known = {}
    for by in fit.accounts:
        found.say(f"log Z {names[by]}")
        # The way back begins at data, which know of modes that the sampler may have lost.
        annealed = by == "annealing"
        try:
            z = fit.log_partition(SHORT, samples.x) if annealed else fit.log_partition(by)
        except InputError as error:
            found.add(Line(f"log Z {names[by]}", "not known", "bad", str(error)))
            continue
        known[by] = z
        numbers = {f"log_partition_{by}_{key}": value for key, value in z._asdict().items()}
        found.add(_partition_line(z, f"log Z {names[by]}"), **numbers)
    _compare(found, {names[by]: z for by, z in known.items()})


def _compare(found: Findings, accounts: dict[str, LogPartition]) -> None:
    """Whatever one of them has seen for certain the others have to have seen."""
    lower = {name: z.lower for name, z in accounts.items()}
    highest = max(lower, key=lower.__getitem__, default="")
    below = [name for name, z in accounts.items() if z.upper < lower[highest] - ROUNDING]
    if below:
        words = f"The bracket {', '.join(below)} lies below that {highest}: mass was missed there."
        found.add(Line("log Z, accounts compared", "they disagree", "bad", words))


def _partition_line(z: LogPartition, name: str) -> Line:
    if z.draws == 0:
        verdict = "caution" if z.caution else "good"
        meaning = f"By {z.how}, to {z.width / 2:.2g} nats."
        return Line(
            name, f"{z.estimate:.4f}", verdict, sentence(z.caution) if z.caution else meaning
        )
    value = f"{z.estimate:.4f} ± {z.standard_error:.4f}, within {z.lower:.4f} to {z.upper:.4f}"
    words = [f"effective sample size {z.ess:.1%} of {z.draws:,}"]
    if np.isfinite(z.pareto_k):
        words.append(f"Pareto k {z.pareto_k:.2f}")
    words.append(z.caution or f"the bracket is {z.width:.3f} nats wide")
    narrow, wide = z.width < NARROW and not z.caution, z.width < WIDE
    verdict = "good" if narrow else "caution" if wide else "bad"
    return Line(name, value, verdict, sentence("; ".join(words)))


def _likelihood(found: Findings, fit: Fit, samples: Samples, whose: str) -> None:
    if not fit.has_log_partition:
        return
    score = fit.log_likelihood(samples.x)
    name = f"mean log likelihood, {whose}"
    value, meaning = f"{score.estimate:.4f}", f"Of {score.rows:,} rows"
    if np.isfinite(score.lower):
        value += f" ± {score.standard_error:.4f}"
        meaning += f"; log Z puts it within {score.lower:.4f} to {score.upper:.4f}"
    numbers = {f"log_likelihood_{key}": number for key, number in score._asdict().items()}
    verdict = ""
    truth = None if samples.toy is None else samples.toy.log_density
    if truth is not None:
        true = float(truth(samples.x).mean())
        gap = true - score.estimate
        # Far more than the truth has can only be a log Z that is too low.
        verdict = "good" if abs(gap) < LACK_GOOD else "caution" if abs(gap) < LACK_BAD else "bad"
        side = "more" if gap > 0 else "less"
        meaning += f"; the true density has {true:.4f}, {abs(gap):.4f} {side}"
        numbers["true_log_likelihood"] = true
    if score.caution:
        verdict = "bad" if verdict == "bad" else "caution"
        meaning += f"; {score.caution}"
    found.add(Line(name, value, verdict, meaning + "."), **numbers)


def _samples(found: Findings, fit: Fit, samples: Samples) -> None:
    """Samples against data, by several eyes."""
    seed = apart(fit.config.seed, SEED_OFFSET)
    rows = np.random.default_rng(seed).permutation(len(samples.x))[:MOST_POINTS]
    data = samples.x[rows]
    found.say("samples")
    kinds = {"samples": None, RAW: False} if fit.is_corrected else {"samples": None}
    drawn = {
        name: _finite(found, fit.sample(len(data), seed, corrected), name)
        for name, corrected in kinds.items()
    }
    if min(map(len, drawn.values())) < min(FEWEST, len(data)):
        return
    scaled = {name: fit.standardiser.forward(x) for name, x in drawn.items()}
    target = fit.standardiser.forward(data)
    for name, x in scaled.items():
        found.say(f"MMD of {name} and data")
        found.attempt(
            f"MMD, {name} against data",
            lambda x=x, name=name: _mmd(found, x, target, name, seed),  # type: ignore[misc]
        )
    if samples.toy is not None:
        found.say("MMD of samples and truth")
        _truth(found, drawn["samples"], samples.toy, seed)
    continuous = states_of(fit.f) is None
    if continuous and domain_of(fit.f) is None:
        found.say("Stein's test of f")
        found.attempt(
            "kernel Stein test of f against data", lambda: _stein(found, fit, target, seed)
        )
    if continuous:
        found.attempt("distances", lambda: _distances(found, scaled["samples"], target, seed))
    _energies(found, fit.potential(drawn["samples"]), fit.potential(data))


def _finite(found: Findings, drawn: np.ndarray, name: str) -> np.ndarray:
    """A sampler that went astray is judged by what is left of it, and for what is not."""
    kept = drawn[np.isfinite(drawn).all(axis=1)]
    lost = 1 - len(kept) / len(drawn)
    if lost:
        meaning = (
            "Values that are not finite: the dynamics ran off. The rest is judged without them."
        )
        found.add(
            Line(f"{name} that are lost", f"{lost:.1%}", "bad", meaning),
            **{f"lost_{name.replace(' ', '_')}": lost},
        )
    return kept


def _mmd(found: Findings, x: np.ndarray, data: np.ndarray, name: str, seed: int) -> None:
    key = name.replace(" ", "_")
    one = mmd_test(x, data, permutations=PERMUTATIONS, seed=seed)
    many = aggregated_mmd_test(x, data, permutations=PERMUTATIONS, seed=seed)
    value = f"p = {many.p_value:.3g} over all scales, {one.p_value:.3g} at the paper's"
    meaning = f"{one.n:,} {name} and {one.m:,} data points"
    verdict = _by_p(many.p_value)
    if verdict == "good":
        meaning += " cannot be told apart."
    else:
        meaning += f" differ, most at distances of {many.width:.2g} standard deviations."
    if name == RAW:
        # Their weights make up for what they lack: no fault of the fit's.
        verdict = "caution" if verdict == "bad" else verdict
    found.add(
        Line(f"MMD, {name} against data", value, verdict, meaning),
        **{
            f"mmd_{key}": one.value,
            f"mmd_{key}_p": one.p_value,
            f"mmd_{key}_aggregated_p": many.p_value,
        },
    )


def _truth(found: Findings, drawn: np.ndarray, toy: Toy, seed: int) -> None:
    result = mmd_z(drawn[:TRUTH_POINTS], toy.sample, seed=seed)
    verdict = "good" if result.z < 2 else "caution" if result.z < 5 else "bad"
    meaning = "In standard deviations of truth against truth; a perfect sampler is below 2."
    value = f"z = {result.z:.2f} (MMD² {1e3 * result.value:.2f}e-3)"
    name = f"MMD against the truth, n = {result.n:,}"
    found.add(Line(name, value, verdict, meaning), mmd_truth=result.value, mmd_truth_z=result.z)


def _stein(found: Findings, fit: Fit, data: np.ndarray, seed: int) -> None:
    test = stein_test(paramax.unwrap(fit.f), data, draws=PERMUTATIONS, seed=seed)
    verdict = _by_p(test.p_value)
    words = "could be draws from f" if verdict == "good" else "are not draws from f"
    meaning = f"{test.n:,} data points {words}, by its score alone, whatever the sampler."
    value = f"p = {test.p_value:.3g}"
    name = "kernel Stein test of f against data"
    found.add(Line(name, value, verdict, meaning), stein=test.value, stein_p=test.p_value)


def _distances(found: Findings, x: np.ndarray, data: np.ndarray, seed: int) -> None:
    found.say("distances")
    sliced = sliced_wasserstein(x, data, seed=seed)
    verdict = "good" if sliced.value < 1.5 * sliced.baseline else "caution"
    meaning = f"Between two halves of the data it is {sliced.baseline:.4f}, by chance alone."
    found.add(
        Line("sliced Wasserstein distance", f"{sliced.value:.4f}", verdict, meaning),
        sliced_wasserstein=sliced.value,
        sliced_wasserstein_baseline=sliced.baseline,
    )
    # In many dimensions even the truth's are far below 1: hence those of one half of the data.
    half = min(len(data) // 2, len(x))
    if half <= NEIGHBOURS:
        return
    other, target = data[:half], data[half : 2 * half]
    cover, usual = (coverage(each, target, k=NEIGHBOURS) for each in (x[:half], other))
    rates = ("precision", "recall", "coverage")
    lowest = min(getattr(cover, rate) / max(getattr(usual, rate), RATE_LEAST) for rate in rates)
    verdict = "good" if lowest > RATE_GOOD else "caution" if lowest > RATE_BAD else "bad"
    value = (
        f"precision {cover.precision:.1%}, recall {cover.recall:.1%}, density {cover.density:.2f}, "
        f"coverage {cover.coverage:.1%}"
    )
    meaning = (
        "Are samples where data are, and data where samples are; coverage falls by lost modes. One "
        f"half of the data has {usual.precision:.1%}, {usual.recall:.1%} and {usual.coverage:.1%} "
        "by the other."
    )
    numbers = {
        name: getattr(cover, name) for name in ("precision", "recall", "density", "coverage")
    }
    found.add(Line("nearest neighbours", value, verdict, meaning), **numbers)


def _energies(found: Findings, of_samples: np.ndarray, of_data: np.ndarray) -> None:
    finite = np.isfinite(of_data)
    if not finite.all():
        share = f"{1 - finite.mean():.1%} of the data"
        found.add(Line("f at data", share, "bad", "There f is not finite, and their density is 0."))
    if finite.sum() < min(FEWEST, len(finite)):
        return
    both = energy_overlap(of_samples[np.isfinite(of_samples)], of_data[finite])
    good, fair = both.overlap > OVERLAP_GOOD, both.overlap > OVERLAP_BAD
    verdict = "good" if good else "caution" if fair else "bad"
    value = (
        f"{both.overlap:.1%}, means {both.difference:+.3f} ± {both.standard_error:.3f} nats apart"
    )
    meaning = "How far f's values at samples and at data have one distribution."
    found.add(
        Line("energy overlap", value, verdict, meaning),
        energy_overlap=both.overlap,
        energy_difference=both.difference,
        energy_ks_p=both.ks_p_value,
    )


def _sampler(found: Findings, fit: Fit) -> None:
    sizes = step_sizes(fit.sampler)
    if sizes.size:
        value = f"{sizes.min():.3g} to {sizes.max():.3g}" if np.ptp(sizes) else f"{sizes[0]:.3g}"
        meaning = "Of the dynamics, in standard units, as learnt."
        numbers = {"step_size_smallest": sizes.min(), "step_size_largest": sizes.max()}
        found.add(Line("step sizes", value, "", meaning), **numbers)
    if states_of(fit.f) is not None or domain_of(fit.f) is not None:
        return
    found.say("reference draws by NUTS")
    seed = apart(fit.config.seed, SEED_OFFSET)
    found.attempt(
        "reference chains (NUTS)",
        lambda: _chains(found, fit.reference(CHAIN_DRAWS, chains=CHAINS, seed=seed)),
    )


def _chains(found: Findings, chains: Chains) -> None:
    bulk, tail, r_hat = chains.bulk_ess.min(), chains.tail_ess.min(), chains.r_hat.max()
    value = (
        f"R-hat {r_hat:.3f}, bulk ESS {bulk:.0f}, tail ESS {tail:.0f}, "
        f"{chains.divergences} divergences"
    )
    meaning = (
        f"{CHAINS} chains of {CHAIN_DRAWS} draws from f, begun at the sampler's; at their worst."
    )
    if not chains.converged:
        # That is no fault of the fit's: chains rarely cross between modes.
        meaning += (
            " They are no reference: they do not agree, as where f has modes they cannot leave, or "
            "they diverge, where f is too steep for their steps."
        )
    verdict = "good" if chains.converged else ""
    found.add(
        Line("reference chains (NUTS)", value, verdict, meaning),
        nuts_r_hat=r_hat,
        nuts_bulk_ess=bulk,
        nuts_tail_ess=tail,
        nuts_divergences=chains.divergences,
    )


def _by_p(p_value: float) -> str:
    return "good" if p_value >= UNLIKELY else "caution" if p_value > IMPOSSIBLE else "bad"
