import re

import numpy as np
import pytest
from scipy.special import logsumexp

from fenchel.evidence import believed, beside_unseen, from_both_ends, from_weights, known
from fenchel.evidence.bracket import pareto_index

N = 4_096
NOTHING = np.full(N, -np.inf)


def log_normal(spread: float, seed: int, *, of_model: bool = False) -> np.ndarray:
    """Log weights whose mean weight is 1; under the model their mean moves by the variance."""
    mean = (0.5 if of_model else -0.5) * spread**2
    return mean + spread * np.random.default_rng(seed).standard_normal(N)


@pytest.mark.parametrize("spread", [0.1, 0.5, 1.0])
def test_the_bracket_holds_the_truth(spread):
    # Each end misses in 1 of 200 runs: more than 5 misses of 100 happen less than once in 500.
    found = [from_weights(log_normal(spread, seed), "test") for seed in range(100)]
    assert sum(z.lower < 0 < z.upper for z in found) >= 95
    assert all(z.caution == "" for z in found)
    assert max(z.width for z in found) < 0.05 + 0.2 * spread


@pytest.mark.parametrize("spread", [0.5, 2.0])
def test_the_bracket_from_both_ends_holds_the_truth(spread):
    found = [
        from_both_ends(
            log_normal(spread, seed), log_normal(spread, 1_000 + seed, of_model=True), "test"
        )
        for seed in range(100)
    ]
    assert sum(z.lower < 0 < z.upper for z in found) >= 95


def scouts(share: float, hits: float, seed: int) -> np.ndarray:
    """Log weights of mean `share`: a few are equal, and the others nothing."""
    hit = np.random.default_rng(seed).random(N) < hits
    return np.where(hit, np.log(share / hits), -np.inf)


@pytest.mark.parametrize("share", [0.02, 0.5, 40.0])
def test_the_bracket_holds_what_scouts_have_seen(share):
    """As above, more than 5 misses of 100 happen less than once in 500."""
    found = [
        beside_unseen(
            from_weights(log_normal(0.3, seed), "test"), scouts(share, 0.05, 100 + seed), NOTHING
        )
        for seed in range(100)
    ]
    truth = np.log1p(share)
    assert sum(z.lower < truth < z.upper for z in found) >= 95
    assert all("the sampler hardly goes" in z.caution for z in found)
    errors = [abs(z.estimate - truth) / z.standard_error for z in found]
    assert np.sqrt(np.mean(np.square(errors))) == pytest.approx(1, abs=0.3)
    # Without them the truth is missed whenever the bracket is narrower than what is not seen.
    alone = [from_weights(log_normal(0.3, seed), "test") for seed in range(100)]
    assert sum(z.lower < truth < z.upper for z in alone) <= 100 * (share < 0.1)


def test_scouts_that_see_nothing_change_nothing():
    found = from_weights(log_normal(0.3, 0), "test")
    assert beside_unseen(found, NOTHING, NOTHING) == found
    lost = found._replace(estimate=-np.inf)
    assert beside_unseen(lost, scouts(0.5, 0.05, 0), NOTHING) == lost


def test_mass_that_draws_have_met_is_not_counted_twice():
    """Where the start never goes the dynamics may: half of Z is there, by draws and by scouts."""
    log_w = log_normal(0.3, 0)
    seen = np.where(np.arange(N) % 2, log_w, -np.inf)
    found = from_weights(log_w, "test")
    both = [beside_unseen(found, scouts(0.5, 0.05, seed), seen) for seed in range(100)]
    # By chance scouts see two standard errors more in one run of 44; 8 of 100 once in 500.
    assert sum(z == found for z in both) >= 92
    assert max(z.estimate for z in both) < found.estimate + 0.1
    more = beside_unseen(found, scouts(2.0, 0.05, 0), seen)  # and where draws lack the most of it
    assert more.estimate == pytest.approx(np.log(2.5), abs=0.1)
    # One stray draw is no sign that they go there: half a mode is not to be passed over for it.
    stray = np.full(N, -np.inf)
    stray[0] = -40.0
    alone = from_weights(log_normal(0.3, 0), "test")
    for few in (1, 4):
        met = np.full(N, -np.inf)
        met[:few] = np.log(0.5 * N / few)
        z = beside_unseen(alone, met, stray)
        assert z.upper > np.log(1.5)
        assert f"by {few} scouts" in z.caution
    # Scouts may miss a narrow mode that draws have met.
    assert beside_unseen(found, NOTHING, seen) == found


def test_no_caution_hides_another():
    few = log_normal(0.1, 0) - 9.0
    few[:30] += 9.0
    z = beside_unseen(from_weights(few, "test"), scouts(1.0, 0.05, 0), NOTHING)
    assert "hardly goes" in z.caution
    assert "draws count" in z.caution
    assert re.search(r"by \d{3} scouts", z.caution)


@pytest.mark.parametrize(("index", "believed"), [(0.3, True), (1.2, False)])
def test_paths_without_a_mean_are_not_believed(index, believed):
    """Weights with a Pareto tail: from an index of 1 on they have no mean, and there is no Z."""
    forward = index * np.random.default_rng(1).exponential(size=N)
    z = from_both_ends(forward, np.full(N, 2.0 if index > 1 else 0.5), "test")
    assert z.width < 1
    assert (z.caution == "") == believed
    assert believed or re.match(r"only \d+ of 4,096 paths count \(Pareto k [12]\.", z.caution)


def test_a_mode_beyond_all_bounds_is_reported_in_numbers():
    z = beside_unseen(
        from_weights(log_normal(0.3, 0), "test"), scouts(0.5, 0.05, 0) + 2_000, NOTHING
    )
    assert z.estimate == pytest.approx(2_000 + np.log(0.5), abs=0.5)
    assert "2e+03 nats" in z.caution
    assert np.isfinite([z.upper, z.standard_error]).all()


def test_one_sample_bounds_are_those_of_theory():
    # E[log w] is -s²/2; its standard error s / sqrt(n): 5 of them are missed once in a million.
    z = from_weights(log_normal(0.8, 0), "test")
    assert z.bound == pytest.approx(-0.32, abs=5 * 0.8 / N**0.5)
    assert z.bound_error == pytest.approx(0.8 / N**0.5, rel=0.1)
    assert z.ess == pytest.approx(np.exp(-0.64), rel=0.15)
    assert z.standard_error == pytest.approx((np.expm1(0.64) / N) ** 0.5, rel=0.2)


def test_a_group_bound_is_the_mean_over_mixed_groups():
    """The replacement of one weight in turn, written out."""
    forward, backward = log_normal(1.0, 1)[:128], log_normal(1.0, 2)[:128]
    k = 4
    means = []
    for group in range(32):
        rows = slice(group * k, (group + 1) * k)
        for j in range(k):
            mixed = forward[rows].copy()
            mixed[j] = backward[rows][j]
            means.append(logsumexp(mixed) - np.log(k))
    upper = np.reshape(means, (32, k)).mean(axis=1)
    found = from_both_ends(forward, backward, "test")
    margin = found.upper - upper.mean()
    assert margin == pytest.approx(2.744 * upper.std(ddof=1) / 32**0.5, rel=1e-3)


def test_a_lost_mode_is_seen_only_from_the_model():
    """A sampler that never visits half of the model: its own weights cannot tell."""
    forward = np.full(N, np.log(0.5))
    # Of the model's draws half are where the sampler never is, with weights beyond all bounds.
    backward = np.where(np.arange(N) % 2, 50.0, np.log(0.5))
    alone = from_weights(forward, "test")
    assert alone.upper < 0
    assert alone.caution == ""
    both = from_both_ends(forward, backward, "test")
    assert both.upper > 0
    assert "more stations" in both.caution


@pytest.mark.parametrize(
    ("log_w", "words"),
    [
        (log_normal(4.0, 0), "draws count"),
        (0.75 * np.random.default_rng(0).standard_exponential(40 * N), "heavy tail"),
        (np.append(np.full(N, -np.inf), np.zeros(N)), "ran off"),
    ],
)
def test_what_not_to_trust_is_said(log_w, words):
    assert words in from_weights(log_w, "test").caution


@pytest.mark.parametrize("index", [0.3, 0.9])
def test_the_tail_index_is_found(index):
    # w = U^(-k) has a Pareto tail of index k. Its estimate from 600 values has an error of 0.06.
    log_w = -index * np.log(np.random.default_rng(0).uniform(size=40_000))
    assert pareto_index(log_w) == pytest.approx(index, abs=0.25)


def test_equal_weights_leave_nothing_open():
    z = from_weights(np.full(N, 3.0), "test")
    assert (z.lower, z.upper, z.ess) == pytest.approx((3.0, 3.0, 1.0))
    assert z.caution == ""


@pytest.mark.parametrize("value", [np.nan, np.inf])
def test_what_is_no_number_opens_the_bracket(value):
    good, back = log_normal(0.5, 0), log_normal(0.5, 1, of_model=True)
    opened = from_both_ends(good, np.append(back[1:], value), "test")
    assert (np.isfinite(opened.lower), opened.upper) == (True, np.inf)
    assert "ran off" in opened.caution
    # On the way there a weight that is no number is none: the mean is smaller, and still a bound.
    dropped = np.append(good[1:], np.nan)
    for found in (from_both_ends(dropped, back, "test"), from_weights(dropped, "test")):
        assert found.lower < 0 < found.upper
        assert np.isfinite(found.estimate)


def test_a_belief_has_no_bounds():
    z = believed(1.0, "a guess").moved(2.0)
    assert (z.lower, z.estimate, z.upper) == (-np.inf, 3.0, np.inf)
    assert "nothing bounds its error" in z.caution


def test_moving_moves_all_but_the_errors():
    z = from_weights(log_normal(0.5, 0), "test")
    moved = z.moved(2.0)
    assert moved.estimate == z.estimate + 2
    assert moved.width == pytest.approx(z.width)
    assert moved.standard_error == z.standard_error
    assert known(1.0, "integral").moved(1.0).upper == 2.0


def test_weights_that_underflow_have_the_heaviest_tail():
    log_w = 1e3 * np.random.default_rng(0).standard_normal(N)
    assert pareto_index(log_w) >= 0.7
    assert "draws count" in from_weights(log_w, "test").caution
