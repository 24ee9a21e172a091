"""A model on disk: the same bits come back, and anything else is refused in a sentence."""

import hashlib
import json
import pickletools
import re

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from flowjax.distributions import Normal
from safetensors.numpy import load_file, save_file

import fenchel as fx
from fenchel.build import build
from fenchel.config import Config, PotentialConfig, StartConfig
from fenchel.data import Standardiser
from fenchel.dynamics import CentredNormal, Leapfrog
from fenchel.errors import InputError
from fenchel.parameters import positive
from fenchel.result import Fit
from fenchel.samplers import Embedding
from fenchel.starts import Flow

STANDARDISER = Standardiser(np.array([1 / 3, -1e6]), np.array([np.pi * 1e-6, 1e6 / 7]))


def made(start: str = "planar", seed: int = 0, **values) -> Fit:
    """A model as `fit` makes them, but for the training."""
    config = Config(
        seed=seed,
        potential=PotentialConfig(width=4, depth=1),
        start=StartConfig(kind=start, layers=1, width=4, depth=1, capacity=2_048),
    ).with_values(dynamics__steps=1, **values)
    parts = build(config, 2)
    points = jnp.asarray(np.random.default_rng(0).normal(size=(9, 2)), jnp.float32)
    points = points[:1] * 0 if parts.sampler.exact else points
    state = parts.sampler.init(points, jax.random.key(1))
    return Fit(parts.potential, parts.sampler, state, points, STANDARDISER, config, ("a", "b"), "t")


class Bowl(eqx.Module):
    """Somebody's own potential."""

    depth: jax.Array

    def __call__(self, x):
        return -self.depth * jnp.sum(x**2)


def own_fit() -> Fit:
    start = Flow(Normal(jnp.zeros(2), jnp.ones(2)), CentredNormal(2))
    names = {f"{part}__kind": "custom" for part in ("potential", "start", "dynamics")}
    return Fit(
        Bowl(jnp.array(0.7, jnp.float32)),
        Embedding(start, Leapfrog(positive(0.3))),
        None,
        jnp.zeros((1, 2)),
        STANDARDISER,
        Config().with_values(**names),
        ("a", "b"),
        "own",
    )


@pytest.fixture(scope="module")
def fit() -> Fit:
    return made()


@pytest.fixture
def folder(fit, tmp_path):
    fit.save(tmp_path / "model")
    return tmp_path / "model"


def assert_same(one: Fit, two: Fit) -> None:
    rows = STANDARDISER.inverse(np.random.default_rng(2).normal(size=(6, 2)))
    np.testing.assert_array_equal(one.potential(rows), two.potential(rows))
    np.testing.assert_array_equal(one.sample(16, seed=3), two.sample(16, seed=3))
    if one.sampler.exact:
        np.testing.assert_array_equal(one.log_density(rows), two.log_density(rows))


def refused(path, **parts) -> str:
    with pytest.raises(InputError) as caught:
        fx.load(path, **parts)
    assert "\n" not in str(caught.value)
    return str(caught.value)


@pytest.mark.parametrize("start", ["planar", "replay", "empirical"])
def test_the_same_bits_come_back(start, tmp_path):
    fit = made(start, seed=5)
    fit.save(tmp_path)
    loaded = fx.load(tmp_path)
    assert_same(fit, loaded)
    assert (loaded.config, loaded.columns, loaded.name) == (fit.config, fit.columns, fit.name)


def test_the_folder_holds_two_files_of_data(folder):
    assert sorted(path.name for path in folder.iterdir()) == ["model.json", "model.safetensors"]
    description = json.loads((folder / "model.json").read_text())
    assert description["format"] == "fenchel-model"
    assert description["version"] == fx.__version__
    assert description["columns"] == ["a", "b"]


def test_nothing_written_is_a_pickle(folder):
    for path in folder.iterdir():
        data = path.read_bytes()
        with pytest.raises(ValueError, match=r"opcode|exhausted|STOP|newline"):
            list(pickletools.genops(data))
    # The arrays' file is a length, a JSON header of that length, and numbers.
    data = (folder / "model.safetensors").read_bytes()
    length = int.from_bytes(data[:8], "little")
    header = json.loads(data[8 : 8 + length])
    sizes = [entry["data_offsets"] for name, entry in header.items() if name != "__metadata__"]
    assert max(end for _, end in sizes) == len(data) - 8 - length
    assert {entry["dtype"] for entry in header.values()} <= {"F32", "I32", "U32"}


def test_loading_never_unpickles(folder, monkeypatch):
    import pickle

    def never(*_, **__):
        raise AssertionError("something was unpickled")

    for name in ("load", "loads", "Unpickler"):
        monkeypatch.setattr(pickle, name, never)
    fx.load(folder)
    (folder / "model.safetensors").write_bytes(b"\x80\x04]\x94.")
    refused(folder)


def test_own_parts_must_be_passed_again(tmp_path):
    fit = own_fit()
    fit.save(tmp_path)
    message = refused(tmp_path)
    assert "was an object of your own" in message
    assert "potential=" in message
    assert "`start=`" in refused(tmp_path, potential=Bowl(jnp.zeros(())))
    blank = Flow(Normal(jnp.ones(2), jnp.full(2, 3.0)), CentredNormal(2))
    loaded = fx.load(
        tmp_path,
        potential=Bowl(jnp.zeros((), jnp.float32)),
        start=blank,
        dynamics=Leapfrog(positive(9.0)),
    )
    assert_same(fit, loaded)


def test_a_template_of_another_structure(tmp_path):
    fit = own_fit()
    fit.save(tmp_path)
    parts = {"start": fit.sampler.start, "dynamics": fit.sampler.dynamics}
    assert "another model" in refused(tmp_path, potential=Bowl(jnp.zeros(3)), **parts)
    assert "another model" in refused(tmp_path, potential=lambda x: jnp.sum(x), **parts)
    assert "another model" in refused(tmp_path, potential=Bowl(jnp.array(1)), **parts)


def signed(folder):
    """The folder, with its description made to fit whatever arrays now lie there."""
    path = folder / "model.json"
    digest = hashlib.sha256((folder / "model.safetensors").read_bytes()).hexdigest()
    path.write_text(json.dumps({**json.loads(path.read_text()), "sha256": digest}))
    return folder


def test_a_description_and_arrays_of_two_saves_do_not_mix(folder, tmp_path):
    """As a kill between the two writes would leave them: the scaling would be another's."""
    made(seed=6).save(tmp_path / "other")
    (tmp_path / "other" / "model.safetensors").rename(folder / "model.safetensors")
    assert "not the one that model.json was written for" in refused(folder)
    fx.load(signed(folder))  # negative control: nothing else would have noticed


def test_arrays_of_another_model(folder, tmp_path):
    made("empirical").save(tmp_path / "other")
    (tmp_path / "other" / "model.safetensors").rename(folder / "model.safetensors")
    assert "another model" in refused(signed(folder))
    made(potential__width=5).save(tmp_path / "wider")
    (tmp_path / "wider" / "model.safetensors").rename(folder / "model.safetensors")
    assert "another model" in refused(signed(folder))


def test_arrays_too_many_or_too_few(folder):
    path = folder / "model.safetensors"
    table = load_file(path)
    save_file({**table, "code": np.zeros(3, np.float32)}, path)
    assert "code is on one side only" in refused(signed(folder))
    name = next(iter(table))
    save_file({key: value for key, value in table.items() if key != name}, path)
    assert f"{name} is on one side only" in refused(signed(folder))


def test_an_array_of_another_type(folder):
    path = folder / "model.safetensors"
    table = load_file(path)
    name = next(iter(table))
    save_file({**table, name: table[name].astype(np.float64)}, path)
    assert "float64" in refused(signed(folder))


@pytest.mark.parametrize("keep", [0, 5, 200, -4])
def test_damaged_arrays(folder, keep):
    path = folder / "model.safetensors"
    path.write_bytes(path.read_bytes()[:keep])
    assert "is damaged" in refused(folder)


def test_missing_files(folder, tmp_path):
    (folder / "model.safetensors").unlink()
    assert "model.safetensors is missing" in refused(folder)
    (folder / "model.json").unlink()
    assert "model.json is missing" in refused(folder)
    assert "holds no model" in refused(tmp_path / "nowhere")


def test_a_run_that_was_stopped_has_no_model_yet(tmp_path):
    (tmp_path / "checkpoints").mkdir()
    assert "is not finished" in refused(tmp_path)


def test_others_may_read_it_as_they_may_its_description(folder):
    files = (folder / "model.safetensors", folder / "model.json")
    arrays, description = (path.stat().st_mode for path in files)
    assert arrays == description


@pytest.mark.parametrize("scale", ["NaN", "0.0", "-1.0"])
def test_a_scale_that_is_none(folder, scale):
    path = folder / "model.json"
    description = json.loads(path.read_text())
    description["scale"][0] = float(scale)
    path.write_text(json.dumps(description))
    assert "damaged" in refused(folder)


def test_a_foreign_folder(tmp_path):
    (tmp_path / "model.json").write_text('{"layers": 3}')
    assert "not a model of this library" in refused(tmp_path)
    (tmp_path / "model.json").write_text('["fenchel-model"]')
    assert "not a model of this library" in refused(tmp_path)


@pytest.mark.parametrize(
    "damage",
    [
        lambda text: text[: len(text) // 2],
        lambda text: "",
        lambda text: text.replace("fenchel-model", "another"),
        lambda text: text.replace('"a",', ""),
        lambda text: re.sub(r'"points": \d+', '"points": "many"', text),
    ],
)
def test_a_damaged_description(folder, damage):
    path = folder / "model.json"
    path.write_text(damage(path.read_text()))
    assert "damaged, or not a model of this library" in refused(folder)


@pytest.mark.parametrize("name", ["format", "name", "columns", "mean", "scale", "points", "config"])
def test_a_description_that_lacks_something(folder, name):
    path = folder / "model.json"
    description = json.loads(path.read_text())
    del description[name]
    path.write_text(json.dumps(description))
    assert "damaged" in refused(folder)


def test_a_description_whose_scaling_does_not_fit(folder):
    path = folder / "model.json"
    description = json.loads(path.read_text())
    path.write_text(json.dumps({**description, "scale": [1.0]}))
    assert "damaged" in refused(folder)


def test_a_configuration_of_another_version(folder):
    path = folder / "model.json"
    description = json.loads(path.read_text())
    description["config"]["hyperdrive"] = True
    path.write_text(json.dumps(description))
    assert "has no hyperdrive" in refused(folder)


def test_a_model_that_is_not_finite_is_not_written(tmp_path):
    fit = own_fit()
    bad = Fit(
        Bowl(jnp.array(jnp.nan)),
        *(getattr(fit, name) for name in ("sampler", "sampler_state", "points", "standardiser")),
        fit.config,
        fit.columns,
        fit.name,
    )
    with pytest.raises(InputError, match=r"not finite in .*depth"):
        bad.save(tmp_path / "model")
    assert not (tmp_path / "model").exists()


def test_saving_again_replaces(fit, folder):
    other = made(seed=8)
    other.save(folder)
    assert_same(other, fx.load(folder))
    assert sorted(path.name for path in folder.iterdir()) == ["model.json", "model.safetensors"]


def test_too_little_room(fit, tmp_path, monkeypatch):
    monkeypatch.setattr("shutil.disk_usage", lambda _: type("Usage", (), {"free": 2**20})())
    with pytest.raises(InputError, match="1 MiB free"):
        fit.save(tmp_path / "model")
    assert not (tmp_path / "model").exists()
