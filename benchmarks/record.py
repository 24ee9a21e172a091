"""What every result carries: which code, on which machine, with which versions."""

import json
import os
import platform
import subprocess
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

import jax

RESULTS = Path(__file__).parent / "results"
PACKAGES = ("fenchel", "jax", "jaxlib", "equinox", "optax", "flowjax", "diffrax", "numpy", "torch")


def provenance() -> dict[str, Any]:
    """Commit, versions and hardware."""
    device = jax.devices()[0]
    return {
        "commit": _commit(),
        "python": platform.python_version(),
        "packages": {name: _version(name) for name in PACKAGES if _version(name)},
        "device": f"{device.platform}: {device.device_kind}",
        "cpu": _cpu(),
    }


def write(name: str, result: dict[str, Any], markdown: str, folder: Path = RESULTS) -> None:
    """results/NAME.json and results/NAME.md."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / f"{name}.json").write_text(json.dumps(result, indent=1) + "\n")
    (folder / f"{name}.md").write_text(markdown)


def _commit() -> str:
    if "FENCHEL_COMMIT" in os.environ:  # for machines that have the files and not the repository
        return os.environ["FENCHEL_COMMIT"]
    try:
        done = subprocess.run(
            ["git", "rev-parse", "--short", "HEAD"], capture_output=True, text=True, check=True
        )
        return done.stdout.strip()
    except (OSError, subprocess.CalledProcessError):
        return "unknown"


def _version(package: str) -> str | None:
    try:
        return version(package)
    except PackageNotFoundError:
        return None


def _cpu() -> str:
    for line in Path("/proc/cpuinfo").read_text().splitlines():
        if line.startswith("model name"):
            return line.split(":", 1)[1].strip()
    return platform.processor()
