"""The results of `benchmarks.images` as Markdown."""

from typing import Any

from benchmarks.record import versions

# Aims, and what prototypes took, for a batch of 64 on an H200, in milliseconds an iteration.
SAID = {
    "detached": {"target": 7, "prototype": 10.7, "PyTorch, eager": 84, "PyTorch, CUDA graphs": 21},
    "bptt": {"target": 16, "prototype": 25.5, "PyTorch, eager": 155, "PyTorch, CUDA graphs": 102},
}
TWINNED = "cifar10-paper"  # the preset of which there is a twin in PyTorch
TWINS = (
    "The twins do the same work in PyTorch (`--check` holds them to it), without guard, trust and "
    "health record. *Score written out* is a twin whose score is not left to autograd, so that "
    "nothing is differentiated twice."
)
WORDS = {"detached": "detached", "bptt": "through time"}
NONE = "–"


def as_markdown(result: dict[str, Any]) -> str:
    return (
        "\n".join(
            [
                "# Speed on pictures",
                "",
                *_heading(result),
                "",
                *_times(result),
                "",
                *(_said(result["cells"]) if result["preset"] == TWINNED else []),
                *_roofline(result),
            ]
        )
        + "\n"
    )


def _heading(result: dict[str, Any]) -> list[str]:
    about, settings = result["provenance"], result["settings"]
    busy = "" if result["load_before"] < 0.5 * result["cores"] else " **The machine was busy.**"
    twins = TWINS if result["preset"] == TWINNED else "No twin in PyTorch does this work."
    size = " **Tiny nets: a smoke test.**" if result["tiny"] else ""
    return [
        f"Commit {about['commit']}, {about['device']}, {about['cpu']} ({result['cores']} cores), "
        f"Python {about['python']}, {versions(about)}. Made by `python -m benchmarks.images` in "
        f"{result['seconds']:.0f} s; load before it {result['load_before']:.1f}.{busy}{size}",
        "",
        f"The `{result['preset']}` preset on random pictures, "
        f"{settings['dynamics']['steps']} damped steps, {settings['potential']['precision']}. "
        f"Medians of {result['rounds']} rounds, taken in turns in one process after compilation "
        f"and warm-up. {twins}",
    ]


def _times(result: dict[str, Any]) -> list[str]:
    lines = [
        "## One iteration",
        "",
        "The limits are those of the operations alone, see below; beside them, what part of the "
        "time they are.",
        "",
        "| batch | gradient | | ms (best) | pictures a second | relative to Fenchel "
        "| limit by data sheet, ms | reached | limit by measured peak, ms | reached "
        "| memory, GB | compilation, s |",
        "|" + "---|" * 12,
    ]
    for cell in result["cells"]:
        for name, entry in cell["entries"].items():
            lines.append(_row(cell, name, entry, result["peaks"]))
    if not all(cell["in_turns"] for cell in result["cells"]):
        lines += ["", _apart(result["cells"])]
    return lines


def _row(cell: dict[str, Any], name: str, entry: dict[str, Any], peaks: dict[str, Any]) -> str:
    ms = entry.get("milliseconds")
    if ms is None:
        columns = [entry["not_available"], *[""] * 6]
    else:
        limits = [_limit(cell, peaks[peak]) for peak in ("data_sheet", "measured")]
        columns = [f"{ms:.2f} ({entry['best']:.2f})", f"{1e3 * cell['batch'] / ms:,.0f}"]
        columns.append(_number(entry.get("times_fenchel"), ".2f"))
        for limit in limits:
            columns += [_number(limit, ".3g"), _number(limit and limit / ms, ".1%")]
    memory = entry.get("memory")
    columns += [
        _number(memory and memory / 1e9, ".3g"),
        _number(entry.get("compile_seconds"), ".1f"),
    ]
    head = [str(cell["batch"]), WORDS[cell["gradient"]], name]
    return "| " + " | ".join(head + columns) + " |"


def _apart(cells: list[dict[str, Any]]) -> str:
    which = [f"{WORDS[c['gradient']]} at {c['batch']}" for c in cells if not c["in_turns"]]
    return f"Not in turns but one after the other, for want of memory: {', '.join(which)}."


def _said(cells: list[dict[str, Any]]) -> list[str]:
    lines = [
        "## Beside what was said",
        "",
        "Batch 64 on an H200, in milliseconds; now, in brackets.",
        "",
        "| gradient | target | prototype | PyTorch, eager | PyTorch, CUDA graphs |",
        "|---|---|---|---|---|",
    ]
    for gradient, said in SAID.items():
        found = [c["entries"] for c in cells if (c["batch"], c["gradient"]) == (64, gradient)]
        now = found[0] if found else {}
        names = ("Fenchel", "Fenchel", "PyTorch, eager", "PyTorch, CUDA graphs")
        times = [now.get(name, {}).get("milliseconds") for name in names]
        pairs = zip(said.values(), times, strict=True)
        columns = [f"{before} ({_number(after, '.1f')})" for before, after in pairs]
        lines.append("| " + " | ".join([WORDS[gradient], *columns]) + " |")
    return [*lines, ""]


def _roofline(result: dict[str, Any]) -> list[str]:
    peaks = result["peaks"]
    sheet = _number(peaks["data_sheet"] and peaks["data_sheet"] / 1e12, ".0f")
    lines = [
        "## The least that must be done",
        "",
        "Operations of convolutions and products, from the layers' shapes (`image_roofline`), in "
        f"GFLOP a picture. Peaks in bfloat16: {sheet} TFLOP/s by the data sheet, "
        f"{peaks['measured'] / 1e12:.4g} measured on a large product of random matrices. *Through "
        "time* counts what is left of the trajectory's derivative for a piecewise linear f; in "
        "brackets, all as it would be for a curved one.",
        "",
        "| gradient | scores | data | gradients of weights | generator | penalty | pairs "
        "| through time | all |",
        "|" + "---|" * 9,
    ]
    for cell in {cell["gradient"]: cell for cell in result["cells"]}.values():
        each = {name: count / cell["batch"] / 1e9 for name, count in cell["operations"].items()}
        curved = cell["operations_if_curved"] / cell["batch"] / 1e9
        names = ("scores", "data", "weights", "generator", "penalty", "pairs", "through_time")
        columns = [_number(each.get(name), ".3g") for name in names]
        columns.append(f"{sum(each.values()):.3g} ({curved:.3g})")
        lines.append("| " + " | ".join([WORDS[cell["gradient"]], *columns]) + " |")
    return lines


def _limit(cell: dict[str, Any], peak: float | None) -> float | None:
    """In milliseconds."""
    return None if peak is None else 1e3 * sum(cell["operations"].values()) / peak


def _number(value: float | None, form: str) -> str:
    return NONE if value is None else format(value, form)
