"""Networks that a file describes, layer by layer, and the Inception score in closed form."""

import json

import numpy as np
import pytest
from scipy.special import softmax

from fenchel.errors import InputError
from fenchel.evaluate import class_probabilities, inception_score, load_slim

# Two branches, each a convolution that leaves one position, then their channels as logits.
GRAPH = [
    {"op": "MAX_POOL_2D", "in": ["input"], "out": "most", "k": [299, 299], "stride": [1, 1]},
    {"op": "AVERAGE_POOL_2D", "in": ["input"], "out": "mean", "k": [299, 299], "stride": [1, 1]},
    {"op": "CONV_2D", "in": ["most"], "out": "a", "key": "first", "out_zp": 0},
    {"op": "CONV_2D", "in": ["mean"], "out": "b", "key": "second", "out_zp": 50},
    {"op": "CONCATENATION", "in": ["a", "b"], "out": "both"},
    {"op": "RESHAPE", "in": ["both", "shape"], "out": "output"},
]
CONVOLUTION = {"k": [1, 1], "stride": [1, 1], "pad": "SAME", "act": 0, "out_scale": 0.02}


def graph():
    """Afresh, with what the layers have in common."""
    common = {"CONV_2D": CONVOLUTION, "MAX_POOL_2D": {"pad": "VALID"}}
    common["AVERAGE_POOL_2D"] = common["MAX_POOL_2D"]
    return [common.get(entry["op"], {}) | entry for entry in GRAPH]


def weights():
    rng = np.random.default_rng(0)
    arrays = {}
    for name in ("first", "second"):
        arrays[f"{name}.wq"] = rng.integers(0, 256, (4, 3, 1, 1), dtype=np.uint8)
        arrays[f"{name}.wzp"] = np.int32(120)
        arrays[f"{name}.wscale"] = np.float32(0.05)
        arrays[f"{name}.bias"] = rng.normal(size=4).astype(np.float32)
    return arrays


def saved(path, entries, arrays):
    text = np.frombuffer(json.dumps(entries).encode(), np.uint8)
    np.savez(path, graph_json=text, **arrays)
    return path


def test_does_what_the_file_says(tmp_path):
    arrays = weights()
    network = load_slim(saved(tmp_path / "net.npz", graph(), arrays))
    colours = np.random.default_rng(1).integers(0, 256, (5, 3), dtype=np.uint8)
    x = (colours.astype(float) - 128.0) / 128.0  # plain pictures: pools change nothing

    def linear(name):
        weight = (arrays[f"{name}.wq"][..., 0, 0].astype(float) - 120.0) * 0.05
        return x @ weight.T + arrays[f"{name}.bias"]

    first = np.clip(linear("first"), 0.0, 255 * 0.02)
    second = np.clip(linear("second"), -50 * 0.02, 205 * 0.02)
    expected = softmax(np.concatenate([first, second], axis=1), axis=1)
    plain = np.broadcast_to(colours[:, None, None], (5, 4, 4, 3))
    np.testing.assert_allclose(class_probabilities(network, plain, batch=2), expected, rtol=1e-4)


@pytest.mark.parametrize(
    ("layer", "changes", "message"),
    [
        (2, {"op": "SOFTMAX"}, "unknown operation 'SOFTMAX'"),
        (2, {"op": "__import__"}, "unknown operation"),
        (2, {"act": 1}, "unknown activation"),
        (2, {"pad": "FULL"}, "unknown padding"),
        (2, {"k": [3, 3]}, "has shape"),
        (2, {"stride": [0, 1]}, "stride of 0 x 1"),
        (2, {"stride": 1}, "not the slim"),
        (2, {"key": "third"}, r"no 'third\.wq'"),
        (2, {"in": ["later"]}, "no 'later'"),
        (2, {"in": ["input"]}, "do not fit together"),
        (2, {"in": ["most", "mean"]}, "do not fit together"),
        (4, {"in": ["input", "b"]}, "do not fit together"),
        (5, {"out": "logits"}, "no 'output'"),
        (4, {"out": "output"}, "not one row a picture"),
    ],
)
def test_refuses_a_graph_that_it_cannot_follow(tmp_path, layer, changes, message):
    entries = graph()
    entries[layer] |= changes
    entries = entries[: layer + 1] if changes == {"out": "output"} else entries
    with pytest.raises(InputError, match=message):
        load_slim(saved(tmp_path / "net.npz", entries, weights()))


def test_refuses_what_is_no_graph(tmp_path):
    for text in (b"no JSON", b"{}", b"[1]", b"\xff\xfe"):
        np.savez(tmp_path / "net.npz", graph_json=np.frombuffer(text, np.uint8))
        with pytest.raises(InputError, match="not the slim"):
            load_slim(tmp_path / "net.npz")
    np.savez(tmp_path / "net.npz", **weights())
    with pytest.raises(InputError, match="no 'graph_json'"):
        load_slim(tmp_path / "net.npz")


def test_sure_of_all_classes_scores_their_number():
    sure = np.tile(np.eye(7), (20, 1))
    assert inception_score(sure) == pytest.approx((7.0, 0.0))


def test_sure_of_one_class_or_of_none_scores_one():
    one_class = np.tile(np.eye(7)[:1], (20, 1))
    no_class = np.full((20, 7), 1.0 / 7.0)
    assert inception_score(one_class) == pytest.approx((1.0, 0.0))
    assert inception_score(no_class) == pytest.approx((1.0, 0.0))


def test_score_is_the_exponential_of_the_information():
    """Two pictures, sure to 3 in 4 of opposite classes."""
    both = np.array([[0.75, 0.25], [0.25, 0.75]])
    information = 0.75 * np.log(1.5) + 0.25 * np.log(0.5)
    assert inception_score(both, splits=1) == pytest.approx((np.exp(information), 0.0))


def test_parts_are_scored_apart():
    """Sorted by class, each part has but one: the mean of ones, where all together score 2."""
    sorted_ = np.repeat(np.eye(2), 5, axis=0)
    assert inception_score(sorted_, splits=2) == pytest.approx((1.0, 0.0))
    assert inception_score(sorted_, splits=1) == pytest.approx((2.0, 0.0))
    mean, deviation = inception_score(np.eye(2)[[0, 0, 0, 1]], splits=2)
    assert (mean, deviation) == pytest.approx((1.5, 0.5))


@pytest.mark.parametrize(
    ("probabilities", "splits", "message"),
    [
        (np.eye(3)[0], 1, "shape"),
        (np.eye(3), 4, "shape"),
        (np.eye(3), 0, "splits is 0"),
        (2.0 * np.eye(3), 1, "sum to 1"),
        (np.full((3, 3), np.nan), 1, "sum to 1"),
    ],
)
def test_refuses_what_has_no_score(probabilities, splits, message):
    with pytest.raises(InputError, match=message):
        inception_score(probabilities, splits=splits)


def test_known_classes(data_folder, cifar_pictures):
    """The second of CIFAR-10's test pictures is a ship, the fifth a frog; ImageNet's are finer."""
    network = load_slim(data_folder / "inception" / "slim_v3_uint8.npz")
    probabilities = class_probabilities(network, cifar_pictures[[1, 4]])
    assert probabilities.shape == (2, 1001)
    assert list(probabilities.argmax(axis=1)) == [815, 33]  # speedboat; tailed frog
