"""Is log Z between its bounds, where it is known?

    python -m benchmarks.evidence [--seeds 100] [--chains 1024] [--stations 200]
                                  [--out benchmarks/results]

Targets whose log Z is known in closed form or by an integral in one dimension, and from which can
be drawn: a correlated Gaussian and a product of double wells in 64 dimensions, and two separated
modes of unequal mass in 8. Annealing begins at a wide Gaussian that knows nothing of them. Each
seed has pilot runs, paths and exact draws of its own. A hit is a truth between the two bounds.
"""

import argparse
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from scipy.integrate import quad

from benchmarks.record import RESULTS, in_words, provenance, write
from fenchel.evidence import Annealing, GaussianReference, from_both_ends, from_weights
from fenchel.potentials import FullGaussian
from fenchel.shapes import Array, Key, Potential

WELLS, MODES = 64, 8
BEND = 3.0  # of the double wells: f = -BEND (x² - 1)²
APART, SPREAD, SHARE = 3.0, 0.5, 0.8  # of the two modes


class Target(NamedTuple):
    name: str
    f: Potential
    draw: Callable[[Key, int], Array]
    log_partition: float
    dim: int
    width: float  # of the Gaussian that annealing begins at


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", type=int, default=100)
    parser.add_argument("--chains", type=int, default=1_024)
    parser.add_argument("--stations", type=int, default=200)
    parser.add_argument("--out", type=Path, default=RESULTS)
    arguments = parser.parse_args()
    annealing = Annealing(arguments.chains, arguments.stations)
    rows = [judged(target, annealing, arguments.seeds) for target in targets()]
    result = {
        "chains": arguments.chains,
        "stations": arguments.stations,
        "seeds": arguments.seeds,
        "rows": rows,
        "provenance": provenance(),
    }
    write("evidence", result, as_markdown(result), arguments.out)
    print(as_markdown(result))


def targets() -> list[Target]:
    return [gaussian(), double_wells(), two_modes()]


def gaussian() -> Target:
    mixing = np.random.default_rng(0).normal(size=(WELLS, WELLS)) / 8
    precision = mixing @ mixing.T + 0.5 * np.eye(WELLS)
    f = FullGaussian.from_precision(jnp.zeros(WELLS), jnp.asarray(precision, jnp.float32))
    factor = jnp.asarray(np.linalg.cholesky(np.linalg.inv(precision)), jnp.float32)
    truth = 0.5 * WELLS * np.log(2 * np.pi) - 0.5 * np.linalg.slogdet(precision)[1]

    def draw(key: Key, n: int) -> Array:
        return jax.random.normal(key, (n, WELLS)) @ factor.T

    return Target("Gaussian, correlated", f, draw, float(truth), WELLS, 1.5)


def double_wells() -> Target:
    def f(x: Array) -> Array:
        return -BEND * jnp.sum((x**2 - 1) ** 2)

    grid = np.linspace(-3, 3, 20_001)
    cumulative = np.cumsum(np.exp(-BEND * (grid**2 - 1) ** 2))
    quantiles = jnp.asarray(cumulative / cumulative[-1]), jnp.asarray(grid)

    def draw(key: Key, n: int) -> Array:
        return jnp.interp(jax.random.uniform(key, (n, WELLS)), *quantiles)

    one = quad(lambda x: np.exp(-BEND * (x**2 - 1) ** 2), -4, 4, epsabs=1e-12)[0]
    return Target("double wells", f, draw, float(WELLS * np.log(one)), WELLS, 1.2)


def two_modes() -> Target:
    centre = jnp.full(MODES, APART / MODES**0.5)
    shares = jnp.log(jnp.array([SHARE, 1 - SHARE]))

    def f(x: Array) -> Array:
        squares = jnp.stack([jnp.sum((x - sign * centre) ** 2) for sign in (1, -1)])
        return jax.nn.logsumexp(shares - 0.5 * squares / SPREAD**2)

    def draw(key: Key, n: int) -> Array:
        pick, noise = jax.random.split(key)
        sign = jnp.where(jax.random.uniform(pick, (n, 1)) < SHARE, 1.0, -1.0)
        return sign * centre[None] + SPREAD * jax.random.normal(noise, (n, MODES))

    truth = 0.5 * MODES * np.log(2 * np.pi * SPREAD**2)
    return Target("two modes, six widths apart", f, draw, float(truth), MODES, 2.0)


def judged(target: Target, annealing: Annealing, seeds: int) -> dict[str, Any]:
    reference = GaussianReference(jnp.zeros(target.dim), target.width * jnp.eye(target.dim))

    def one(key: Key) -> tuple[Array, Array]:
        pilot_key, there_key, draw_key, back_key = jax.random.split(key, 4)
        stations = annealing.prepare(target.f, reference, pilot_key)
        there, _ = annealing.forward(target.f, reference, stations, there_key)
        points = target.draw(draw_key, annealing.chains)
        back = annealing.reverse(target.f, reference, stations, points, back_key)
        return there, back

    began = time.perf_counter()
    keys = jax.random.split(jax.random.key(1), seeds)
    there, back = (np.asarray(part) for part in jax.jit(jax.vmap(one))(keys))
    seconds = time.perf_counter() - began
    both = [from_both_ends(a, b, "") for a, b in zip(there, back, strict=True)]
    alone = [from_weights(a, "") for a in there]
    truth = target.log_partition
    row = {"target": target.name, "dim": target.dim, "log_partition": truth, "seconds": seconds}
    for name, found in (("both", both), ("alone", alone)):
        widths = [z.width for z in found]
        row |= {
            f"{name}_hits": sum(z.lower < truth < z.upper for z in found),
            f"{name}_width_median": float(np.median(widths)),
            f"{name}_width_largest": float(np.max(widths)),
        }
    errors = [z.estimate - truth for z in both]
    row |= {"error_rms": float(np.sqrt(np.mean(np.square(errors))))}
    row |= {"ess": float(np.median([z.ess for z in both]))}
    print(row, flush=True)
    return row


def as_markdown(result: dict[str, Any]) -> str:
    seeds = result["seeds"]
    lines = [
        "# Brackets on log Z where it is known",
        "",
        f"Annealing with {result['chains']:,} chains over {result['stations']} stations from a "
        f"wide Gaussian, {seeds} seeds each. *Both ends*: upper bounds by paths back from exact "
        "draws; *alone*: from the forward weights only. The bounds are such that each should miss "
        "1 run in 200. Seconds are for all seeds at once, compilation included.",
        "",
        f"Made by `python -m benchmarks.evidence`, {in_words(result['provenance'])}.",
        "",
        "| target | d | log Z | hits, both ends | width, median (largest) | hits, alone "
        "| width, median | error of the estimate, rms | ESS | seconds |",
        "|---|---|---|---|---|---|---|---|---|---|",
    ]
    for row in result["rows"]:
        lines.append(
            f"| {row['target']} | {row['dim']} | {row['log_partition']:.3f} "
            f"| {row['both_hits']} of {seeds} "
            f"| {row['both_width_median']:.3f} ({row['both_width_largest']:.3f}) "
            f"| {row['alone_hits']} of {seeds} | {row['alone_width_median']:.3f} "
            f"| {row['error_rms']:.3f} | {row['ess']:.2f} | {row['seconds']:.0f} |"
        )
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    main()
