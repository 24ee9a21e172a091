"""The live line: what it tells of which run, within 80 columns."""

import io

import pytest
from rich.console import Console

from fenchel.report.progress import Bar, pace, told

NOTHING = dict.fromkeys(
    ("log_partition_lower", "ess", "acceptance", "loss", "objective", "step_size"),
) | {"potential_data": None, "potential_draws": None}

RUNS = {
    "weights": (
        {"log_partition_lower": -12.3456, "ess": 0.98765},
        ["bound -12.3", "ESS 0.988"],
    ),
    "pictures": (
        {"objective": -0.1234, "potential_data": 0.1063, "potential_draws": -0.1059}
        | {"step_size": 10.234},
        ["bound -0.12", "f 0.11 | -0.11", "step 10"],
    ),
    "no dynamics": (
        {"objective": 0.5, "potential_data": 1.0, "potential_draws": 0.5},
        ["bound 0.5", "f 1 | 0.5"],
    ),
    "chains": (
        {"loss": 3.14159, "acceptance": 0.6543, "potential_draws": 1.0},
        ["loss 3.14", "accepted 0.654"],
    ),
    "a loss alone": ({"loss": 3.14159}, ["loss 3.14"]),
}


@pytest.mark.parametrize("kind", RUNS)
def test_it_tells_what_there_is(kind):
    row, expected = RUNS[kind]
    assert told(NOTHING | row) == expected


@pytest.mark.parametrize("kind", RUNS)
def test_it_is_whole_on_80_columns(kind):
    row, expected = RUNS[kind]
    screen = io.StringIO()
    with Bar(Console(file=screen, width=80, force_terminal=True, color_system=None)) as bar:
        bar.begin(200_000, 0)
        bar.block(NOTHING | row | {"iteration": 25_200, "iterations_per_second": 84, "events": []})
    assert "  ".join(expected) in screen.getvalue()


@pytest.mark.parametrize(
    ("rate", "expected"), [(128.4, "128 it/s"), (3.14, "3.1 it/s"), (0.1, "10.0 s/it")]
)
def test_slow_runs_have_a_pace_too(rate, expected):
    assert pace(rate) == expected
