"""What the paper's protocol makes of a perfect sampler, and of ours."""

import numpy as np
import pytest
from scipy import stats

from fenchel.bench.paper_table import beside_paper, chance_below

TRUTH = tuple(1e-3 * np.random.default_rng(0).normal(-1.0, 0.2, 30))


def results(values):
    runs = [
        {"set": "moons", "best_epoch_mmd": 1.0, "best_epoch_mmd_corrected": value}
        for value in values
    ]
    return {
        "settings": {"sets": ["moons", "8gaussians"], "seeds": [1, 2, 3]},
        "truth": {"moons": {"best": TRUTH}, "8gaussians": {"best": TRUTH}},
        "methods": {"ade": {"runs": runs}},
    }


def test_the_chance_is_that_of_a_median():
    """Against 20,000 medians of three: 0.014 is four standard errors."""
    mean, spread = np.mean(TRUTH), np.std(TRUTH, ddof=1)
    medians = np.median(np.random.default_rng(1).normal(mean, spread, (20_000, 3)), axis=1)
    assert chance_below(-1.1, TRUTH, 3) == pytest.approx(np.mean(medians < -1.1e-3), abs=0.014)
    assert chance_below(-1.1, TRUTH, 1) == pytest.approx(stats.norm.cdf(-1.1e-3, mean, spread))


def test_corrected_samples_are_what_counts():
    """moons: the paper has -1.10. A set that is not in the paper has no figure to be below."""
    text = beside_paper(results([-1.3e-3, -1.2e-3, 0.0]), 1_000)
    assert "| moons | -1.10 | -1.20 |" in text
    assert "| 8gaussians | - | - |" in text
    assert "`ade` is below it on 1." in text
    assert "of these 1 sets" in text
    assert "`ade` is below it on 0." in beside_paper(results([-1.3e-3, -1e-3, 0.0]), 1_000)


def test_a_run_without_a_finite_value_is_not_below():
    assert "`ade` is below it on 0." in beside_paper(results([-1.3e-3, -1.2e-3, None]), 1_000)
