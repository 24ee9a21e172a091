"""Do 95% intervals cover 95%, after a real training too?

    python -m benchmarks.standard_errors [--rows 1000] [--replications 400] [--steps 2000]
                                         [--out benchmarks/results]

The quartic family f(x) = w1 x² + w2 x⁴ in one dimension, at w = (1, -1/2). On each data set f is
fitted by adversarial dynamics embedding as the library does it, from a small flow and with
mini-batches, all replications under one `vmap`; its covariance is the inverse information by the
embedding's own weighted draws. Beside it, on the same data, the classical estimators at their
optimum: maximum likelihood with the information and with the sandwich, the others with the
sandwich.
"""

import argparse
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import paramax
from jax import lax

from benchmarks.optimum import descended, newton
from benchmarks.record import RESULTS, provenance, write
from fenchel.build import build
from fenchel.config import Config
from fenchel.dynamics import CentredNormal, Options, hmc
from fenchel.estimators import (
    AbstractEstimator,
    ContrastiveDivergence,
    GaussianNoise,
    Hamiltonian,
    KernelStein,
    MaximumLikelihood,
    MinimumProbabilityFlow,
    Nodes,
    NoiseContrastive,
    Quadrature,
    ScoreMatching,
)
from fenchel.evaluate.standard_errors import (
    Asymptotics,
    Moments,
    WeightedDraws,
    information,
    inverse_information,
    moments,
    sandwich,
)
from fenchel.parameters import flat
from fenchel.potentials import Linear, SelfNormalised
from fenchel.samplers import AbstractSampler, Embedding
from fenchel.shapes import Array, Key, Points, Potential
from fenchel.starts import Empirical
from fenchel.train import Batches, run_many

SEED = 17
TRUTH = (1.0, -0.5)
BEGINNING = (0.5, -0.3)  # of the training
NAMES = ("w1", "w2")
TOGETHER = 50  # replications at a time, after the training
DRAWS = 2**16  # of the embedding, for the information
REPEATS = 16
NORMAL_95 = 1.959964
WHOLE = Quadrature(60)

CONFIG = Config().with_values(
    potential__kind="custom",
    start__layers=2,
    start__width=16,
    start__depth=1,
    dynamics__steps=2,
    training__sampler_steps=1,
    training__potential_rate=1e-2,
    training__final_rate=0.01,
    training__averaging=0.1,
    training__noise=0.0,
)


class Study(NamedTuple):
    """Estimates (replication, parameter), and what is claimed of them."""

    estimates: np.ndarray
    claimed: Asymptotics


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=1_000)
    parser.add_argument("--replications", type=int, default=400)
    parser.add_argument("--steps", type=int, default=2_000)
    parser.add_argument("--draws", type=int, default=DRAWS)
    parser.add_argument("--out", type=Path, default=RESULTS)
    arguments = parser.parse_args()
    keys = jax.random.split(jax.random.key(SEED), arguments.replications)
    data = jax.jit(jax.vmap(lambda key: quartic_rows(arguments.rows, key)))(keys)
    result: dict[str, Any] = {"provenance": provenance(), "truth": TRUTH, "rows": []}
    result["settings"] = {name: getattr(arguments, name) for name in ("rows", "replications")}
    result["settings"] |= {"steps": arguments.steps, "draws": arguments.draws}
    for name, study in studies(data, arguments.steps, arguments.draws):
        result["rows"] += rows_of(name, study)
        print(*result["rows"][-len(NAMES) :], sep="\n", flush=True)
        # Written after each, so that a run cut short leaves what it had.
        write("standard_errors", result, as_markdown(result), arguments.out)


def studies(data: Array, steps: int, draws: int):
    """Each estimator by name, with its study."""
    began = time.perf_counter()
    embedded, finished = dynamics_embedding(data, steps, draws)
    print(f"trained and drawn in {time.perf_counter() - began:.0f} s", flush=True)
    yield "ADE, as trained", embedded
    yield "ADE, one Newton step more", finished
    f = quartic(TRUTH)
    rows = data.shape[1]
    estimates, found = at_optimum(MaximumLikelihood(WHOLE), f, data)
    matrices = _jitted_map(lambda w: information(quartic(w), _nodes(quartic(w))), estimates)
    yield "maximum likelihood", Study(estimates, inverse_information(found, matrices, rows))
    yield "maximum likelihood, sandwich", Study(estimates, sandwich(found, rows))
    normalised = SelfNormalised(f, float(MaximumLikelihood(WHOLE).log_partition(f, 1)))
    options = Options(steps=5, leapfrogs=3, step_size=0.3, metropolis=True, per_step=False)
    kernel = hmc(1, options, jax.random.key(0))
    chains = Embedding(Empirical(CentredNormal(1)), kernel)
    # Over how many draws of its own noise each is averaged: Newton's method keeps one.
    others: list[tuple[str, AbstractEstimator, Potential, float, Callable]] = [
        ("score matching", ScoreMatching(), f, 1, newton),
        ("noise contrast, ν = 4", NoiseContrastive(GaussianNoise, 4), normalised, 1, newton),
        ("CD-5, HMC", ContrastiveDivergence(chains), f, np.inf, descended),
        ("probability flow, HMC", MinimumProbabilityFlow(Hamiltonian(0.5, 2)), f, 1, newton),
        ("kernel Stein, IMQ", KernelStein(), f, np.inf, newton),
    ]
    for name, estimator, potential, passes, solve in others:
        estimates, found = at_optimum(estimator, potential, data, solve)
        yield name, Study(estimates, sandwich(found, rows, passes))


# The family.


def quartic(weights) -> Linear:
    statistics = lambda x: jnp.stack([x[0] ** 2, x[0] ** 4])  # noqa: E731
    return Linear(statistics, 1, NAMES, jnp.asarray(weights, float))


def quartic_rows(count: int, key: Key) -> Points:
    """By the inverse of the distribution function on a fine grid."""
    grid = jnp.linspace(-4.0, 4.0, 8_001)
    cumulative = jnp.cumsum(jnp.exp(jax.vmap(quartic(TRUTH))(grid[:, None])))
    return jnp.interp(jax.random.uniform(key, (count, 1)), cumulative / cumulative[-1], grid)


def _nodes(f: Potential) -> Nodes:
    return WHOLE.nodes(f, jnp.zeros(1), jnp.arange(1))


# What fits it.


def dynamics_embedding(data: Array, steps: int, draws: int) -> tuple[Study, Study]:
    """Trained, and after one step of Newton's by the embedding's own draws."""
    config = CONFIG.with_values(training__steps=steps)
    parts = build(config, 1, potential=quartic(BEGINNING))
    keys = jax.random.split(jax.random.key(SEED + 1), len(data))
    begin = lambda data, key: parts.learner.init(parts.potential, parts.sampler, data, key)  # noqa: E731
    states = eqx.filter_jit(eqx.filter_vmap(begin))(data, keys)
    batches = Batches(data, config.training.batch)
    for block in run_many(parts.learner, states, batches, steps, block=min(500, steps)):
        lag = np.max(np.mean(block.info.lag, axis=1))
        print(f"iteration {block.iteration}: worst lag {lag:.3f} nats", flush=True)
    f, sampler = block.state.averaged()
    trained = _study(f, sampler, data, keys, draws)
    weights = jnp.asarray(trained.estimates + trained.claimed.step, f.weights.dtype)
    finished = eqx.tree_at(lambda f: f.weights, f, weights)
    return trained, _study(finished, sampler, data, keys, draws)


def _study(f: Linear, sampler: AbstractSampler, data: Array, keys: Array, draws: int) -> Study:
    """Of many potentials and their embeddings: the inverse information by weighted draws."""

    def once(inputs: tuple[Potential, AbstractSampler, Points, Key]) -> tuple[Moments, Array]:
        f, sampler, points, key = inputs
        particles, _ = sampler.draw(f, jnp.zeros((draws, 1)), None, key)
        nodes = Nodes(particles.x, particles.log_weight - particles.f)
        estimator = MaximumLikelihood(WeightedDraws(nodes))
        return moments(estimator, f, points, None, key), information(f, nodes)

    arrays, rest = eqx.partition((f, sampler, data, keys), eqx.is_array)
    found, matrices = _jitted_map(lambda arrays: once(eqx.combine(arrays, rest)), arrays)
    claimed = inverse_information(found, matrices, data.shape[1])
    return Study(np.asarray(f.weights, np.float64), claimed)


def at_optimum(
    estimator: AbstractEstimator, f: Potential, data: Array, solve: Callable = newton
) -> tuple[np.ndarray, Moments]:
    """Estimates and moments, one a data set, begun at the truth."""
    start, rebuild = flat(f)
    model = lambda w: paramax.unwrap(rebuild(w))  # noqa: E731
    metric = information(quartic(TRUTH), _nodes(quartic(TRUTH)))

    def once(inputs: tuple[Points, Key]) -> tuple[Array, Moments]:
        points, key = inputs
        memory_key, own_key, moments_key = jax.random.split(key, 3)
        memory = estimator.init(points, memory_key)
        w = solve(estimator, model, start, points, memory, metric, own_key)
        return w, moments(estimator, rebuild(w), points, memory, moments_key, repeats=REPEATS)

    keys = jax.random.split(jax.random.key(SEED + 2), len(data))
    estimates, found = _jitted_map(once, (data, keys))
    return np.asarray(estimates, np.float64), found


def _jitted_map(once: Callable, inputs):
    return jax.jit(lambda inputs: lax.map(once, inputs, batch_size=TOGETHER))(inputs)


# What is written.


def rows_of(name: str, study: Study) -> list[dict[str, Any]]:
    """Coverage of each parameter's interval, with its binomial error."""
    rows = []
    for index, parameter in enumerate(NAMES):
        errors = np.sqrt(study.claimed.covariance[:, index, index])
        estimates = study.estimates[:, index]
        covered = float(np.mean(np.abs(estimates - TRUTH[index]) < NORMAL_95 * errors))
        rows.append(
            {
                "estimator": name,
                "parameter": parameter,
                "coverage": covered,
                "binomial_error": (covered * (1 - covered) / len(estimates)) ** 0.5,
                "standard_error": float(np.mean(errors)),
                "spread": float(np.std(estimates)),
                "bias": float(np.mean(estimates) - TRUTH[index]),
                "distance": float(np.median(np.abs(study.claimed.step[:, index]) / errors)),
            }
        )
    return rows


def as_markdown(result: dict[str, Any]) -> str:
    about, settings = result["provenance"], result["settings"]
    versions = ", ".join(f"{name} {version}" for name, version in about["packages"].items())
    lines = [
        "# Coverage of 95% intervals",
        "",
        f"{settings['replications']} data sets of {settings['rows']:,} rows from the quartic "
        f"family f(x) = w1 x² + w2 x⁴, w = {TRUTH}. ADE was trained for {settings['steps']:,} "
        f"steps on each; its covariance is the inverse information by {settings['draws']:,} of "
        "its own weighted draws. *Claimed* is the mean standard error, *spread* the standard "
        "deviation of the estimates; *to the optimum*, in standard errors, is the median length "
        "of the Newton step that training left undone.",
        "",
        f"Commit {about['commit']}, {about['device']}, {versions}. Made by "
        "`python -m benchmarks.standard_errors`.",
        "",
        "| estimator | parameter | coverage | claimed | spread | bias | to the optimum |",
        "|---|---|---|---|---|---|---|",
    ]
    for row in result["rows"]:
        cells = [
            row["estimator"],
            row["parameter"],
            f"{row['coverage']:.1%} ± {row['binomial_error']:.1%}",
            *(f"{row[name]:.4f}" for name in ("standard_error", "spread", "bias")),
            f"{row['distance']:.2f}",
        ]
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join([*lines, ""])


if __name__ == "__main__":
    main()
