"""Configurations: read strictly, written whole, and every error one or two sentences long."""

import json
import re

import pytest

from fenchel.choices import choose
from fenchel.config import Config, DynamicsConfig, TrainingConfig
from fenchel.errors import InputError

FULL = Config(
    seed=3,
    dynamics=DynamicsConfig(steps=2, precision=(1.0, 2.5), box=(-3.0, 3.0), clip_norm=None),
    training=TrainingConfig(steps=7, anchor=0.5, gradient="bptt"),
)

TOML = """
seed = 3

[dynamics]
steps = 2
precision = [1, 2.5]
box = [-3, 3]
clip_value = 2

[training]
steps = 7
anchor = 0.5
gradient = "bptt"
"""


def sentences(message: str) -> int:
    """How many full stops end a sentence: before a space or the end, and not within a number."""
    return len(re.findall(r"[.?!](?=\s|$)", message))


def refused(values: dict) -> str:
    with pytest.raises(InputError) as caught:
        Config.from_dict(values)
    message = str(caught.value)
    assert 1 <= sentences(message) <= 2, message
    return message


def test_json_round_trip(tmp_path):
    path = tmp_path / "config.json"
    path.write_text(json.dumps(FULL.to_dict()))
    assert Config.from_file(path) == FULL
    assert Config.from_dict(FULL.to_dict()).to_dict() == FULL.to_dict()


def test_a_runs_record_has_its_choices(tmp_path):
    path = tmp_path / "config.json"
    record = {"format": "fenchel-run", "version": "0.1.0", "data": {}, "config": FULL.to_dict()}
    path.write_text(json.dumps(record))
    assert Config.from_file(path) == FULL
    for damaged in ({**record, "config": 3}, {"format": "fenchel-run"}):
        path.write_text(json.dumps(damaged))
        with pytest.raises(InputError, match="must hold named values"):
            Config.from_file(path)


def test_the_dictionary_is_plain_data():
    assert json.loads(json.dumps(FULL.to_dict())) == FULL.to_dict()
    assert FULL.to_dict()["dynamics"]["precision"] == [1.0, 2.5]


def test_toml(tmp_path):
    path = tmp_path / "config.toml"
    path.write_text(TOML)
    config = Config.from_file(str(path))
    assert config.seed == 3
    assert config.dynamics.precision == (1.0, 2.5)
    assert config.dynamics.box == (-3.0, 3.0)
    assert config.dynamics.clip_value == 2
    assert config.training.anchor == 0.5
    # What the file leaves out keeps its default.
    assert config.potential == Config().potential
    assert config.training.batch == Config().training.batch


def test_nothing_given_is_the_default():
    assert Config.from_dict({}) == Config()
    assert Config.from_dict({"training": {}}) == Config()


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        ({"seeed": 1}, "did you mean seed?"),
        ({"training": {"step": 1}}, "training.step (did you mean steps?)"),
        ({"potential": {"widht": 1}}, "did you mean width?"),
        ({"dynamics": {"step_sise": 1.0}}, "did you mean step_size?"),
    ],
)
def test_unknown_names_with_the_nearest(values, expected):
    assert expected in refused(values)


def test_unknown_name_with_nothing_near_lists_them_all():
    message = refused({"training": {"zzzzz": 1}})
    assert "did you mean" not in message
    assert "sampler_steps" in message


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        ({"seed": "three"}, 'seed is "three" in the configuration, and must be a whole number'),
        ({"seed": 1.5}, "a whole number"),
        ({"seed": True}, "a whole number"),
        ({"training": {"anchor": "much"}}, 'training.anchor is "much"'),
        ({"training": {"anchor": False}}, "must be a number"),
        ({"potential": {"kind": 3}}, "must be a word"),
        ({"dynamics": {"metropolis": 1}}, "must be true or false"),
        ({"dynamics": {"latent": "x"}}, "must be a whole number or null"),
        ({"dynamics": {"precision": "x"}}, "must be a number or a list of numbers"),
        ({"dynamics": {"box": ["a", "b"]}}, "a list of numbers or null"),
        ({"potential": {"base_scale": [1]}}, "must be a number or null"),
        ({"training": 3}, "training must be a section"),
        ({"training": {"steps": None}}, "training.steps is null"),
        ({"potential": {"width": 0}}, "potential.width is 0: give at least 1"),
        ({"potential": {"depth": -1}}, "potential.depth is -1: give at least 0"),
        ({"potential": {"base_scale": -1}}, "potential.base_scale is -1: give a positive width"),
        ({"start": {"layers": 0}}, "start.layers is 0: give at least 1"),
        ({"pictures": {"dequantise": 2.0}}, "pictures.dequantise is 2.0: a grey level is 1 wide"),
        ({"pictures": {"dequantise": -0.5}}, "give from 0 to 1 of it"),
    ],
)
def test_wrong_types(values, expected):
    assert expected in refused(values)


@pytest.mark.parametrize(
    "values",
    [
        {"dynamics": {"steps": 0}},
        {"dynamics": {"step_size": -1.0}},
        {"dynamics": {"precision": [1.0, 2.0]}},
        {"dynamics": {"precision": -1.0}},
        {"dynamics": {"clip_norm": 0.0}},
    ],
)
def test_values_out_of_their_range(values):
    assert "dynamics." in refused(values)


@pytest.mark.parametrize(
    ("name", "text", "expected"),
    [
        ("config.toml", "seed = = 3", "not valid TOML"),
        ("config.json", "{", "not valid JSON"),
        ("config.json", "[1, 2]", "must hold named values"),
        ("config.yaml", "seed: 3", "must end in .toml or .json"),
    ],
)
def test_files_that_are_no_configuration(tmp_path, name, text, expected):
    path = tmp_path / name
    path.write_text(text)
    with pytest.raises(InputError, match=re.escape(expected)) as caught:
        Config.from_file(path)
    assert "\n" not in str(caught.value)


def test_missing_file(tmp_path):
    with pytest.raises(InputError, match="cannot be read: No such file"):
        Config.from_file(tmp_path / "none.toml")


def test_with_values():
    config = Config().with_values(seed=5, training__steps=9, potential__kind="gaussian")
    assert (config.seed, config.training.steps, config.potential.kind) == (5, 9, "gaussian")
    assert config.training.batch == Config().training.batch
    assert Config().with_values(seed=None, training__steps=None) == Config()


def test_with_values_checks_like_the_constructor():
    with pytest.raises(InputError, match="must be positive"):
        Config().with_values(dynamics__steps=0)


def test_choose():
    table = {"alpha": 1, "beta": 2}
    assert choose(table, "beta", "letter") == 2
    with pytest.raises(InputError) as caught:
        choose(table, "betta", "letter")
    message = str(caught.value)
    assert "There is no letter called 'betta' (did you mean beta?)" in message
    assert "choose from alpha, beta." in message
    assert sentences(message) <= 2


def test_configurations_do_not_change():
    with pytest.raises(AttributeError):
        Config().seed = 1
