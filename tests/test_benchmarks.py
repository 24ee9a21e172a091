"""The studies in `benchmarks/` still fit the library: no run of hours ends at its imports."""

import ast
from importlib import import_module
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
        if not _has(node.module or "", alias.name)
    ]


def _has(module: str, name: str) -> bool:
    """As a name in it, or as a module beneath it."""
    if hasattr(import_module(module), name):
        return True
    try:
        import_module(f"{module}.{name}")
    except ModuleNotFoundError:
        return False
    return True


@pytest.mark.parametrize("path", STUDIES, ids=lambda path: path.stem)
def test_a_study_imports_what_there_is(path: Path):
    assert missing_names(path.read_text(encoding="utf-8")) == []


def test_a_missing_name_would_be_seen():
    source = """
from fenchel import data, evaluate
from fenchel.saving import nothing
def late():
    from fenchel.data import TOYS, no_such_toy
"""
    assert missing_names(source) == ["fenchel.saving.nothing", "fenchel.data.no_such_toy"]
