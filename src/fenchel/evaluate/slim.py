"""The Inception score, by TF-slim's Inception-v3: "IS-slim".

The score is exp E_x[KL(p(y|x) || p(y))]: large if a classifier is sure of each picture, and finds
all classes among them. Published scores are those of the network of 2015, whose last layer is not
to be had. Another network's are of another size, so give this one under its own name, beside the
same score of real pictures, and as a ratio to it.

The weights are the user's: an .npz file of the network for 8-bit arithmetic, with its layers in
`graph_json`. They are data, read strictly; arithmetic is in floating point. A layer's 8 bits are a
range, to which its output is cut: of all but the last it begins at zero, which is their ReLU.
"""

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float
from scipy.special import rel_entr, softmax

from fenchel.errors import InputError
from fenchel.evaluate.checks import check_at_least
from fenchel.evaluate.convolutions import AveragePool, Convolution, Maps, MaxPool, Pair
from fenchel.evaluate.pictures import BATCH, SIZE, Pictures, Progress, in_batches, prepared, silent
from fenchel.evaluate.weight_files import (
    Arrays,
    check_fits_together,
    from_oihw,
    read_arrays,
    wrong_file,
)

LARGEST_BYTE = 255

Entry = dict[str, Any]  # one layer in the file's list


class Concatenation(eqx.Module):
    """Channels one after another."""

    def __call__(self, *maps: Maps) -> Maps:
        return jnp.concatenate(maps, axis=-1)


class Squeeze(eqx.Module):
    """One row a picture, of maps that have one position left."""

    def __call__(self, maps: Maps) -> Float[Array, "n channels"]:
        return jnp.squeeze(maps, (1, 2))


class Node(eqx.Module):
    """A layer, and the names of what it takes and gives."""

    layer: Callable[..., Array]
    inputs: tuple[str, ...] = eqx.field(static=True)
    output: str = eqx.field(static=True)


class SlimInception(eqx.Module):
    """From pictures of any size to 1,001 logits; the first class is none of ImageNet's."""

    nodes: tuple[Node, ...]

    def __call__(self, pictures: Pictures) -> Float[Array, "n classes"]:
        values: dict[str, Array] = {"input": prepared(pictures)}
        for node in self.nodes:
            values[node.output] = node.layer(*(values[name] for name in node.inputs))
        return values["output"]


def load_slim(path: str | Path) -> SlimInception:
    """The network in the .npz file at `path`."""
    arrays = read_arrays(path)
    try:
        entries = json.loads(arrays["graph_json"].tobytes())
        network = SlimInception(tuple(_node(entry, arrays) for entry in entries))
        check_fits_together(network)
    except KeyError as error:
        reason = f"it has no {error.args[0]!r}"
        raise wrong_file(path, "the slim Inception network", reason) from error
    except (ValueError, TypeError) as error:
        raise wrong_file(path, "the slim Inception network", str(error)) from error
    return network


def _node(entry: Entry, arrays: Arrays) -> Node:
    operation = entry["op"]
    if operation not in OPERATIONS:
        raise ValueError(f"its graph has the unknown operation {operation!r}")
    inputs = tuple(entry["in"])
    if operation == "RESHAPE":  # the second is the shape
        inputs = inputs[:1]
    return Node(OPERATIONS[operation](entry, arrays), inputs, entry["out"])


def _convolution(entry: Entry, arrays: Arrays) -> Convolution:
    name, scale, zero = entry["key"], float(entry["out_scale"]), int(entry["out_zp"])
    if entry["act"] != 0:
        raise ValueError(f"its layer {name} has an unknown activation")
    bytes_ = arrays[f"{name}.wq"].astype(np.float64)
    weight = (bytes_ - arrays[f"{name}.wzp"]) * arrays[f"{name}.wscale"]
    if weight.ndim != 4 or weight.shape[2:] != _pair(entry["k"]):
        raise ValueError(f"{name}.wq has shape {weight.shape}")
    return Convolution(
        from_oihw(weight),
        jnp.asarray(arrays[f"{name}.bias"], jnp.float32),
        _pair(entry["stride"]),
        _padding(entry["pad"]),
        least=(0 - zero) * scale,
        most=(LARGEST_BYTE - zero) * scale,
    )


def _max_pool(entry: Entry, arrays: Arrays) -> MaxPool:
    return MaxPool(_pair(entry["k"]), _pair(entry["stride"]), _padding(entry["pad"]))


def _average_pool(entry: Entry, arrays: Arrays) -> AveragePool:
    return AveragePool(_pair(entry["k"]), _pair(entry["stride"]), _padding(entry["pad"]))


OPERATIONS: dict[str, Callable[[Entry, Arrays], Callable[..., Array]]] = {
    "CONV_2D": _convolution,
    "MAX_POOL_2D": _max_pool,
    "AVERAGE_POOL_2D": _average_pool,
    "CONCATENATION": lambda entry, arrays: Concatenation(),
    "RESHAPE": lambda entry, arrays: Squeeze(),
}


def _pair(numbers: list[int]) -> Pair:
    first, second = map(int, numbers)
    if not (1 <= first <= SIZE and 1 <= second <= SIZE):
        raise ValueError(f"its graph has a window or stride of {first} x {second}")
    return first, second


def _padding(name: str) -> str:
    if name not in ("SAME", "VALID"):
        raise ValueError(f"its graph has the unknown padding {name!r}")
    return name


def class_probabilities(
    network: SlimInception, pictures: np.ndarray, *, batch: int = BATCH, progress: Progress = silent
) -> Float[np.ndarray, "n classes"]:
    """p(y|x) of the network's 1,001 classes; the arguments are those of `features`."""
    logits: Iterator[np.ndarray] = in_batches(network, pictures, batch, progress)
    return np.concatenate([softmax(rows, axis=1) for rows in logits])


def inception_score(probabilities: np.ndarray, *, splits: int = 10) -> tuple[float, float]:
    """The mean and the standard deviation of the score over `splits` parts of the pictures.

    Fewer pictures score lower: compare scores of equally many, in parts of the same size. The parts
    are taken in the given order, so that the pictures must not be sorted by class.

    Arguments:
        probabilities: (n, classes) from `class_probabilities`.
        splits: 10 parts, of 50,000 pictures in all, are what is published.
    """
    probabilities = np.asarray(probabilities, np.float64)
    check_at_least(splits, 1, "splits")
    if probabilities.ndim != 2 or len(probabilities) < splits:
        raise InputError(
            f"The probabilities have shape {probabilities.shape} for {splits} splits: give "
            "(n, classes), with at least one row a split."
        )
    if not np.allclose(probabilities.sum(axis=1), 1.0, atol=1e-3):
        raise InputError(
            "The rows of the probabilities do not sum to 1: give class_probabilities, not logits."
        )
    scores = [_score(part) for part in np.array_split(probabilities, splits)]
    return float(np.mean(scores)), float(np.std(scores))


def _score(probabilities: np.ndarray) -> float:
    marginal = probabilities.mean(axis=0)
    return np.exp(rel_entr(probabilities, marginal).sum(axis=1).mean())
