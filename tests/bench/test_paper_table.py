"""What the paper's protocol makes of a perfect sampler, and of ours."""

import numpy as np
import pytest

from fenchel.bench.paper import TABLE_2
from fenchel.bench.paper_table import beside_paper, perfect_below

TRUTH = tuple(1e-3 * np.random.default_rng(0).normal(-1.0, 0.2, 30))


def paper(name):
    return TABLE_2[name]["ADE"]


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
    """Of five values, two of them below: for three draws in 44 of 125, for two in 10 of 25. 0.02 is
    four standard errors."""
    values = [paper("moons") + k + 0.05 for k in (-2, -1, 0, 1, 2)]  # no ties
    of_truth = {"moons": [1e-3 * value for value in values]}
    three, two, one = (perfect_below(of_truth, n)["moons"].mean() for n in (3, 2, 1))
    assert three == pytest.approx(44 / 125, abs=0.02)
    assert two == pytest.approx(10 / 25, abs=0.02)
    assert one == pytest.approx(2 / 5, abs=0.02)


def test_a_table_is_all_below_only_where_every_set_is():
    always, never = paper("moons") - 1, paper("line") + 1
    of_truth = {"moons": [1e-3 * always] * 2, "line": [1e-3 * never] * 2, "8gaussians": [0.0]}
    below = perfect_below(of_truth, 3)
    assert list(below) == ["moons", "line"]
    assert below["moons"].all()
    assert not below["line"].any()


def test_corrected_samples_are_what_counts():
    """moons: the paper has -1.10. A set that is not in the paper has no figure to be below."""
    text = beside_paper(results([-1.3e-3, -1.2e-3, 0.0]), 1_000)
    assert "| moons | -1.10 | -1.20 |" in text
    assert "| 8gaussians | - | - |" in text
    assert "`ade` is below it on 1, and with raw samples on 0." in text
    assert "On 1 set, a perfect sampler" in text
    assert "`ade` is below it on 0," in beside_paper(results([-1.3e-3, -1e-3, 0.0]), 1_000)


def test_a_run_without_a_finite_value_is_not_below():
    assert "`ade` is below it on 0," in beside_paper(results([-1.3e-3, -1.2e-3, None]), 1_000)
