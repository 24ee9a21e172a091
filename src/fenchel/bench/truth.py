"""Truth against truth: the kernel's width and the null distribution, once for each set.

Both depend on the set alone (and on how many points are compared), so all methods and seeds share
them. A model's MMD is read as a z-score against that null; a perfect sampler's is above 2 about
once in twenty.
"""

from typing import Any, NamedTuple

import numpy as np

from fenchel.bench.folder import BenchFolder
from fenchel.bench.held_out import held_out
from fenchel.data import TOYS
from fenchel.evaluate import kernel_scale
from fenchel.evaluate.mmd import mmds_squared

SIZES = (2_000, 10_000)  # points, at which samples are judged
PAPER_SIZE = 1_000  # points, of the paper's MMD
LOOKS, PROTOCOLS = 100, 30  # the paper's epochs, and how often the truth goes through them
POINTS_FOR_WIDTH = 2_000
POINTS_AT_ONCE = 2_000_000  # of the null's draws
WIDTH_SEED, NULL_SEED = 7_000_003, 7_000_009  # far from the seeds that anybody trains with


class Null(NamedTuple):
    """Mean and spread of the squared MMD between two true samples of one size."""

    mean: float
    std: float

    def z(self, value: float) -> float:
        return (value - self.mean) / self.std


class Truth(NamedTuple):
    """What a set's samples are compared by.

    `best` is of the truth itself, by the paper's protocol, many times: the smallest MMD of as many
    looks as there are epochs. Nothing that is learnt can be expected to do better.
    """

    gamma: float
    nulls: dict[int, Null]
    best: tuple[float, ...]

    @classmethod
    def of(cls, name: str, replicates: int) -> "Truth":
        gamma = kernel_scale(TOYS[name].sample(POINTS_FOR_WIDTH, WIDTH_SEED))
        nulls = {n: _null(name, n, gamma, replicates) for n in SIZES}
        return cls(gamma, nulls, best_of_epochs(name, gamma))

    def to_dict(self) -> dict[str, Any]:
        nulls = {str(n): null._asdict() for n, null in self.nulls.items()}
        return {"gamma": self.gamma, "nulls": nulls, "best": self.best}

    @classmethod
    def from_dict(cls, values: dict[str, Any]) -> "Truth":
        nulls = {int(n): Null(**null) for n, null in values["nulls"].items()}
        return cls(values["gamma"], nulls, tuple(values["best"]))


def truths(names: list[str], replicates: int, folder: BenchFolder, reach) -> dict[str, Truth]:
    """Of all sets, kept in the folder; `reach` is told how many are known."""
    known: dict[str, Any] = folder.read("truth") or {}
    for count, name in enumerate(names, 1):
        if name not in known:
            known[name] = Truth.of(name, replicates).to_dict()
            folder.write("truth", known)
        reach(count)
    return {name: Truth.from_dict(known[name]) for name in names}


def _null(name: str, n: int, gamma: float, replicates: int) -> Null:
    together = max(1, POINTS_AT_ONCE // (2 * n))
    values = []
    for first in range(0, replicates, together):
        count = min(together, replicates - first)
        # The points are independent: one long draw is as good as many.
        points = TOYS[name].sample(2 * count * n, NULL_SEED + n + first)
        pairs = points.reshape(count, 2, n, -1)
        values.append(mmds_squared(pairs[:, 0], pairs[:, 1], np.full(count, gamma)))
    null = np.concatenate(values)
    return Null(float(null.mean()), float(null.std(ddof=1)))


def best_of_epochs(name: str, gamma: float) -> tuple[float, ...]:
    """The paper's protocol on a perfect sampler: held-out points stay, samples do not."""
    values = []
    for replicate in range(PROTOCOLS):
        seed = NULL_SEED + 1_000_003 * (replicate + 1)
        points = held_out(name, PAPER_SIZE, seed)
        drawn = TOYS[name].sample(LOOKS * PAPER_SIZE, seed + 1).reshape(LOOKS, PAPER_SIZE, -1)
        still = np.broadcast_to(points, drawn.shape)
        values.append(float(mmds_squared(drawn, still, np.full(LOOKS, gamma)).min()))
    return tuple(values)
