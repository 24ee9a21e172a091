"""How good are the estimates of log|det(I + η H)|, on Hessians of f's that were trained?

    python -m benchmarks.log_det [--steps 600] [--draws 200] [--out benchmarks/results]

f is trained on data of 2, 16 and 128 dimensions (rings in pairs of coordinates, mixed by a
rotation), and its Hessians are taken at fresh data points. The step η puts η δ at 0.3, 0.6 and 0.9.
For each estimator, at equal cost (Hessian-vector products a probe):

- *bias*: its truncation error, with every direction as a probe, so that nothing is random;
- *standard deviation* with one Rademacher probe, and with the mean of 4, 16 and 64;
- *coverage* of the 95% confidence interval, for 64 probes around the estimator's own limit: what a
  user would report. Between 93 and 97% is as it should be.

Errors are in nats, root mean squares over the points.
"""

import argparse
import time
from pathlib import Path
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from benchmarks.record import RESULTS, provenance, versions, write
from fenchel import fit
from fenchel.dynamics import Basis, ChebyshevLogDet, Given, LanczosLogDet, Rademacher, TaylorLogDet
from fenchel.report.style import new_figure

DIMENSIONS = (2, 16, 128)
STRAINS = (0.3, 0.6, 0.9)
ORDERS = (1, 2, 4, 8, 16)
KINDS = {"Taylor": TaylorLogDet, "Chebyshev": ChebyshevLogDet, "Lanczos": LanczosLogDet}
POINTS = 8
PROBES = 64
MEANS = (1, 4, 16, PROBES)  # probes whose mean is taken, for the noise against their number
NOISE_ORDER = 8
UNIT = Given(1.0)  # δ = 1: the step itself says how large A is
SEED = 5


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--steps", type=int, default=600)
    parser.add_argument("--draws", type=int, default=200)
    parser.add_argument("--out", type=Path, default=RESULTS)
    arguments = parser.parse_args()
    began = time.perf_counter()
    result: dict[str, Any] = {"provenance": provenance(), "steps": arguments.steps, "rows": []}
    for dim in DIMENSIONS:
        hessians = trained_hessians(dim, arguments.steps)
        for strain in STRAINS:
            rows = study(hessians, strain, arguments.draws)
            result["rows"] += [{"dim": dim, "strain": strain, **row} for row in rows]
            print(f"d = {dim}, strain {strain}: {time.perf_counter() - began:.0f} s", flush=True)
    write("log_det", result, as_markdown(result), arguments.out)
    picture(result, arguments.out / "log_det.png")


def rings(dim: int, rows: int, seed: int) -> np.ndarray:
    """Noisy rings in pairs of coordinates, mixed by a rotation."""
    rng = np.random.default_rng(seed)
    angles = rng.uniform(0, 2 * np.pi, (rows, dim // 2))
    pairs = np.stack([np.cos(angles), np.sin(angles)], -1).reshape(rows, dim)
    rotation, _ = np.linalg.qr(np.random.default_rng(0).normal(size=(dim, dim)))
    return (pairs + 0.15 * rng.normal(size=pairs.shape)) @ rotation


def trained_hessians(dim: int, steps: int) -> jax.Array:
    model = fit(rings(dim, 20_000, SEED), steps=steps, seed=SEED, progress=False)
    fresh = model.standardiser.forward(rings(dim, POINTS, SEED + 1))
    f = model.f
    return jax.jit(jax.vmap(jax.hessian(f)))(jnp.asarray(fresh, jnp.float32))


def study(hessians: jax.Array, strain: float, draws: int) -> list[dict[str, Any]]:
    """Every estimator on Hessians scaled so that each has its η δ at `strain`."""
    dim = hessians.shape[-1]
    radii = jnp.max(jnp.abs(jnp.linalg.eigvalsh(hessians)), -1)
    scaled = strain * hessians / radii[:, None, None]
    truth = np.asarray(
        np.linalg.slogdet(np.eye(dim) + np.asarray(scaled, np.float64))[1], np.float64
    )
    rows = []
    for name, kind in KINDS.items():
        for order in ORDERS:
            if name == "Lanczos" and order > dim:
                continue
            limits = np.asarray(_estimates(kind(order, Basis(), UNIT), scaled, strain, 1)[:, 0])
            noisy = kind(order, Rademacher(1), UNIT)
            one = np.asarray(_estimates(noisy, scaled, strain, draws * PROBES), np.float64)
            # A quadrature's nodes depend on its probe: its mean is not what all directions give.
            centre = one.mean(1) if name == "Lanczos" else limits
            rows.append(
                {
                    "estimator": name,
                    "order": order,
                    "bias": float(np.sqrt(np.mean((limits - truth) ** 2))),
                    "deviations": [_deviation(one, probes) for probes in MEANS],
                    "coverage": _coverage(one.reshape(len(one), draws, PROBES), centre),
                }
            )
    return rows


def _deviation(one: np.ndarray, probes: int) -> float:
    """Of the mean of so many probes: (matrix, draw) of one-probe estimates, taken in groups."""
    means = one.reshape(len(one), -1, probes).mean(-1)
    return float(np.sqrt(np.mean(means.var(1))))


def _coverage(values: np.ndarray, limits: np.ndarray) -> float | None:
    """How often mean ± t s / sqrt(n) holds the limit; None where there is no noise at all."""
    deviation = values.std(-1, ddof=1)
    if np.max(deviation) < 1e-5:
        return None
    half = 1.998 * deviation / PROBES**0.5  # Student's t with 63 degrees of freedom
    off = np.abs(values.mean(-1) - limits[:, None])
    rounding = 1e-5 * (1 + np.abs(limits[:, None]))
    return float(np.mean(off <= half + rounding))


def _estimates(log_det, matrices: jax.Array, strain: float, draws: int) -> jax.Array:
    """(matrix, draw) of estimates."""
    keys = jax.random.split(jax.random.key(SEED), (len(matrices), draws))
    step = jnp.asarray(strain)
    return jnp.stack(
        [_of_one(log_det, matrix, step, own) for matrix, own in zip(matrices, keys, strict=True)]
    )


@eqx.filter_jit
def _of_one(log_det, matrix: jax.Array, step: jax.Array, keys: jax.Array) -> jax.Array:
    origin = jnp.zeros(matrix.shape[0])
    one = lambda key: log_det(lambda x: matrix @ x, origin, step, key).log_det  # noqa: E731
    return jax.lax.map(one, keys, batch_size=1_024)


def as_markdown(result: dict[str, Any]) -> str:
    about = result["provenance"]
    covered = [row["coverage"] for row in result["rows"] if row["coverage"] is not None]
    within = sum(0.93 <= value <= 0.97 for value in covered)
    pairs = _pairs(result["rows"])
    won = sum(chebyshev <= taylor + 1e-5 for taylor, chebyshev in pairs)
    lines = [
        "# Estimates of log|det(I + η H)|",
        "",
        f"Hessians of f's trained for {result['steps']:,} iterations, at {POINTS} fresh points "
        "each; errors in nats, root mean squares over the points. Of the truncation errors at "
        f"order 2 and more, Chebyshev's is the smaller (or both are rounding) in {won} of "
        f"{len(pairs)}. 95% confidence intervals from {PROBES} probes cover the limit in "
        f"{100 * min(covered):.1f} to {100 * max(covered):.1f}% of cases; {within} of "
        f"{len(covered)} are within 93 to 97%.",
        "",
        f"Commit {about['commit']}, {about['device']}, {versions(about)}. Made by "
        "`python -m benchmarks.log_det`. ![](log_det.png)",
    ]
    for dim in DIMENSIONS:
        lines += ["", f"## d = {dim}", "", _header(), "|---|---|" + "---|" * 3 * len(STRAINS)]
        lines += _table(result["rows"], dim)
    lines += ["", "## Noise against the number of probes", "", _noise_text(), ""]
    lines += _noise_table(result["rows"])
    return "\n".join([*lines, ""])


def _noise_text() -> str:
    return (
        f"Standard deviation of the mean of so many probes, in nats, at {NOISE_ORDER} products a "
        "probe (2 for Lanczos in two dimensions), and what is left of it times the square root of "
        "their number: level columns there are independent probes."
    )


def _noise_table(rows: list[dict[str, Any]]) -> list[str]:
    heads = [f"{probes} probe{'s' * (probes > 1)}" for probes in MEANS]
    scaled = [f"√{probes} × that" for probes in MEANS[1:]]
    lines = ["| d | η δ | estimator | " + " | ".join(heads + scaled) + " |"]
    lines.append("|---|---|---|" + "---|" * (len(heads) + len(scaled)))
    for row in _at_noise_order(rows):
        values = row["deviations"]
        level = [probes**0.5 * value for probes, value in zip(MEANS, values, strict=True)][1:]
        numbers = " | ".join(f"{value:.1e}" for value in [*values, *level])
        lines.append(f"| {row['dim']} | {row['strain']} | {row['estimator']} | {numbers} |")
    return lines


def _at_noise_order(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """One row for each estimator, dimension and strain: Lanczos takes no more than d products."""

    def wanted(row: dict[str, Any]) -> int:
        return min(NOISE_ORDER, row["dim"]) if row["estimator"] == "Lanczos" else NOISE_ORDER

    return [row for row in rows if row["order"] == wanted(row)]


def _pairs(rows: list[dict[str, Any]]) -> list[tuple[float, float]]:
    """(Taylor's bias, Chebyshev's) at equal dimension, strain and order, from order 2 on."""
    bias = {(r["estimator"], r["dim"], r["strain"], r["order"]): r["bias"] for r in rows}
    return [
        (value, bias["Chebyshev", *where])
        for (name, *where), value in bias.items()
        if name == "Taylor" and where[-1] >= 2
    ]


def _header() -> str:
    parts = [f"bias, η δ = {s} | deviation | coverage" for s in STRAINS]
    return "| estimator | products | " + " | ".join(parts) + " |"


def _table(rows: list[dict[str, Any]], dim: int) -> list[str]:
    lines = []
    for name in KINDS:
        for order in ORDERS:
            cells = [
                row
                for row in rows
                if (row["dim"], row["estimator"], row["order"]) == (dim, name, order)
            ]
            if cells:
                texts = [_cell(row) for row in cells]
                lines.append(f"| {name} | {order} | " + " | ".join(texts) + " |")
    return lines


def _cell(row: dict[str, Any]) -> str:
    coverage = "-" if row["coverage"] is None else f"{100 * row['coverage']:.1f}%"
    return f"{row['bias']:.1e} | {row['deviations'][0]:.1e} | {coverage}"


def picture(result: dict[str, Any], path: Path) -> None:
    """Truncation error and one probe's noise against products; noise against probes below."""
    with new_figure("Estimates of log|det(I + η H)|", (9.0, 10.5)) as figure:
        upper, lower = figure.subfigures(2, 1, height_ratios=(3, 1.1))
        axes = upper.subplots(len(DIMENSIONS), len(STRAINS), sharex=True, sharey=True)
        for i, dim in enumerate(DIMENSIONS):
            for j, strain in enumerate(STRAINS):
                _panel(axes[i, j], result["rows"], dim, strain)
        handles, labels = axes[-1, -1].get_legend_handles_labels()
        upper.legend(handles, labels, loc="outside lower center", ncols=3, frameon=False)
        for axis, dim in zip(
            lower.subplots(1, len(DIMENSIONS), sharey=True), DIMENSIONS, strict=True
        ):
            _noise_panel(axis, result["rows"], dim)
        figure.savefig(path, dpi=150)


def _panel(axis, rows: list[dict[str, Any]], dim: int, strain: float) -> None:
    for index, name in enumerate(KINDS):
        key = (dim, strain, name)
        mine = [row for row in rows if (row["dim"], row["strain"], row["estimator"]) == key]
        orders = [row["order"] for row in mine]
        colour = f"C{index}"
        bias = [max(row["bias"], 1e-7) for row in mine]
        axis.loglog(orders, bias, "o-", color=colour, label=f"{name}: truncation")
        deviation = [max(row["deviations"][0], 1e-7) for row in mine]
        axis.loglog(orders, deviation, ":", color=colour, label=f"{name}: one probe's noise")
    axis.set_title(f"d = {dim}, η δ = {strain}", fontsize=9)
    axis.set_xlabel("products with H")
    axis.set_ylabel("nats")
    axis.label_outer()


def _noise_panel(axis, rows: list[dict[str, Any]], dim: int) -> None:
    """The steepest strain: standard deviation against probes, with the line 1 / sqrt(n)."""
    for index, name in enumerate(KINDS):
        key = (dim, STRAINS[-1], name)
        for row in _at_noise_order(rows):
            if (row["dim"], row["strain"], row["estimator"]) == key:
                axis.loglog(MEANS, row["deviations"], "os^"[index], color=f"C{index}", label=name)
                line = row["deviations"][0] / np.sqrt(MEANS)
                axis.loglog(MEANS, line, "-", color=f"C{index}", linewidth=0.8)
    axis.set_title(f"d = {dim}, η δ = {STRAINS[-1]}: points, and lines 1/√n", fontsize=9)
    axis.set_xlabel("probes")
    axis.set_ylabel("noise in nats")
    axis.label_outer()


if __name__ == "__main__":
    main()
