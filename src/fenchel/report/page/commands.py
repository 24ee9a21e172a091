"""How to make the run again: the exact commands."""

import json
import shlex
from typing import Any

from fenchel.build import CUSTOM
from fenchel.config import Config
from fenchel.report.page.elements import section
from fenchel.report.page.markup import Markup, tag
from fenchel.report.page.settings import Settings, flat

FLAGS = {
    "method": "--method",
    "potential.kind": "--potential",
    "start.kind": "--start",
    "dynamics.kind": "--dynamics",
    "training.steps": "--steps",
    "seed": "--seed",
}
FOLDER, FILE = "again", "settings.json"


def commands_section(record: dict[str, Any], source: str) -> Markup:
    config = record["config"]
    parts = [config.get("method"), *(part.get("kind") for part in _sections(config).values())]
    if CUSTOM in parts:
        lead = (
            "Parts of this run were objects of your own, which no file describes: run the script "
            "that made them again."
        )
        return section("reproduce", "Reproduce", lead)
    jax = record.get("packages", {}).get("jax", "")
    lead = (
        f"With Fenchel {record.get('version', '')}, JAX {jax} and Python "
        f"{record.get('python', '')} {_how_alike(record)}"
    )
    button = tag("button", "Copy", type="button", id="copy", aria_label="Copy the commands")
    code = tag("pre", tag("code", commands(config, source), id="commands"), tabindex="0")
    return section("reproduce", "Reproduce", lead, tag("div", button, code, class_="commands"))


def _how_alike(record: dict[str, Any]) -> str:
    if record.get("sittings"):
        return (
            "these commands begin the same run. It was continued with other versions, or on "
            "another device, and will not come out the same to the last bit."
        )
    return "these commands make the same run. On a CPU of the same kind it is the same bit for bit."


def commands(config: dict[str, Any], source: str) -> str:
    """Flags where they say it all, else a file of settings."""
    default = Config().to_dict()
    changed = {k: v for k, v in flat(config).items() if v != flat(default).get(k)}
    begin, choice = "", shlex.join(_flags(changed))
    if not changed.keys() <= FLAGS.keys():
        begin = f"cat > {FILE} <<'END'\n{json.dumps(_differing(config, default), indent=2)}\nEND\n"
        choice = f"--config {FILE}"
    data = shlex.quote(source)
    fit = " ".join(part for part in ("fenchel fit", data, choice, f"--out {FOLDER}") if part)
    return f"{begin}{fit}\nfenchel report {FOLDER} {data}\n"


def _flags(changed: Settings) -> list[str]:
    pairs = [(flag, changed[name]) for name, flag in FLAGS.items() if name in changed]
    return [str(part) for pair in pairs for part in pair]


def _differing(config: dict[str, Any], default: dict[str, Any]) -> dict[str, Any]:
    """What is not the default, in its sections."""
    kept: dict[str, Any] = {}
    for name, value in config.items():
        other = default.get(name)
        if isinstance(value, dict):
            value = _differing(value, other if isinstance(other, dict) else {})
            if value:
                kept[name] = value
        elif value != other:
            kept[name] = value
    return kept


def _sections(config: dict[str, Any]) -> dict[str, dict[str, Any]]:
    return {name: part for name, part in config.items() if isinstance(part, dict)}
