"""Are pictures scored as in publications, and how fast? CIFAR-10's training against its test set.

    python -m benchmarks.inception --data FOLDER [--cifar FILE] [--pictures 50000] [--batch 256]
                                   [--out benchmarks/results] [--name inception-gpu]

FOLDER has inception/fid_2015_fp16.npz and inception/slim_v3_uint8.npz, and FILE is CIFAR-10 as an
.npz with x_train and x_test; by default, cifar10.npz in FOLDER.

1. FID of all test against all training pictures: it is published as 3.15.
2. Precision and recall (k = 3) of 10,000 test against 10,000 training pictures' features.
3. IS-slim of the first 10,000 and of all training pictures: what samples' scores are divided by.

Compilation is timed apart, on a first batch. With fewer pictures than all of them (`--pictures`) it
is a trial of the machinery, and the numbers are no one else's. With all of them an FID that is not
the published one ends in exit code 1.
"""

import argparse
import time
from collections.abc import Callable, Iterator
from dataclasses import asdict
from pathlib import Path
from typing import Any, TypeVar

import jax
import numpy as np

from benchmarks.record import RESULTS, provenance, versions, write
from fenchel.evaluate import (
    FeatureMoments,
    Inception,
    class_probabilities,
    coverage,
    feature_batches,
    feature_moments,
    features,
    frechet_distance,
    inception_score,
    load_inception,
    load_slim,
)

ALL = 50_000
PART = 10_000  # of the pictures, where all would be too many or not comparable
NEIGHBOURS = 3
PUBLISHED, TOLERANCE = 3.15, 0.01

T = TypeVar("T")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--cifar", type=Path)
    parser.add_argument("--pictures", type=int, default=ALL)
    parser.add_argument("--batch", type=int, default=256)
    parser.add_argument("--out", type=Path, default=RESULTS)
    parser.add_argument("--name", default=f"inception-{jax.default_backend()}")
    arguments = parser.parse_args()
    with np.load(arguments.cifar or arguments.data / "cifar10.npz") as file:
        train, test = (file[name][: arguments.pictures] for name in ("x_train", "x_test"))
    weights = arguments.data / "inception"
    clock = Clock()
    result: dict[str, Any] = {
        "provenance": provenance(),
        "train": len(train),
        "test": len(test),
        "batch": arguments.batch,
        **distances(weights / "fid_2015_fp16.npz", train, test, arguments.batch, clock),
        "slim": scores(weights / "slim_v3_uint8.npz", train, arguments.batch, clock),
        "seconds": clock.seconds,
    }
    write(arguments.name, result, as_markdown(result), arguments.out)
    print(as_markdown(result))
    if _is_whole(result) and abs(result["fid"]["value"] - PUBLISHED) > TOLERANCE:
        raise SystemExit(f"The FID is {result['fid']['value']:.4f}, and {PUBLISHED} is published.")


class Clock:
    """Says what is being done, and remembers for how long it was."""

    def __init__(self) -> None:
        self.seconds: dict[str, float] = {}

    def __call__(self, doing: str, work: Callable[[], T]) -> T:
        began = time.perf_counter()
        done = work()
        self.seconds[doing] = time.perf_counter() - began
        print(f"{doing}: {self.seconds[doing]:.1f} s", flush=True)
        return done


def distances(
    path: Path, train: np.ndarray, test: np.ndarray, batch: int, clock: Clock
) -> dict[str, Any]:
    """Between the training and the test pictures, in the FID network's features."""
    network = clock("loading the FID network", lambda: load_inception(path))
    clock("compiling the FID network", lambda: features(network, train[:batch], batch=batch))
    reference, train_features = clock(
        f"features and moments of {len(train):,} training pictures",
        lambda: moments_and_features(network, train, batch),
    )
    samples, test_features = clock(
        f"features and moments of {len(test):,} test pictures",
        lambda: moments_and_features(network, test, batch),
    )
    fid = clock("Fréchet distance", lambda: frechet_distance(samples, reference))
    balls = clock(
        f"precision and recall of {min(PART, len(test)):,}",
        lambda: coverage(test_features[:PART], train_features[:PART], k=NEIGHBOURS),
    )
    return {"fid": asdict(fid), "coverage": asdict(balls)}


def moments_and_features(
    network: Inception, pictures: np.ndarray, batch: int
) -> tuple[FeatureMoments, np.ndarray]:
    """The features are kept for precision and recall; moments alone would not need them."""
    kept = []

    def keeping() -> Iterator[np.ndarray]:
        for rows in feature_batches(network, pictures, batch=batch):
            kept.append(rows)
            yield rows

    moments = feature_moments(keeping())
    return moments, np.concatenate(kept)


def scores(path: Path, train: np.ndarray, batch: int, clock: Clock) -> list[dict[str, Any]]:
    """IS-slim of the first pictures and of all."""
    network = clock("loading the slim network", lambda: load_slim(path))
    clock(
        "compiling the slim network",
        lambda: class_probabilities(network, train[:batch], batch=batch),
    )
    probabilities = clock(
        f"classes of {len(train):,} training pictures",
        lambda: class_probabilities(network, train, batch=batch),
    )
    rows = []
    for count in sorted({min(PART, len(train)), len(train)}):
        mean, deviation = inception_score(probabilities[:count])
        rows.append({"pictures": count, "mean": mean, "deviation": deviation})
    return rows


def as_markdown(result: dict[str, Any]) -> str:
    fid, balls, about = result["fid"], result["coverage"], result["provenance"]
    lines = [
        "# Scores of pictures",
        "",
        f"Commit {about['commit']}, {about['device']}, {about['cpu']}, {versions(about)}. Made by "
        f"`python -m benchmarks.inception`, in batches of {result['batch']}.",
        "",
        f"CIFAR-10, {fid['n']:,} test pictures against {fid['m']:,} training pictures: "
        f"**FID {fid['value']:.4f}** ({fid['of_means']:.4f} of means, "
        f"{fid['of_covariances']:.4f} of covariances; chance alone would make "
        f"{fid['baseline']:.4f}, if features were Gaussian). {_beside(result)}",
        "",
        f"Precision {balls['precision']:.4f}, recall {balls['recall']:.4f} (k = {balls['k']}, "
        f"{balls['n']:,} against {balls['m']:,}).",
        "",
        "| training pictures | IS-slim, mean of 10 parts | standard deviation |",
        "|---|---|---|",
        *(
            f"| {row['pictures']:,} | {row['mean']:.4f} | {row['deviation']:.4f} |"
            for row in result["slim"]
        ),
        "",
        "| | seconds |",
        "|---|---|",
        *(f"| {doing} | {seconds:.1f} |" for doing, seconds in result["seconds"].items()),
    ]
    return "\n".join(lines) + "\n"


def _is_whole(result: dict[str, Any]) -> bool:
    return (result["train"], result["test"]) == (ALL, PART)


def _beside(result: dict[str, Any]) -> str:
    if _is_whole(result):
        return f"Published: {PUBLISHED}."
    return "These are not all pictures, and the published number is of all."


if __name__ == "__main__":
    main()
