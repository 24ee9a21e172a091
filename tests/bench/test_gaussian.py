"""Recovering a Gaussian, in miniature."""

import json

import numpy as np
import pytest

from fenchel.bench import gaussian, together
from fenchel.bench.folder import BenchFolder
from fenchel.bench.presets import RECOVERY
from fenchel.bench.progress import Progressing
from fenchel.errors import InputError

SETTINGS = gaussian.Settings((1, 2), steps=6, rows=400)


@pytest.fixture(autouse=True)
def few_blocks(monkeypatch, compiled_once):
    monkeypatch.setattr(together, "EPOCHS", 3)
    short = RECOVERY["cd15"].config.with_values(estimator__k=1, training__batch=16)
    monkeypatch.setattr(gaussian, "RECOVERY", {"cd15": RECOVERY["cd15"]._replace(config=short)})


def run(path, methods, dims, settings=SETTINGS):
    return gaussian.run(methods, dims, settings, BenchFolder(path), Progressing())


def test_the_table_is_complete_and_nothing_is_done_twice(tmp_path, monkeypatch):
    run(tmp_path, ["mle", "cd15"], [2])
    results = run(tmp_path, ["mle"], [1])
    assert [(row["method"], row["dim"]) for row in results["rows"]] == [
        ("mle", 1),
        ("mle", 2),
        ("cd15", 2),
    ]
    assert all(len(row["runs"]) == 2 for row in results["rows"])
    text = (tmp_path / "gaussian.md").read_text()
    assert "| `cd15` | the data's | 2 |" in text
    assert len({line.count("|") for line in text.splitlines() if line.startswith("|")}) == 1
    assert (tmp_path / "gaussian.png").stat().st_size > 1_000
    monkeypatch.setattr(gaussian, "one", None)  # nothing is left to be done
    assert run(tmp_path, ["mle"], [2, 1]) == results
    assert json.loads((tmp_path / "gaussian.json").read_text()) == results


def test_the_closed_form_has_the_sampling_error():
    """Root mean squares over 2,000 dimensions: within a tenth but once in 1e9 times."""
    x = gaussian.samples(2_000, 1, 400)
    errors = gaussian.errors_of(x.mean(axis=0), x.std(axis=0))
    assert errors["mean_error"] == pytest.approx(400**-0.5, rel=0.1)
    assert errors["sd_error"] == pytest.approx(800**-0.5, rel=0.1)


def test_the_truth_has_no_error():
    errors = gaussian.errors_of(np.full(3, -1.0), np.full(3, 0.1))
    assert errors == {"mean_error": 0.0, "sd_error": 0.0}


def test_other_settings_are_refused(tmp_path):
    run(tmp_path, ["mle"], [1])
    with pytest.raises(InputError, match="was begun with rows = 400, not 500"):
        run(tmp_path, ["mle"], [1], gaussian.Settings((1, 2), steps=6, rows=500))
