"""The recovery of a Gaussian, for people."""

from typing import Any

from fenchel.bench.markdown import number, table
from fenchel.bench.presets import RECOVERY
from fenchel.bench.provenance import in_words
from fenchel.report.findings import sentence

INTRODUCTION = """\
Mean -1 and standard deviation 0.1 in every dimension. Errors are root mean squares over dimensions,
in units of the true standard deviation, the median over seeds; that of the maximum likelihood
estimate (`mle`, in closed form) is the sampling error, which no method should be expected to beat.
Every f begins at a mean drawn from N(0, 1) and a log precision drawn from N(0, 1), in the units
that it sees: standard units for `ade`, the data's own for the others."""


def as_markdown(results: dict[str, Any]) -> str:
    settings, rows = results["settings"], results["rows"]
    seeds = ", ".join(map(str, settings["seeds"]))
    expected = settings["rows"] ** -0.5
    about = f"{settings['rows']:,} rows, seeds {seeds}; expected of the maximum likelihood "
    about += f"estimate: {expected:.4f} for the mean, {expected / 2**0.5:.4f} for the deviation."
    header = ["method", "units", "dimension", "error of the mean", "of the standard deviation"]
    lines = [
        [
            f"`{row['method']}`",
            _units(row["method"]),
            str(row["dim"]),
            number(row["mean_error"], 4),
            number(row["sd_error"], 4),
            f"{sum(run.get('diverged', False) for run in row['runs'])} of {len(row['runs'])}",
            number(row["seconds"], 1),
        ]
        for row in rows
    ]
    machines = dict.fromkeys(in_words(row["provenance"]) for row in rows)
    parts = [
        "# Recovering a Gaussian's parameters",
        f"{INTRODUCTION} {about}",
        table([*header, "diverged", "seconds, all seeds"], lines),
        "\n".join(f"- {sentence(machine)}" for machine in machines),
        "Made by `fenchel bench gaussian`.",
    ]
    return "\n\n".join(parts) + "\n"


def _units(method: str) -> str:
    return "standard" if method in RECOVERY and RECOVERY[method].standardised else "the data's"
