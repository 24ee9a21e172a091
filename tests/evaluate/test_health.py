import numpy as np
import pytest

from fenchel.evaluate.health import contest_health, training_health


def rows(count: int = 40, **series) -> list[dict]:
    usual = {"lag": 0.02, "ess": 0.95, "loss": -1.0, "log_likelihood": -2.0}
    values = {name: np.broadcast_to(v, count) for name, v in {**usual, **series}.items()}
    return [
        {"iteration": 100 * (i + 1), "events": [], "skipped": 0}
        | {name: None if np.isnan(v[i]) else float(v[i]) for name, v in values.items()}
        for i in range(count)
    ]


def verdict(metrics, steps=4_000, dim=2):
    return training_health(metrics, dim, steps)


def test_a_calm_run_has_converged():
    noise = 0.01 * np.random.default_rng(0).standard_normal(40)
    health = verdict(rows(log_likelihood=-2.0 + noise))
    assert (health.word, health.verdict) == ("converged", "good")
    assert "dual gap 0.020 nats" in health.evidence
    assert "95% of the batch" in health.evidence


def test_a_run_that_still_climbs_is_noticed():
    climbing = np.linspace(-4.0, -2.0, 40)
    health = verdict(rows(log_likelihood=climbing))
    assert health.word == "still improving"
    assert "better over the last 800 iterations" in health.evidence


@pytest.mark.parametrize("count", [4, 10, 30, 100])
def test_noise_is_no_trend(count):
    # Of 500 runs of pure noise 1.5 are taken for trends by chance; more than 9, once in 50,000.
    noise = 0.3 * np.random.default_rng(0).standard_normal((500, count))
    said = [verdict(rows(count, log_likelihood=each), 100 * count).word for each in noise]
    assert said.count("converged") >= 491


def test_divergence_is_dated():
    lag = np.full(40, 0.05)
    lag[5], lag[25:] = 9.0, 50.0  # once it recovered
    health = verdict(rows(lag=lag))
    assert (health.word, health.verdict) == ("diverging since step 2,600", "bad")
    loss = np.full(40, -1.0)
    loss[30:] = np.nan
    assert verdict(rows(loss=loss)).word == "diverging since step 3,100"
    assert verdict(rows(loss=np.nan)).word == "diverging since step 100"


@pytest.mark.parametrize("series", [{"lag": 2.0}, {"ess": 0.03}])
def test_a_sampler_behind_is_said(series):
    assert verdict(rows(**series)).word == "sampler behind"
    # Many dimensions allow for more.
    assert verdict(rows(lag=2.0), dim=64).word == "converged"


def test_the_evidence_has_what_the_verdict_rests_on():
    """Also of a sampler without weights, whose lag is that of f."""
    health = classical(np.zeros(40), lag=2.0)
    assert health.word == "sampler behind"
    assert "apart by 2" in health.evidence


def test_a_run_that_was_cut_short():
    assert verdict(rows(), steps=9_000).word == "stopped at step 4,000 of 9,000"
    assert verdict([]).verdict == "bad"


def test_a_likelihood_that_falls_is_no_convergence():
    health = verdict(rows(log_likelihood=np.linspace(-2.0, -8.0, 40)))
    assert (health.word, health.verdict) == ("getting worse", "caution")
    assert "1.077 nats worse" in health.evidence


def dropping(metrics, every):
    """The same rows with dropped steps, of f and its sampler, in every so many iterations."""
    for row in metrics:
        when = range(row["iteration"] - 99, row["iteration"] + 1, every)
        events = [{"iteration": i, "who": who, "dropped": 1} for i in when for who in ("f", "q")]
        row |= {"events": events, "skipped": len(events)}
    return metrics


def test_dropped_steps_are_no_convergence():
    health = verdict([*rows()[:30], *dropping(rows()[30:], 2)])
    assert (health.word, health.verdict) == ("dropping steps", "bad")
    assert "in 50% of the last 200 iterations" in health.evidence
    # Where the guard stopped it that is what is said; a run that recovered is none of this, and
    # neither is one that dropped a step in a last row of one iteration.
    assert verdict([*rows()[:30], *dropping(rows()[30:31], 5)], steps=9_000).verdict == "bad"
    assert verdict([*dropping(rows()[:35], 2), *rows()[35:]]).word == "converged"
    short = {**rows(1)[0], "iteration": 4_001, "skipped": 1}
    short["events"] = [{"iteration": 4_001, "who": "potential", "dropped": 1}]
    assert verdict([*rows(), short], steps=4_001).word == "converged"
    energies = {"potential_data": 0.3, "potential_draws": 0.1, "ess": np.nan}
    assert contest_health(dropping(rows(**energies), 2), 4_000).word == "dropping steps"


def test_a_few_rows_are_too_few():
    assert verdict(rows(3), steps=300).word == "too short to judge"


def test_many_dimensions_allow_a_sampler_to_be_farther_behind():
    assert verdict(rows(lag=5.5), dim=128).word == "converged"
    assert verdict(rows(lag=5.5), dim=2).word == "diverging since step 100"


def classical(loss, lag=0.0):
    metrics = rows(len(loss), ess=np.nan, log_likelihood=np.nan, lag=lag, loss=loss)
    return verdict(metrics, 100 * len(loss))


def test_classical_runs_are_judged_by_their_loss():
    settled = np.exp(-np.arange(40.0)) + 0.01 * np.random.default_rng(0).standard_normal(40)
    health = classical(settled)
    assert (health.word, health.verdict) == ("all 4,000 steps done", "good")
    for word in ("sample size", "dual gap"):
        assert word not in health.evidence
    falling = np.linspace(50, -50, 40)
    gaps = falling.copy()
    gaps[[3, 36]] = np.nan  # in two blocks nothing was finite
    for loss in (falling, gaps, np.exp(np.arange(40.0)), np.exp(np.arange(6.0))):
        assert classical(loss).word == "loss still changing"
    assert classical(np.exp(np.arange(5.0))).word == "too short to judge"
    # Of 200 that only fluctuate a trend of that p-value is had by fewer than one; by 6 of them less
    # than once in 1,000.
    noise = np.random.default_rng(1).standard_normal((200, 40))
    assert sum(classical(loss).verdict != "good" for loss in noise) <= 6


def test_events_are_counted():
    metrics = rows()
    metrics[3]["skipped"] = 2
    metrics[5]["events"] = [{"who": "flow", "iteration": 501, "strain": 1.2}]
    evidence = verdict(metrics).evidence
    assert "2 step(s) dropped" in evidence
    assert "shortened 1 time" in evidence


def contest(steps=4_000, **series):
    """A run of pictures: no density, and a gap in f's own units."""
    usual = {"ess": np.nan, "log_likelihood": np.nan, "lag": 0.2}
    energies = {"potential_data": 0.3, "potential_draws": 0.1}
    return contest_health(rows(**usual | energies | series), steps)


def test_without_units_a_gap_is_no_divergence():
    health = contest(lag=700.0)
    assert (health.word, health.verdict) == ("all 4,000 steps done", "good")
    assert "mean f of data 0.3, mean f of draws 0.1" in health.evidence
    assert "nats" not in health.evidence


def test_a_gap_that_outgrows_the_runs_own_is_dated():
    gap = np.full(40, 0.2)
    gap[30:] = 3.0
    health = contest(lag=gap)
    assert (health.word, health.verdict) == ("sampler left behind since step 3,100", "bad")
    assert contest(lag=np.linspace(0.0, 5.0, 40)).verdict == "good"


def test_a_run_of_pictures_that_was_stopped_or_lost():
    assert contest(steps=9_000).word == "stopped at step 4,000 of 9,000"
    assert "--resume goes on" in contest(steps=9_000).evidence
    loss = np.where(np.arange(40) < 30, -1.0, np.nan)
    assert contest(loss=loss).word == "diverging since step 3,100"
    assert contest_health([], 10).verdict == "bad"
