"""Where results are written, and what each of them carries."""

import json
from pathlib import Path
from typing import Any

from fenchel.bench.provenance import in_words, provenance, versions

__all__ = ["RESULTS", "in_words", "provenance", "versions", "write"]

RESULTS = Path(__file__).parent / "results"


def write(name: str, result: dict[str, Any], markdown: str, folder: Path = RESULTS) -> None:
    """results/NAME.json and results/NAME.md."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / f"{name}.json").write_text(json.dumps(result, indent=1) + "\n")
    (folder / f"{name}.md").write_text(markdown)
