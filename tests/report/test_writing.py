"""From a run's folder to its report: what is read, where it is written, what is refused."""

import json

import numpy as np
import pytest

from fenchel.config import RECORD
from fenchel.errors import InputError
from fenchel.report import writing
from fenchel.report.lines import Evaluation, Line
from fenchel.runs import RunFolder

pytestmark = pytest.mark.usefixtures("few_draws", "few_dots")


@pytest.fixture
def run(tmp_path, untrained, monkeypatch):
    """A run's folder with its data beside it; judging it has tests of its own."""
    evaluation = Evaluation(Line("verdict", "", "good", "No fault was found."), [], {})
    monkeypatch.setattr(writing, "evaluate", lambda *arguments: evaluation)
    x = np.random.default_rng(0).choice([0.0, 1.0], size=(50, 3))
    fit, samples = untrained(x, ("a", "b", "c"), potential__kind="ising", method="pcd")
    folder = RunFolder(tmp_path / "run")
    fit.save(folder.path)
    record = {"format": RECORD, "data": samples.fingerprint(), "config": fit.config.to_dict()}
    folder.config_file.write_text(json.dumps(record))
    folder.metrics_file.write_text(json.dumps({"iteration": 7, "loss": 1.0, "events": []}))
    np.savetxt(tmp_path / "table.csv", x, delimiter=",", header="a,b,c", comments="")
    return folder.path


def test_a_report_is_written_into_the_run_or_where_one_says(run, tmp_path):
    data = str(tmp_path / "table.csv")
    assert writing.write_report(run, data) == run / "report.html"
    other = writing.write_report(run, data, tmp_path / "other.html")
    texts = [path.read_text(encoding="utf-8") for path in (run / "report.html", other)]
    assert texts[0] == texts[1]
    assert "No fault was found." in texts[0]
    assert "the same data" in texts[0]
    assert f"fenchel report again {data}" in texts[0]


def test_what_cannot_be_reported_is_refused(run, tmp_path):
    with pytest.raises(InputError, match="give the file"):
        writing.write_report(run)
    with pytest.raises(InputError, match="does not exist"):
        writing.write_report(run, "moons", tmp_path / "no" / "report.html")
    with pytest.raises(InputError, match="3 columns and this data has 2"):
        writing.write_report(run, "moons")
    assert not (run / "report.html").exists()
