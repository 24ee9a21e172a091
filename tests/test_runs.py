"""A run's folder: what lies in it, what it refuses, and that a stopped run is as if never stopped.

All runs here are the same twelve iterations in six blocks, with a checkpoint every four, so that
a run stopped at the eighth has metrics up to the sixth and goes on from the fourth.
"""

import json
import os
import shutil
import signal
import subprocess
import sys
from functools import cache
from pathlib import Path

import jax
import numpy as np
import pytest

import fenchel as fx
from fenchel.arrays import to_table
from fenchel.build import build
from fenchel.config import Config, DynamicsConfig, PotentialConfig, StartConfig, TrainingConfig
from fenchel.errors import InputError
from fenchel.runs import RunFolder
from fenchel.train import checkpoint

TINY = Config(
    potential=PotentialConfig(width=8, depth=1),
    start=StartConfig(kind="planar", layers=1, width=8, depth=1, capacity=2_048),
    dynamics=DynamicsConfig(steps=1),
    training=TrainingConfig(steps=12, batch=8, sampler_steps=1, block=2, checkpoint_every=4),
)
X = np.random.default_rng(0).normal(size=(60, 2)) * [1.0, 3.0] + [5.0, 0.0]


pytestmark = pytest.mark.usefixtures("compiled_once")


class StopAt:
    """A watcher that does something at an iteration, before its row is written."""

    def __init__(self, iteration: int, act):
        self.iteration, self.act = iteration, act

    def __enter__(self):
        return self

    def __exit__(self, *_):
        return None

    def begin(self, steps, done):
        pass

    def block(self, row):
        if row["iteration"] == self.iteration:
            self.act()


def fit(folder: Path, x=X, config=TINY, **values) -> fx.Fit:
    return fx.fit(x, config=config, out=folder, **{"progress": False, **values})


def contents(folder: Path) -> dict[str, bytes]:
    return {
        str(path.relative_to(folder)): path.read_bytes()
        for path in sorted(folder.rglob("*"))
        if path.is_file()
    }


def rows(folder: Path) -> list[dict]:
    """The metrics, but for how fast they came about."""
    lines = (folder / "metrics.jsonl").read_text().splitlines()
    return [{k: v for k, v in json.loads(li).items() if "per_second" not in k} for li in lines]


@cache
def blank(config=TINY):
    """A state before any training, to read others into."""
    parts = build(config, 2)
    return parts.learner.init(*parts[:2], np.zeros((1, 2), np.float32), jax.random.key(0))


def newest(folder: Path, config=TINY) -> dict[str, np.ndarray]:
    """The arrays of the newest checkpoint."""
    at = checkpoint.latest(folder / "checkpoints")
    return to_table(checkpoint.restore(folder / "checkpoints", at, blank(config)))


def assert_equal_runs(one: Path, two: Path, config=TINY) -> None:
    """In metrics, in the model to the byte, and in all that a checkpoint holds."""
    assert rows(one) == rows(two)
    for name in ("model.safetensors", "model.json", "config.json"):
        assert (one / name).read_bytes() == (two / name).read_bytes(), name
    ours, theirs = newest(one, config), newest(two, config)
    assert ours.keys() == theirs.keys()
    for name in ours:
        assert ours[name].tobytes() == theirs[name].tobytes(), name


def refused(*arguments, **values) -> str:
    with pytest.raises(InputError) as caught:
        fit(*arguments, **values)
    assert "\n" not in str(caught.value)
    return str(caught.value)


@pytest.fixture(scope="module")
def whole(tmp_path_factory) -> Path:
    """A run that nobody disturbed."""
    folder = tmp_path_factory.mktemp("runs") / "whole"
    fit(folder)
    return folder


@pytest.fixture(scope="module")
def interrupted(tmp_path_factory) -> Path:
    """One that was stopped by Ctrl-C at its eighth iteration."""
    folder = tmp_path_factory.mktemp("runs") / "interrupted"
    # A process that was started in the background may have been told to ignore the signal.
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    with pytest.raises(KeyboardInterrupt):
        fit(folder, progress=StopAt(8, lambda: signal.raise_signal(signal.SIGINT)))
    signal.signal(signal.SIGINT, before)
    return folder


@pytest.fixture
def stopped(interrupted, tmp_path) -> Path:
    """A copy of the stopped run, to do things to."""
    return Path(shutil.copytree(interrupted, tmp_path / "stopped"))


def test_what_lies_in_the_folder(whole):
    names = {path.name for path in whole.iterdir()}
    assert names == {
        "config.json",
        "metrics.jsonl",
        "checkpoints",
        "model.json",
        "model.safetensors",
    }
    record = json.loads((whole / "config.json").read_text())
    assert record["format"] == "fenchel-run"
    assert record["version"] == fx.__version__
    assert record["packages"]["jax"] == jax.__version__
    assert record["device"].startswith(jax.default_backend())
    assert record["data"]["rows"] == 60
    assert Config.from_dict(record["config"]) == TINY
    # Only the newest checkpoints are kept.
    assert sorted(int(p.name) for p in (whole / "checkpoints").iterdir()) == [8, 12]
    assert [row["iteration"] for row in rows(whole)] == [2, 4, 6, 8, 10, 12]


def test_ctrl_c_loses_at_most_a_checkpoint_interval(interrupted):
    run = RunFolder(interrupted)
    assert [row["iteration"] for row in run.read_metrics()] == [2, 4, 6]
    assert checkpoint.latest(run.checkpoints) == 4
    assert not (interrupted / "model.json").exists()


def test_a_resumed_run_is_the_run_that_was_never_stopped(whole, stopped):
    """The folder knows the settings: they need not be repeated."""
    resumed = fx.fit(X, out=stopped, resume=True, progress=False)
    assert_equal_runs(whole, stopped)
    loaded = fx.load(whole)
    np.testing.assert_array_equal(resumed.potential(X), loaded.potential(X))
    np.testing.assert_array_equal(resumed.sample(7), loaded.sample(7))


def test_a_resumed_run_is_not_just_the_same_whatever_happens(whole, stopped):
    """Negative control: one number changed in the checkpoint, and the runs are not equal."""
    folder = stopped / "checkpoints"
    state = checkpoint.restore(folder, 4, blank())
    guard = state.potential_guard
    checkpoint.save(folder, state._replace(potential_guard=guard._replace(rate=guard.rate / 2)))
    fit(stopped, resume=True)
    with pytest.raises(AssertionError):
        assert_equal_runs(whole, stopped)


def test_stopped_twice_and_by_an_error(whole, stopped):
    def fail():
        raise RuntimeError("no more")

    with pytest.raises(RuntimeError, match="no more"):
        fit(stopped, resume=True, progress=StopAt(10, fail))
    assert checkpoint.latest(stopped / "checkpoints") == 8
    fit(stopped, resume=True)
    assert_equal_runs(whole, stopped)


def test_what_a_kill_leaves_behind_is_no_harm(whole, stopped):
    """Half a row of metrics, half a checkpoint, half a file."""
    with (stopped / "metrics.jsonl").open("a") as file:
        file.write('{"iteration": 8, "log_lik')
    (stopped / "checkpoints" / "8.orbax-checkpoint-tmp-12").mkdir()
    (stopped / "model.json.partial").write_text("{")
    fit(stopped, resume=True)
    (stopped / "model.json.partial").unlink(missing_ok=True)
    assert_equal_runs(whole, stopped)


def test_with_what_a_run_was_gone_on_is_in_its_record(stopped, monkeypatch):
    """Where it is not what it was begun with; each time that it changes."""
    before = json.loads((stopped / "config.json").read_text())
    assert "sittings" not in before
    for device in ("gpu: another", "gpu: a third"):  # the second has nothing left to train
        monkeypatch.setattr("fenchel.runs.device", lambda device=device: device)
        fit(stopped, resume=True)
    record = json.loads((stopped / "config.json").read_text())
    (sitting,) = record.pop("sittings")
    assert record == before
    assert sitting == {**sitting, "device": "gpu: another", "packages": before["packages"]}


def test_a_run_from_before_there_was_a_setting_goes_on_as_it_was(stopped):
    """Without scouts, of which its record says nothing; and what is damaged is said to be."""
    path = stopped / "config.json"
    record = json.loads(path.read_text())
    del record["config"]["training"]["scouts"]
    path.write_text(json.dumps(record))
    fx.fit(X, out=stopped, resume=True, progress=False)
    again = Config.from_file(path)
    assert again.training.scouts == 0.0
    record["config"]["training"] = 7
    path.write_text(json.dumps(record))
    with pytest.raises(InputError, match="training must be a section"):
        fx.fit(X, out=stopped, resume=True, progress=False)


def test_a_finished_run_resumed_only_writes_its_model_again(whole, tmp_path):
    copy = Path(shutil.copytree(whole, tmp_path / "copy"))
    (copy / "model.safetensors").unlink()
    fit(copy, resume=True)
    assert_equal_runs(whole, copy)


def test_a_classical_run_is_resumed_with_its_chains(tmp_path):
    """They never restart: a run that began them anew would end elsewhere."""
    spins = np.where(X.mean(axis=0) < X, 1, 0)
    config = TINY.with_values(
        method="pcd",
        potential__kind="ising",
        estimator__k=1,
        estimator__chains=8,
        training__steps=4,
        training__checkpoint_every=2,
    )
    whole, stopped = tmp_path / "whole", tmp_path / "stopped"
    fit(whole, spins, config)
    shutil.copytree(whole, stopped)
    shutil.rmtree(stopped / "checkpoints" / "4")  # as if it had been stopped in its second half
    fit(stopped, spins, config, resume=True)
    assert_equal_runs(whole, stopped, config)


KILLED = """
import os, signal, sys
sys.path.insert(0, sys.argv[1])
from test_runs import StopAt, fit
from pathlib import Path
fit(Path(sys.argv[2]), progress=StopAt(8, lambda: os.kill(os.getpid(), signal.SIGKILL)))
"""


def test_a_killed_process_resumed_gives_the_same_model(whole, tmp_path, compiled_once):
    environment = {
        **os.environ,
        "JAX_COMPILATION_CACHE_DIR": str(compiled_once),
        "JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS": "0.3",
        "JAX_NUMPY_RANK_PROMOTION": "raise",
    }
    here, folder = str(Path(__file__).parent), tmp_path / "killed"
    done = subprocess.run(
        [sys.executable, "-c", KILLED, here, str(folder)],
        env=environment,
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert done.returncode == -signal.SIGKILL, done.stderr
    assert checkpoint.latest(folder / "checkpoints") == 4
    assert not (folder / "model.safetensors").exists()
    fit(folder, resume=True)
    assert_equal_runs(whole, folder)


def test_nothing_is_written_over_a_run(whole):
    before = contents(whole)
    assert "holds another run: choose another folder, or continue that run" in refused(whole)
    assert contents(whole) == before


def test_nothing_is_written_into_a_folder_with_something_in_it(tmp_path):
    (tmp_path / "thesis.tex").write_text("mine")
    assert "is not empty" in refused(tmp_path)
    assert contents(tmp_path) == {"thesis.tex": b"mine"}
    assert "is a file" in refused(tmp_path / "thesis.tex")
    assert contents(tmp_path) == {"thesis.tex": b"mine"}


def test_an_empty_folder_will_do(tmp_path):
    folder = RunFolder(tmp_path)
    folder.begin(TINY, fx.data.load_samples(X), blank())
    assert checkpoint.latest(folder.checkpoints) == 0
    assert folder.read_metrics() == []


def test_a_folder_that_may_not_be_written_to(tmp_path, stopped, monkeypatch):
    monkeypatch.setattr("os.access", lambda *_: False)  # root may write anywhere
    (tmp_path / "empty").mkdir()
    assert "cannot be written to" in refused(tmp_path / "empty")
    assert contents(tmp_path / "empty") == {}
    before = contents(stopped)
    assert "cannot be written to" in refused(stopped, resume=True)
    assert contents(stopped) == before


def test_too_little_room_writes_nothing(tmp_path, stopped, monkeypatch):
    monkeypatch.setattr("shutil.disk_usage", lambda _: type("Usage", (), {"free": 5 * 2**20})())
    message = refused(tmp_path / "new" / "run")
    assert "5 MiB free" in message
    assert "make room, or choose another folder" in message
    assert not (tmp_path / "new").exists()
    before = contents(stopped)
    assert "5 MiB free" in refused(stopped, resume=True)
    assert contents(stopped) == before


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        ({"config": TINY.with_values(training__batch=9)}, "training.batch = 8, not 9"),
        ({"seed": 4}, "seed = 0, not 4"),
        ({"steps": 24}, "training.steps = 12, not 24"),
        ({"x": X[:-1]}, "fitted to other data"),
        ({"x": X + 1e-9}, "fitted to other data"),
        ({"x": X[::-1]}, "fitted to other data"),
    ],
)
def test_resuming_something_else_is_refused(stopped, values, expected):
    before = contents(stopped)
    message = refused(stopped, resume=True, **values)
    assert expected in message
    assert "begin a new run" in message
    assert contents(stopped) == before


def test_data_are_known_by_what_they_are_and_not_by_their_name(stopped, tmp_path):
    np.savetxt(tmp_path / "renamed.csv", X, delimiter=",", fmt="%.17g")
    folder = RunFolder(stopped)
    assert folder.was_fitted_to(fx.data.load_samples(tmp_path / "renamed.csv"))
    assert not folder.was_fitted_to(fx.data.load_samples(X[::-1]))


def test_a_folder_of_somebody_elses_is_no_run(tmp_path):
    (tmp_path / "config.json").write_text('{"a": 1}')
    assert "is not empty: choose another folder" in refused(tmp_path)


def test_resuming_what_is_no_run(tmp_path):
    assert "is not a run of this library" in refused(tmp_path / "nowhere", resume=True)
    assert not (tmp_path / "nowhere").exists()


@pytest.mark.parametrize(
    "damage",
    [
        lambda text: text[:40],
        lambda text: "[]",
        lambda text: text.replace("fenchel-run", "other"),
        lambda text: text.replace('"data"', '"dada"'),
        lambda text: text.replace('"config"', '"konfig"'),
        lambda text: text.replace('"packages": {', '"packages": [], "others": {'),
    ],
)
def test_a_damaged_record(stopped, damage):
    path = stopped / "config.json"
    path.write_text(damage(path.read_text()))
    assert "damaged, or not of this library" in refused(stopped, resume=True)


def test_a_run_without_checkpoints(stopped):
    shutil.rmtree(stopped / "checkpoints")
    assert "has no checkpoint to resume from" in refused(stopped, resume=True)


def test_lost_metrics_do_not_lose_the_run(whole, stopped):
    (stopped / "metrics.jsonl").unlink()
    fit(stopped, resume=True)
    assert rows(stopped) == rows(whole)[2:]


def damage_newest(folder: Path) -> Path:
    """The newest checkpoint with every file of it cut short."""
    path = folder / "checkpoints" / str(checkpoint.latest(folder / "checkpoints"))
    for file in path.rglob("*"):
        if file.is_file():
            file.write_bytes(file.read_bytes()[: file.stat().st_size // 2])
    return path


def test_a_damaged_checkpoint_is_reported_and_the_one_before_it_will_do(whole, stopped):
    path = damage_newest(stopped)
    message = refused(stopped, resume=True)
    assert f"The checkpoint {path} cannot be read" in message
    assert "remove that folder to go on from the one before it" in message
    shutil.rmtree(path)
    fit(stopped, resume=True)
    assert_equal_runs(whole, stopped)


def test_a_checkpoint_of_another_model(stopped):
    shutil.rmtree(stopped / "checkpoints")
    other = blank()._replace(potential=blank().averages)
    checkpoint.save(stopped / "checkpoints", other)
    assert "saved from another model" in refused(stopped, resume=True)
