"""The studies in `benchmarks/` still fit the library: no run of hours ends at its imports."""

import ast
from importlib import import_module
from pathlib import Path

import jax
import pytest
from benchmarks.image_roofline import generator_layers, potential_layers

from fenchel.potentials import ResidualNet
from fenchel.starts import residual_generator

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


def products(layers):
    return sum(layer.operations for layer in layers) // 2


def test_the_least_work_of_residual_nets_by_hand():
    """Pixels times window times inputs times outputs; a change of size beside a 3 x 3 is free.

    (Sixteen products in place of thirty-six, at one pixel in four.)
    """
    f = ResidualNet((8, 8, 3), 4, key=jax.random.key(0))
    first = 64 * 9 * 3 * 4
    halving = sum(4 * n * 9 * 16 + n * 16 * 16 + n * 16 for n in (16, 4))  # with a shortcut
    staying = 2 * 2 * 4 * 9 * 16
    assert products(potential_layers(f)) == first + halving + staying
    generator = residual_generator((8, 8, 3), 5, 4, key=jax.random.key(0))
    doubling = 16 * 16 + 16 * 16 * 16 + 64 * 9 * 16
    assert products(generator_layers(generator)) == 5 * 64 + doubling + 64 * 9 * 4 * 6
