"""The studies in `benchmarks/` still fit the library: no run of hours ends at its imports."""

import ast
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path

import pytest

STUDIES = sorted((Path(__file__).parents[1] / "benchmarks").glob("*.py"))


def missing_names(source: str) -> list[str]:
    """What a module imports from the library and the library does not have."""
    imports = [
        node
        for node in ast.walk(ast.parse(source))
        if isinstance(node, ast.ImportFrom) and (node.module or "").split(".")[0] == "fenchel"
    ]
    return [
        f"{node.module}.{alias.name}"
        for node in imports
        for alias in node.names
        if not hasattr(import_module(node.module or ""), alias.name)
        and find_spec(f"{node.module}.{alias.name}") is None
    ]


@pytest.mark.parametrize("path", STUDIES, ids=lambda path: path.stem)
def test_a_study_imports_what_there_is(path: Path):
    assert missing_names(path.read_text(encoding="utf-8")) == []


def test_a_missing_name_would_be_seen():
    source = "from fenchel import data\ndef late():\n    from fenchel.data import TOYS, no_such_toy"
    assert missing_names(source) == ["fenchel.data.no_such_toy"]
