"""Do the estimators' errors fall as n^(-1/2), and how efficient are they beside the likelihood?

    python -m benchmarks.consistency [--sizes 1000 10000 100000] [--replicates 50]
                                     [--out benchmarks/results]

Four families with known parameters: a Gaussian, a quartic exponential family with given statistics,
a Gaussian within a box, and eight spins on a ring. Each estimator that applies is taken to its
optimum on the same data sets, with nothing but statistical error left: begun at the truth, Newton's
method where there is a loss, and for contrastive divergence, where there is only a noisy
gradient, 300 steps preconditioned by the Fisher information, averaged over their second half.

Errors are in the Fisher metric, sqrt(mean of (w - w*)' I (w - w*) / p), which no change of
coordinates touches: for maximum likelihood they are close to n^(-1/2). *Efficiency* is the ratio
of mean squares to maximum likelihood's at the largest n, and *slope* that of log error on log n.
"""

import argparse
import multiprocessing
import time
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from typing import Any, NamedTuple

import equinox as eqx
import jax

jax.config.update("jax_enable_x64", True)

import jax.numpy as jnp  # noqa: E402
import numpy as np  # noqa: E402
import paramax  # noqa: E402
from jax import lax  # noqa: E402

from benchmarks.optimum import descended, newton  # noqa: E402
from benchmarks.record import RESULTS, provenance, versions, write  # noqa: E402
from fenchel import parameters  # noqa: E402
from fenchel.dynamics import CentredNormal, Gibbs, Options, Rademacher, Repeat, hmc  # noqa: E402
from fenchel.estimators import (  # noqa: E402
    AbstractEstimator,
    AbstractLoss,
    CompositeLikelihood,
    ContrastiveDivergence,
    Counting,
    Cover,
    DenoisingScoreMatching,
    Domain,
    GaussianNoise,
    Hamiltonian,
    InverseMultiquadric,
    KernelStein,
    MaximumLikelihood,
    MinimumProbabilityFlow,
    Neighbourhoods,
    Neighbours,
    NoiseContrastive,
    Quadrature,
    ScoreMatching,
    flips,
    overlapping_strips,
    panelled,
    pseudo_likelihood,
    strip_edges,
)
from fenchel.potentials import Ising, Linear, SelfNormalised, Within, graphs  # noqa: E402
from fenchel.report.style import new_figure  # noqa: E402
from fenchel.samplers import Embedding, Persistent  # noqa: E402
from fenchel.shapes import Array, Key, Points, Potential, Scalar  # noqa: E402
from fenchel.starts import Empirical  # noqa: E402
from fenchel.states import all_states  # noqa: E402

SEED = 11
PAIRS = 500  # points in a block of the Stein discrepancy: all pairs of 100,000 are too many
CELLS = 1_500  # a side, of the grid that draws from densities in the plane
FISHER_DRAWS = 200_000


class Family(NamedTuple):
    """A model at its true parameters, and what fits it."""

    truth: Potential
    draw: Callable[[int, Key], Points]
    estimators: dict[str, Callable[[int], AbstractEstimator]]  # given n


class Blocked(AbstractLoss):
    """A loss over pairs, as a mean over blocks of the data."""

    loss_of_block: AbstractLoss
    size: int = eqx.field(static=True, default=PAIRS)

    def loss(self, f: Potential, batch: Points, key: Key) -> Scalar:
        blocks = batch.reshape(-1, self.size, batch.shape[1])
        return jnp.mean(lax.map(lambda block: self.loss_of_block.loss(f, block, key), blocks))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--sizes", type=int, nargs="+", default=[1_000, 10_000, 100_000])
    parser.add_argument("--replicates", type=int, default=50)
    parser.add_argument("--families", nargs="+", default=list(FAMILIES))
    parser.add_argument("--workers", type=int, default=1, help="families at a time")
    parser.add_argument("--out", type=Path, default=RESULTS)
    arguments = parser.parse_args()
    sizes, replicates = arguments.sizes, arguments.replicates
    result: dict[str, Any] = {"provenance": provenance(), "sizes": sizes, "rows": []}
    result["replicates"] = replicates
    # Most of the time is spent in compiling, which families do not share.
    spawn = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(arguments.workers, mp_context=spawn) as pool:
        jobs = [pool.submit(study, name, sizes, replicates) for name in arguments.families]
        for job in jobs:
            result["rows"] += job.result()
            write("consistency", result, as_markdown(result), arguments.out)
    picture(result, arguments.out / "consistency.png")


def study(name: str, sizes: list[int], replicates: int) -> list[dict[str, Any]]:
    """One row an estimator: its errors, their slope, and its efficiency."""
    family, rows = FAMILIES[name](), []
    information = fisher(family)
    oracle: float | None = None
    for estimator, make in family.estimators.items():
        began = time.perf_counter()
        errors = [_error(family, make(n), n, replicates, information) for n in sizes]
        oracle = errors[-1] if oracle is None else oracle  # maximum likelihood is the first
        row = {
            "family": name,
            "estimator": estimator,
            "errors": errors,
            "slope": float(np.polyfit(np.log(sizes), np.log(errors), 1)[0]),
            "efficiency": (oracle / errors[-1]) ** 2,
            "seconds": time.perf_counter() - began,
        }
        print(row, flush=True)
        rows.append(row)
    return rows


def fisher(family: Family) -> Array:
    """The covariance of f's slopes in its parameters, which the Fisher information is."""
    params, rebuild = flat(family.truth)
    data = family.draw(FISHER_DRAWS, jax.random.key(SEED + 1))
    slope = jax.grad(lambda w, x: rebuild(w)(x))
    return jnp.cov(jax.vmap(lambda x: slope(params, x))(data), rowvar=False)


def flat(f: Potential) -> tuple[Array, Callable[[Array], Potential]]:
    """f's parameters as a vector, and the way back."""
    params, rebuild = parameters.flat(f)
    return params, lambda w: paramax.unwrap(rebuild(w))


def _error(
    family: Family, estimator: AbstractEstimator, n: int, replicates: int, information: Array
) -> float:
    truth, rebuild = flat(family.truth)
    if isinstance(estimator, NoiseContrastive):
        truth, rebuild = flat(SelfNormalised(family.truth, _log_partition(family.truth)))
    solve = descended if isinstance(estimator, ContrastiveDivergence) else newton

    def one(key: Key) -> Array:
        data_key, memory_key, solve_key = jax.random.split(key, 3)
        data = family.draw(n, data_key)
        memory = estimator.init(data, memory_key)
        found = solve(estimator, rebuild, truth, data, memory, information, solve_key)
        off = (found - truth)[: information.shape[0]]
        return off @ information @ off / off.size

    keys = jax.random.split(jax.random.key(SEED), replicates)
    squares = jax.jit(lambda keys: lax.map(one, keys))(keys)
    return float(jnp.sqrt(jnp.mean(squares)))


def _log_partition(f: Potential) -> float:
    box = isinstance(f, Within)
    domain = Domain(0.0, 1.0) if box else Domain()
    return float(MaximumLikelihood(Quadrature(100, domain)).log_partition(paramax.unwrap(f), 2))


# The families.


def squares(x: Array) -> Array:
    return jnp.array([x[0], x[1], x[0] ** 2, x[1] ** 2, x[0] * x[1]])


def quartics(x: Array) -> Array:
    return jnp.concatenate([squares(x), x**4])


def gaussian() -> Family:
    weights = jnp.array([0.3, -0.5, -0.6, -1.0, 0.7])
    return _plane(Linear(squares, 2, weights=weights), Domain(), (-8.0, 8.0))


def quartic() -> Family:
    weights = jnp.array([0.2, -0.1, 1.0, 0.6, 0.4, -0.4, -0.3])
    return _plane(Linear(quartics, 2, weights=weights), Domain(), (-4.0, 4.0))


def box() -> Family:
    """A Gaussian of mean (0.4, 0.7) and correlation 0.5, of which a good part is cut off."""
    precision = np.linalg.inv(0.3**2 * np.array([[1.0, 0.5], [0.5, 1.0]]))
    pull = precision @ np.array([0.4, 0.7])
    curvature = [-precision[0, 0] / 2, -precision[1, 1] / 2, -precision[0, 1]]
    f = Within(Linear(squares, 2, weights=jnp.array([*pull, *curvature])), 0.0, 1.0)
    return _plane(f, Domain(0.0, 1.0), (0.0, 1.0))


def _plane(f: Potential, domain: Domain, range_: tuple[float, float]) -> Family:
    draw = _grid_sampler(paramax.unwrap(f), range_)
    whole = Quadrature(60, domain)
    strips = (4, *(range_ if np.isfinite(domain.low) else (-2.0, 2.0)))
    edges = [np.unique([*range_, *strip_edges(*strips)]), np.linspace(*range_, 9)]
    nodes = panelled(edges, 12)
    bounded = bool(np.isfinite(domain.low))
    step = 0.15 if bounded else 0.5
    options = Options(steps=10, leapfrogs=3, step_size=step, metropolis=True, per_step=False)
    kernel = hmc(2, options, jax.random.key(0))
    # In a box the boundary term vanishes only with a diffusion that does so there.
    inward = (lambda x: jnp.diag(4 * x * (1 - x))) if bounded else (lambda x: jnp.eye(2))
    scale = 0.3 if bounded else 1.0
    estimators: dict[str, Callable[[int], AbstractEstimator]] = {
        "maximum likelihood": lambda n: MaximumLikelihood(whole),
        "CD-10, HMC": lambda n: ContrastiveDivergence(
            Embedding(Empirical(CentredNormal(2)), kernel)
        ),
        "persistent CD": lambda n: ContrastiveDivergence(Persistent(kernel, 2, n)),
        "score matching": lambda n: ScoreMatching(domain=domain),
        "sliced score matching": lambda n: ScoreMatching(Rademacher(1), domain),
        "denoising score matching": lambda n: DenoisingScoreMatching(0.5 * n**-0.25),
        "kernel Stein, IMQ": lambda n: Blocked(KernelStein(InverseMultiquadric(scale), inward)),
        "pseudo-likelihood": lambda n: pseudo_likelihood(2, Quadrature(40, domain)),
        "non-local, strips": lambda n: Cover(overlapping_strips(*strips), nodes),
        "probability flow, HMC": lambda n: MinimumProbabilityFlow(Hamiltonian(step, 2)),
        "noise contrast, Gaussian": lambda n: NoiseContrastive(GaussianNoise, 4),
    }
    if bounded:
        del estimators["denoising score matching"]  # its noise leaves the box
    return Family(f, draw, estimators)


def ising() -> Family:
    model = Ising(8, np.concatenate([graphs.chain(8), [[0, 7]]]))
    rng = np.random.default_rng(3)
    numbers = jnp.asarray(0.4 * rng.normal(size=8)), jnp.asarray(0.3 * rng.normal(size=8))
    model = eqx.tree_at(lambda m: (m.couplings, m.fields), model, numbers)
    states = jnp.asarray(all_states(model.states, 8))
    values = jax.vmap(model)(states)

    def draw(n: int, key: Key) -> Points:
        return states[jax.random.categorical(key, values, shape=(n,))]

    sweeps = Repeat(Gibbs(model.states), 2)
    flipped = flips(model.states)
    pairs = [(0, 1), (2, 3), (4, 5), (6, 7)]
    estimators: dict[str, Callable[[int], AbstractEstimator]] = {
        "maximum likelihood": lambda n: MaximumLikelihood(Counting()),
        "CD-2, Gibbs": lambda n: ContrastiveDivergence(
            Embedding(Empirical(CentredNormal(0)), sweeps)
        ),
        "persistent CD": lambda n: ContrastiveDivergence(Persistent(sweeps, 0, n)),
        "pseudo-likelihood": lambda n: pseudo_likelihood(8, Counting()),
        "composite likelihood, pairs": lambda n: CompositeLikelihood(pairs, Counting()),
        "non-local, neighbourhoods": lambda n: Neighbourhoods(flipped),
        "probability flow, flips": lambda n: MinimumProbabilityFlow(Neighbours(flipped)),
    }
    return Family(model, draw, estimators)


FAMILIES = {"gaussian": gaussian, "quartic": quartic, "box": box, "ising": ising}


def _grid_sampler(f: Potential, ends: tuple[float, float]) -> Callable[[int, Key], Points]:
    """Cells of a fine grid by their probability, and uniformly within a cell."""
    width = (ends[1] - ends[0]) / CELLS
    side = ends[0] + width * (jnp.arange(CELLS) + 0.5)
    rows = lax.map(lambda a: jax.vmap(lambda b: f(jnp.stack([a, b])))(side), side)
    cumulative = jnp.cumsum(jnp.exp(rows - jnp.max(rows)).ravel())

    def draw(n: int, key: Key) -> Points:
        cell_key, place_key = jax.random.split(key)
        ticks = jax.random.uniform(cell_key, (n,), cumulative.dtype) * cumulative[-1]
        cells = jnp.searchsorted(cumulative, ticks)
        corners = jnp.stack([side[cells // CELLS], side[cells % CELLS]], axis=1)
        return corners + width * (jax.random.uniform(place_key, (n, 2), side.dtype) - 0.5)

    return draw


# What is written.


def as_markdown(result: dict[str, Any]) -> str:
    about, sizes = result["provenance"], result["sizes"]
    slopes = [row["slope"] for row in result["rows"]]
    heads = " | ".join(f"error, n = {n:,}" for n in sizes)
    lines = [
        "# Consistency and efficiency of the estimators",
        "",
        f"{result['replicates']} data sets of each size. Errors in the Fisher metric (maximum "
        "likelihood's is about n^(-1/2)); efficiency is maximum likelihood's mean square over the "
        "estimator's at the largest n. An error that falls as n^(-1/2) has the slope -0.5: here "
        f"they are {min(slopes):.2f} to {max(slopes):.2f}.",
        "",
        f"Commit {about['commit']}, {about['device']}, {versions(about)}. Made by "
        "`python -m benchmarks.consistency`. ![](consistency.png)",
    ]
    for family in dict.fromkeys(row["family"] for row in result["rows"]):
        lines += ["", f"## {family}", "", f"| estimator | {heads} | slope | efficiency |"]
        lines += ["|---|" + "---|" * (len(sizes) + 2)]
        for row in result["rows"]:
            if row["family"] == family:
                errors = " | ".join(f"{error:.4f}" for error in row["errors"])
                how = f"{row['slope']:.2f} | {row['efficiency']:.2f}"
                lines.append(f"| {row['estimator']} | {errors} | {how} |")
    return "\n".join([*lines, ""])


def picture(result: dict[str, Any], path: Path) -> None:
    """Errors times the square root of n, a panel a family: level where the rate is right."""
    families = list(dict.fromkeys(row["family"] for row in result["rows"]))
    sizes = np.array(result["sizes"])
    title = "Error of the estimators times √n, in the Fisher metric"
    with new_figure(title, (10.0, 8.0)) as figure:
        axes = figure.subplots(2, 2, sharex=True, sharey=True).ravel()
        for axis, family in zip(axes, families, strict=False):
            _panel(axis, [row for row in result["rows"] if row["family"] == family], sizes)
            axis.set_title(family)
        figure.savefig(path, dpi=150)


def _panel(axis, rows: list[dict[str, Any]], sizes: np.ndarray) -> None:
    for index, row in enumerate(rows):
        style = {"color": f"C{index % 10}", "marker": "os^vD<>pP*X"[index % 11]}
        level = np.array(row["errors"]) * sizes**0.5
        axis.semilogx(sizes, level, label=row["estimator"], markersize=4, linewidth=1, **style)
    axis.set_ylim(0, 2.4)
    axis.set_xlabel("n")
    axis.set_ylabel("error × √n")
    axis.legend(fontsize=6.5, frameon=False, ncols=2, loc="upper left")
    axis.label_outer()


if __name__ == "__main__":
    main()
