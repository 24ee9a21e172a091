"""Imports run downward: no room knows of one above it."""

import ast
from pathlib import Path

import fenchel

ROOT = Path(fenchel.__file__).parent

# From the ground up. What shares a floor may not know of its neighbours either.
FLOORS = (
    ("shapes", "errors", "version", "environment"),
    ("parameters", "arrays", "seeds", "stacking", "choices", "states"),
    ("activations", "weights", "layers"),
    ("potentials",),
    ("dynamics",),
    ("starts",),
    ("samplers",),
    ("estimators",),
    ("train",),
    ("evaluate", "evidence"),
    ("data",),
    ("files",),
    ("config", "methods"),
    ("estimation", "drawing", "completion", "picture_parts", "presets"),
    ("partition",),
    ("build",),
    ("material",),
    ("inference",),
    ("result",),
    ("runs", "saving"),
    ("report",),  # it reads run folders and fitted models, and never trains
    ("fitting",),
    ("bench",),
    ("cli",),
)
HEIGHT = {room: height for height, floor in enumerate(FLOORS) for room in floor}

# The one import upwards: `Fit.save` finds its writer when it is called. It is inside a function,
# and the module itself does not need `saving` to be imported.
ALLOWED = {("result", "saving")}


def modules() -> list[Path]:
    return sorted(path for path in ROOT.rglob("*.py") if path != ROOT / "__init__.py")


def room_of(path: Path) -> str:
    return path.relative_to(ROOT).parts[0].removesuffix(".py")


def imported_rooms(tree: ast.AST) -> set[str]:
    """The rooms that a module's imports name, wherever in it they stand."""
    names = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom):
            assert node.level == 0, "imports are absolute"
            if node.module == "fenchel":
                names.update(f"fenchel.{alias.name}" for alias in node.names)
            else:
                names.add(node.module or "")
        elif isinstance(node, ast.Import):
            names.update(alias.name for alias in node.names)
    return {name.split(".")[1] for name in names if name.startswith("fenchel.")}


def upward_imports(path: Path, source: str) -> set[tuple[str, str]]:
    """(room, room above or beside it) for each import that does not run downward."""
    here = room_of(path)
    return {
        (here, other)
        for other in imported_rooms(ast.parse(source))
        if other != here and HEIGHT[other] >= HEIGHT[here]
    }


def test_every_module_has_its_floor():
    unknown = {room_of(path) for path in modules()} - HEIGHT.keys()
    assert unknown == set(), f"{unknown} are on no floor: add them to FLOORS"


def test_imports_run_downward():
    upward = set()
    for path in modules():
        upward |= upward_imports(path, path.read_text(encoding="utf-8"))
    assert upward - ALLOWED == set()


def test_the_upward_imports_allowed_are_inside_functions():
    for here, other in ALLOWED:
        tree = ast.parse((ROOT / f"{here}.py").read_text(encoding="utf-8"))
        top = ast.Module(
            [node for node in tree.body if isinstance(node, ast.Import | ast.ImportFrom)]
        )
        assert other not in imported_rooms(top)
        assert other in imported_rooms(tree), f"{here} no longer imports {other}: drop it here"


def test_a_violation_would_be_seen():
    """Negative control: each of the ways to write an import upwards."""
    path = ROOT / "dynamics" / "kick.py"
    for source in (
        "from fenchel.train import MaxMin",
        "from fenchel import train",
        "import fenchel.train.loop",
        "def late():\n    from fenchel.train.guard import Guard",
    ):
        assert upward_imports(path, source) == {("dynamics", "train")}
    assert upward_imports(path, "from fenchel.shapes import Array\nimport jax") == set()


def test_nothing_but_the_package_imports_the_public_names():
    """Inside, rooms are imported; `import fenchel` would be a circle."""
    for path in modules():
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Import):
                assert "fenchel" not in [alias.name for alias in node.names], path
            elif isinstance(node, ast.ImportFrom) and node.module == "fenchel":
                assert {alias.name for alias in node.names} <= HEIGHT.keys(), path
