"""What every result carries: which code, on which machine, with which versions."""

import os
import platform
import subprocess
from pathlib import Path
from typing import Any

from fenchel.environment import PACKAGES, device, packages, python


def provenance() -> dict[str, Any]:
    """Commit, versions and hardware."""
    return {
        "commit": _commit(),
        "python": python(),
        "packages": packages(("fenchel", *PACKAGES, "torch")),
        "device": device(),
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


def _cpu() -> str:
    about = Path("/proc/cpuinfo")
    for line in about.read_text().splitlines() if about.is_file() else ():
        if line.startswith("model name"):
            return line.split(":", 1)[1].strip()
    return platform.processor()
