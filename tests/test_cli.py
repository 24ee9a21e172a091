"""The command line as its users meet it: what works, and what each mistake is answered with."""

import io
import json
import shlex
import shutil
import sys
from contextlib import redirect_stdout

import numpy as np
import pytest

from fenchel import cli
from fenchel.cli.fit import _interrupted
from fenchel.data import load_samples
from fenchel.evidence import Annealing
from fenchel.report.summary import summarise
from fenchel.saving import load
from fenchel.seeds import SEEDS

pytestmark = pytest.mark.usefixtures("compiled_once", "few_draws")

TINY = """
[potential]
kind = "gaussian"
[start]
kind = "planar"
layers = 1
width = 8
depth = 1
[dynamics]
steps = 1
[training]
steps = 20
batch = 16
sampler_steps = 1
block = 10
checkpoint_every = 10
"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("cli")


@pytest.fixture(scope="module")
def tiny(folder):
    path = folder / "tiny.toml"
    path.write_text(TINY)
    return path


def call(monkeypatch, *arguments):
    """The exit code of `fenchel ARGUMENTS`."""
    monkeypatch.setattr(sys, "argv", ["fenchel", *map(str, arguments)])
    with pytest.raises(SystemExit) as stop:
        cli.main()
    return stop.value.code or 0


@pytest.fixture(scope="module")
def run(folder, tiny, compiled_once, few_draws):
    """One small run of three columns, shared by the tests that only read it."""
    table = folder / "data.csv"
    rows = np.random.default_rng(0).normal(size=(200, 3))
    np.savetxt(table, rows, delimiter=",", header="a,b,c", comments="")
    with pytest.MonkeyPatch.context() as patch:
        assert call(patch, "fit", table, "--out", folder / "run", "--config", tiny) == 0
    return folder / "run"


def test_a_run_holds_what_it_should(run):
    names = {path.name for path in run.iterdir()}
    expected = {"config.json", "metrics.jsonl", "checkpoints", "model.json", "model.safetensors"}
    assert expected | {"figures"} == names
    figures = {path.name for path in (run / "figures").iterdir()}
    assert figures == {"samples.png", "density.png", "training.png"}
    rows = [json.loads(line) for line in (run / "metrics.jsonl").read_text().splitlines()]
    assert [row["iteration"] for row in rows] == [10, 20]
    assert all(row["events"] == [] for row in rows)


@pytest.fixture(scope="module")
def flow(folder, tiny, compiled_once, few_draws):
    """A run of a toy by a flow, and what it printed where a machine reads."""
    # The largest seed: those that are made of it, for fresh points and draws, are seeds too.
    fit = ("fit", "moons", "--out", folder / "flow", "--config", tiny, "--seed", SEEDS - 1)
    with pytest.MonkeyPatch.context() as patch, redirect_stdout(io.StringIO()) as printed:
        assert call(patch, *fit, "--dynamics", "deterministic", "--json") == 0
    return folder / "flow", json.loads(printed.getvalue())


def test_a_flow_by_name_is_fitted_resumed_and_loaded(monkeypatch, tmp_path, flow):
    whole, out = flow[0], tmp_path / "r"
    shutil.copytree(whole, out)
    shutil.rmtree(out / "checkpoints" / "20")  # as if it had been stopped in its second half
    (out / "model.safetensors").unlink()
    assert call(monkeypatch, "fit", "moons", "--out", out, "--resume") == 0
    assert (out / "model.safetensors").read_bytes() == (whole / "model.safetensors").read_bytes()
    assert call(monkeypatch, "sample", out, "-n", 5, "--out", tmp_path / "s.npy") == 0
    assert np.isfinite(np.load(tmp_path / "s.npy")).all()


def test_a_run_is_evaluated(monkeypatch, capsys, run, folder):
    monkeypatch.setattr("fenchel.report.evaluation.MOST_POINTS", 100)
    monkeypatch.setattr("fenchel.report.evaluation.CHAIN_DRAWS", 10)
    monkeypatch.setattr("fenchel.report.evaluation.SHORT", Annealing(64, 2, 1))
    assert call(monkeypatch, "evaluate", run, folder / "data.csv", "--json") == 0
    found = json.loads(capsys.readouterr().out)
    assert found["verdict"]["value"] == found["values"]["training"]
    names = [line["name"] for line in found["lines"]]
    assert "mean log likelihood, training data" in names
    assert "MMD, raw samples against data" in names
    assert call(monkeypatch, "evaluate", run) == 2
    assert "give the file, as in fenchel evaluate" in capsys.readouterr().err.replace("\n", " ")


def test_fit_prints_json_where_a_machine_reads(flow):
    folder, printed = flow
    assert {"log_partition", "ess", "mmd_corrected_z", "true_log_likelihood"} <= printed.keys()
    assert json.loads((folder / "config.json").read_text())["config"]["seed"] == SEEDS - 1


def test_data_of_a_few_values_are_noted(run, folder):
    fitted, coins = load(run), np.random.default_rng(5).integers(2, size=(50, 3))
    assert dict(summarise(fitted, load_samples(coins)).rows)["note"].startswith("the data have 2")
    few = np.random.default_rng(6).normal(size=(3, 3))  # of so few rows all values are few
    for others in (folder / "data.csv", few):
        assert "note" not in dict(summarise(fitted, load_samples(others)).rows)


@pytest.mark.parametrize("ending", [".npy", ".npz", ".csv"])
def test_samples_and_scores_round_trip_through_files(monkeypatch, tmp_path, run, ending):
    samples, scores = tmp_path / f"samples{ending}", tmp_path / f"scores{ending}"
    assert call(monkeypatch, "sample", run, "-n", 50, "--out", samples) == 0
    assert call(monkeypatch, "score", run, samples, "--out", scores) == 0
    read = {
        ".npy": np.load,
        ".npz": lambda path: np.load(path)["x"],
        ".csv": lambda path: np.loadtxt(path, delimiter=",", skiprows=1),
    }[ending]
    assert read(samples).shape == (50, 3)
    assert np.isfinite(read(scores)).all()
    assert read(scores).size == 50


def test_columns_are_found_by_their_names(monkeypatch, capsys, tmp_path, run, folder):
    rows = np.loadtxt(folder / "data.csv", delimiter=",", skiprows=1)
    turned = tmp_path / "turned.csv"
    np.savetxt(turned, rows[:, ::-1], delimiter=",", header="c,b,a", comments="")
    scores = []
    for table in (folder / "data.csv", turned):
        assert call(monkeypatch, "score", run, table, "--json") == 0
        scores.append(json.loads(capsys.readouterr().out)["log_density"])
    np.testing.assert_allclose(*scores, rtol=1e-6)


def test_samples_are_printed_without_a_file(monkeypatch, capsys, run):
    assert call(monkeypatch, "sample", run, "-n", 3, "--json") == 0
    assert np.shape(json.loads(capsys.readouterr().out)["samples"]) == (3, 3)
    assert call(monkeypatch, "sample", run, "-n", 3, "--raw") == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == "a,b,c"
    assert len(lines) == 4


def test_a_single_row_can_be_scored(monkeypatch, capsys, tmp_path, run):
    np.save(tmp_path / "one.npy", np.zeros((1, 3)))
    code = call(
        monkeypatch, "score", run, tmp_path / "one.npy", "--out", tmp_path / "s.npy", "--json"
    )
    assert code == 0
    assert json.loads(capsys.readouterr().out)["rows"] == 1


def test_resume_finishes_what_is_there(monkeypatch, tmp_path, run, folder):
    copy = tmp_path / "copy"
    shutil.copytree(run, copy)
    shutil.rmtree(copy / "checkpoints" / "20")
    (copy / "model.safetensors").unlink()
    assert call(monkeypatch, "fit", folder / "data.csv", "--out", copy, "--resume") == 0
    assert (copy / "model.safetensors").read_bytes() == (run / "model.safetensors").read_bytes()


def test_a_runs_own_record_configures_another(monkeypatch, tmp_path, run, folder):
    record = run / "config.json"
    again = tmp_path / "again"
    assert call(monkeypatch, "fit", folder / "data.csv", "--out", again, "--config", record) == 0
    assert (again / "model.safetensors").read_bytes() == (run / "model.safetensors").read_bytes()
    assert (again / "config.json").read_bytes() == record.read_bytes()


def test_datasets_and_version(monkeypatch, capsys):
    assert call(monkeypatch, "datasets", "--json") == 0
    assert len(json.loads(capsys.readouterr().out)) == 16
    assert call(monkeypatch, "datasets") == 0
    assert "swissroll" in capsys.readouterr().out
    assert call(monkeypatch, "--version") == 0
    assert capsys.readouterr().out.startswith("fenchel ")


def refused(monkeypatch, capsys, *arguments):
    """The message of a refused command, which must be one sentence or two and no traceback."""
    assert call(monkeypatch, *arguments) == 2
    message = capsys.readouterr().err
    assert message.startswith("Error: ")
    assert "Traceback" not in message
    assert len(message.strip().splitlines()) == 1
    return message


BAD_TABLES = {
    "nan": ("a,b\n1,2\n3,nan\n5,6\n", "row 2 of column 'b'"),
    "infinite": ("a,b\n1,2\ninf,1\n5,6\n", "row 2 of column 'a'"),
    "empty": ("a,b\n", "empty"),
    "one row": ("a,b\n1,2\n", "single row"),
    "constant": ("a,b\n1,2\n1,3\n1,4\n", "'a' is constant"),
    "words": ("a,b\n1,x\n2,y\n3,z\n", "'b'"),
    "decimal commas": ("a;b\n1,5;2,5\n3,5;1,5\n", "commas within numbers, as in '1,5'"),
    "spaces": ("1 2\n3 4\n5 7\n", "several numbers in one entry, '3 4'"),
    "one name twice": ("a,b,a\n1,2,3\n2,3,1\n3,1,2\n", "two columns called 'a'"),
    "too wide": ("a\n1.7e308\n-1.7e308\n0\n", "from -1.7e+308 to 1.7e+308"),
}


@pytest.mark.parametrize(("text", "reason"), BAD_TABLES.values(), ids=BAD_TABLES.keys())
def test_bad_tables_are_refused_and_nothing_is_written(monkeypatch, capsys, tmp_path, text, reason):
    table = tmp_path / "bad.csv"
    table.write_text(text)
    message = refused(monkeypatch, capsys, "fit", table, "--out", tmp_path / "run")
    assert reason in message
    assert not (tmp_path / "run").exists()


BAD_CALLS = {
    "unknown data": (["mons"], "did you mean 'moons'"),
    "missing file": (["no.csv"], "does not exist"),
    "method": (["moons", "--method", "add"], "did you mean ade"),
    "dynamics": (["moons", "--dynamics", "hmcc"], "did you mean hmc"),
    "stack": (["moons", "--dynamics", "hmc+langevn"], "did you mean langevin"),
    "start": (["moons", "--start", "splin"], "did you mean spline"),
    "potential": (["moons", "--potential", "mpl"], "did you mean mlp"),
    "steps": (["moons", "--steps", "0"], "training.steps is 0"),
    "config": (["moons", "--config", "no.toml"], "no.toml"),
    "seed": (["moons", "--seed", "-1"], "from 0 to"),
    "another case": (["moons", "--method", "CD"], "did you mean cd"),
    "huge seed": (["moons", "--seed", "9" * 20], "from 0 to"),
    "flips of a table": (["moons", "--no-flips"], "flips = False is for pictures"),
    "dequantised table": (["moons", "--dequantise", "1"], "dequantise = 1.0 is for pictures"),
    "resume nothing": (["moons", "--resume"], "not a run"),
}


@pytest.mark.parametrize(("arguments", "reason"), BAD_CALLS.values(), ids=BAD_CALLS.keys())
def test_bad_calls_are_refused_and_nothing_is_written(
    monkeypatch, capsys, tmp_path, arguments, reason
):
    message = refused(monkeypatch, capsys, "fit", *arguments, "--out", tmp_path / "run")
    assert reason in message
    assert not (tmp_path / "run").exists()


def test_files_that_are_not_what_they_say(monkeypatch, capsys, tmp_path):
    for ending in (".npy", ".npz", ".parquet"):
        path = tmp_path / f"text{ending}"
        path.write_text("a,b\n1,2\n")
        message = refused(monkeypatch, capsys, "fit", path, "--out", tmp_path / "run")
        assert "damaged or not" in message
    assert not (tmp_path / "run").exists()


def test_an_occupied_folder_is_left_alone(monkeypatch, capsys, tmp_path, run):
    before = sorted(path.stat().st_mtime_ns for path in run.rglob("*"))
    assert "another run" in refused(monkeypatch, capsys, "fit", "moons", "--out", run)
    assert sorted(path.stat().st_mtime_ns for path in run.rglob("*")) == before
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "letter.txt").write_text("dear")
    message = refused(monkeypatch, capsys, "fit", "moons", "--out", tmp_path / "mine")
    assert "not empty" in message


def test_wrong_dimensions_at_score(monkeypatch, capsys, tmp_path, run):
    out = tmp_path / "s.npy"
    message = refused(monkeypatch, capsys, "score", run, "moons", "--out", out)
    assert "fitted to 3 columns and this data has 2" in message
    assert not out.exists()


def test_columns_are_told_by_their_names(monkeypatch, capsys, tmp_path, run):
    """In another order they are put in order; others, or one twice, are refused."""
    names = json.loads((run / "model.json").read_text())["columns"]
    rows = np.random.default_rng(3).normal(size=(4, 3))
    scores = {}
    for name, order in (("as fitted", [0, 1, 2]), ("turned", [2, 0, 1]), ("unnamed", None)):
        table, out = tmp_path / "table.csv", tmp_path / "scores.npy"
        header = "" if order is None else ",".join(names[i] for i in order)
        columns = rows if order is None else rows[:, order]
        np.savetxt(table, columns, delimiter=",", header=header, comments="")
        assert call(monkeypatch, "score", run, table, "--out", out) == 0
        scores[name] = np.load(out)
    np.testing.assert_array_equal(scores["as fitted"], scores["turned"])
    np.testing.assert_array_equal(scores["as fitted"], scores["unnamed"])
    for header, reason in (("age,b,c", "'age', 'b', 'c'"), ("a,b,a", "two columns called 'a'")):
        np.savetxt(table, rows, delimiter=",", header=header, comments="")
        assert reason in refused(monkeypatch, capsys, "score", run, table)


def test_rows_far_out_have_no_density_and_json_says_so(monkeypatch, capsys, tmp_path, run):
    np.save(tmp_path / "far.npy", np.array([[1e300, 0.0, 0.0], [0.0, 0.0, 0.0]]))
    out = tmp_path / "scores.npy"
    assert call(monkeypatch, "score", run, tmp_path / "far.npy", "--out", out) == 0
    assert np.load(out)[0, 0] == -np.inf
    assert np.isfinite(np.load(out)[1, 0])
    capsys.readouterr()
    assert call(monkeypatch, "score", run, tmp_path / "far.npy", "--json") == 0
    assert json.loads(capsys.readouterr().out)["log_density"][0] is None


def test_endings_in_capitals_will_do(monkeypatch, tmp_path, run):
    assert call(monkeypatch, "sample", run, "-n", 5, "--out", tmp_path / "S.NPY") == 0
    assert np.load(tmp_path / "S.NPY").shape == (5, 3)


def test_what_cannot_be_written_is_said_in_a_sentence(monkeypatch, capsys, tmp_path, run):
    def full(*_):
        raise OSError(28, "No space left on device", "s.npy")

    monkeypatch.setattr("numpy.save", full)
    message = refused(monkeypatch, capsys, "sample", run, "--out", tmp_path / "s.npy")
    assert "No space left on device" in message


def test_the_hint_after_an_interruption_can_be_pasted(tmp_path):
    folder = tmp_path / "my runs"
    assert "nothing was written" in _interrupted("a b.csv", folder)
    folder.mkdir()
    (folder / "config.json").touch()
    command = _interrupted("a b.csv", folder).split("with: ")[1]
    expected = ["fenchel", "fit", "a b.csv", "--out", str(folder), "--resume"]
    assert shlex.split(command) == expected


def test_a_report_of_no_run(monkeypatch, capsys, tmp_path):
    assert "is not a run" in refused(monkeypatch, capsys, "report", tmp_path / "nowhere")


def test_damaged_and_foreign_folders(monkeypatch, capsys, tmp_path, run):
    assert "no model" in refused(monkeypatch, capsys, "sample", tmp_path)
    copy = tmp_path / "copy"
    shutil.copytree(run, copy)
    (copy / "model.safetensors").write_bytes(b"not arrays")
    assert "damaged" in refused(monkeypatch, capsys, "sample", copy)
    (copy / "model.json").write_text("{}")
    assert "damaged" in refused(monkeypatch, capsys, "sample", copy)


def test_results_that_cannot_be_written_are_refused_first(monkeypatch, capsys, tmp_path, run):
    message = refused(monkeypatch, capsys, "sample", run, "--out", tmp_path / "s.txt")
    assert "must end in" in message
    message = refused(monkeypatch, capsys, "sample", run, "--out", tmp_path / "no" / "s.npy")
    assert "does not exist" in message


def test_too_little_disk(monkeypatch, capsys, tmp_path, tiny):
    usage = shutil.disk_usage(tmp_path)
    monkeypatch.setattr(shutil, "disk_usage", lambda _: usage._replace(free=1000))
    message = refused(
        monkeypatch, capsys, "fit", "moons", "--out", tmp_path / "run", "--config", tiny
    )
    assert "make room" in message
    assert not (tmp_path / "run").exists()
