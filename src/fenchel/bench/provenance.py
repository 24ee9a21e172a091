"""What every result carries: which code, on which machine, with which versions."""

import os
import platform
import subprocess
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

import jax

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


def in_words(about: dict[str, Any]) -> str:
    """One line of it, for a table's foot."""
    return f"commit {about['commit']}, {about['device']}, {versions(about)}"


def versions(about: dict[str, Any]) -> str:
    """The packages with their numbers."""
    return ", ".join(f"{name} {number}" for name, number in about["packages"].items())


def _commit() -> str:
    if "FENCHEL_COMMIT" in os.environ:  # for machines that have the files and not the repository
        return os.environ["FENCHEL_COMMIT"]
    try:
        done = subprocess.run(
            ["git", "rev-parse", "--short", "HEAD"],
            cwd=Path(__file__).parent,
            capture_output=True,
            text=True,
            check=True,
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
    about = Path("/proc/cpuinfo")
    for line in about.read_text().splitlines() if about.is_file() else ():
        if line.startswith("model name"):
            return line.split(":", 1)[1].strip()
    return platform.processor()
