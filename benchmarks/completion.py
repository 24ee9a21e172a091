"""Do completed digits stay what they were? A LeNet that has never seen them reads them.

    python -m benchmarks.completion RUN --data mnist.npz [--masks lower,upper,left,right]
                                    [--n 1000] [--rounds 20] [--epochs 5]
                                    [--out benchmarks/results] [--name completion-mnist]

The data are an .npz file with x_train, y_train, x_test and y_test. The net is trained here, on the
training digits. Of the first n test digits, a half is hidden and completed by RUN, a fit of the
preset `mnist-completion` or `mnist`; the share that the net reads as their true label stands beside
its share of whole digits, of halves alone (the hidden half black) and of halves with noise, from
which completion begins. The picture beside the table shows all rounds of ten digits, as in the
paper's figure 4; the last column is what was hidden.
"""

import argparse
from pathlib import Path
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import optax

from benchmarks.record import RESULTS, in_words, provenance, write
from fenchel.data import half_mask
from fenchel.evaluate import contest_health, dropped_steps
from fenchel.report.findings import sentence
from fenchel.report.pictures.grid import save_picture, strip
from fenchel.runs import RunFolder
from fenchel.saving import load
from fenchel.shapes import Array, Key

SEED = 6_000_011
BATCH = 128
AT_ONCE = 1_000  # digits that the net reads together
SHOWN = 10


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("run", type=Path)
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--masks", default="lower,upper,left,right")
    parser.add_argument("--n", type=int, default=1_000)
    parser.add_argument("--rounds", type=int, default=20)
    parser.add_argument("--epochs", type=int, default=5)
    parser.add_argument("--out", type=Path, default=RESULTS)
    parser.add_argument("--name", default="completion-mnist")
    arguments = parser.parse_args()
    fit = load(arguments.run)
    with np.load(arguments.data, allow_pickle=False) as data:
        reader = trained(data["x_train"], data["y_train"], arguments.epochs)
        everything = accuracy(reader, data["x_test"], data["y_test"])
        digits, labels = data["x_test"][: arguments.n, ..., None], data["y_test"][: arguments.n]
    masks = {
        mask: fit.complete(digits, mask, rounds=arguments.rounds, seed=SEED)
        for mask in arguments.masks.split(",")
    }
    result: dict[str, Any] = {
        "test_accuracy": everything,
        "whole": accuracy(reader, digits, labels),
        "n": len(digits),
        "rounds": arguments.rounds,
        "config": fit.config.to_dict(),
        "training": training(RunFolder(arguments.run), fit.config.training.steps),
        "rows": {
            mask: {
                "half": accuracy(reader, np.where(half_mask(mask, fit.shape), 0, digits), labels),
                "noise": accuracy(reader, frames[0], labels),
                "completed": accuracy(reader, frames[-1], labels),
            }
            for mask, frames in masks.items()
        },
        "provenance": provenance(),
    }
    write(arguments.name, result, as_markdown(result), arguments.out)
    frames = next(iter(masks.values()))[:, :SHOWN]
    picture = strip(np.concatenate([frames, digits[None, :SHOWN]]))
    save_picture(picture, arguments.out / f"{arguments.name}.png")
    print(as_markdown(result))


def training(run: RunFolder, steps: int) -> str:
    """How far it came, and what became of it."""
    rows = run.read_metrics()
    return f"{contest_health(rows, steps).word}, {dropped_steps(rows)} dropped"


class LeNet(eqx.Module):
    """Two convolutions, two halvings, two dense layers."""

    first: eqx.nn.Conv2d
    second: eqx.nn.Conv2d
    third: eqx.nn.Linear
    last: eqx.nn.Linear

    def __init__(self, key: Key):
        keys = jax.random.split(key, 4)
        self.first = eqx.nn.Conv2d(1, 16, 5, padding=2, key=keys[0])
        self.second = eqx.nn.Conv2d(16, 32, 5, key=keys[1])
        self.third = eqx.nn.Linear(32 * 5 * 5, 128, key=keys[2])
        self.last = eqx.nn.Linear(128, 10, key=keys[3])

    def __call__(self, digit: Array) -> Array:
        """The log odds of the ten, from bytes (28, 28)."""
        x = digit.astype(float)[None] / 255
        pool = eqx.nn.MaxPool2d(2, 2)
        x = pool(jax.nn.relu(self.first(x)))
        x = pool(jax.nn.relu(self.second(x)))
        return self.last(jax.nn.relu(self.third(x.ravel())))


def trained(digits: np.ndarray, labels: np.ndarray, epochs: int) -> LeNet:
    """By Adam, in an order of its own."""
    net = LeNet(jax.random.key(SEED))
    optimiser = optax.adam(1e-3)

    @eqx.filter_jit
    def step(net, memory, x, y):
        loss = lambda net: jnp.mean(  # noqa: E731
            optax.softmax_cross_entropy_with_integer_labels(jax.vmap(net)(x), y)
        )
        updates, memory = optimiser.update(eqx.filter_grad(loss)(net), memory)
        return eqx.apply_updates(net, updates), memory

    memory, order = optimiser.init(eqx.filter(net, eqx.is_array)), np.random.default_rng(SEED)
    for epoch in range(epochs):
        shuffled = order.permutation(len(digits))
        for start in range(0, len(digits) - BATCH + 1, BATCH):
            batch = shuffled[start : start + BATCH]
            net, memory = step(net, memory, digits[batch], labels[batch].astype(np.int32))
        print(f"the reader: epoch {epoch + 1} of {epochs}", flush=True)
    return net


def accuracy(net: LeNet, digits: np.ndarray, labels: np.ndarray) -> float:
    """The share that is read right."""
    read = eqx.filter_jit(lambda x: jnp.argmax(jax.vmap(net)(x), axis=1))
    flat = digits.reshape(len(digits), 28, 28)
    guesses = [read(flat[i : i + AT_ONCE]) for i in range(0, len(flat), AT_ONCE)]
    return float(np.mean(np.concatenate(guesses) == labels))


def as_markdown(result: dict[str, Any]) -> str:
    lines = [
        "# Completed digits, read by a LeNet",
        "",
        f"The share of {result['n']:,} test digits that is read right after {result['rounds']} "
        f"rounds of the learnt dynamics; the net reads {result['whole']:.1%} of them right as they "
        f"were, and {result['test_accuracy']:.1%} of all test digits. "
        f"Training: {result['training']}.",
        "",
        "| hidden | the other half alone | with noise, at first | completed |",
        "| --- | --- | --- | --- |",
    ]
    for mask, row in result["rows"].items():
        lines.append(
            f"| {mask} | {row['half']:.1%} | {row['noise']:.1%} | {row['completed']:.1%} |"
        )
    return "\n".join([*lines, "", sentence(in_words(result["provenance"])), ""])


if __name__ == "__main__":
    main()
