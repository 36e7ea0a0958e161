"""Who may import whom: rooms import rooms of lower layers only, and each layer only the packages meant for it."""

from __future__ import annotations

import ast
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.source import PACKAGE, name, package_files, tree

# From the top; rooms of one layer are neighbours and do not import each other. `workbench` itself is the front for users.
LAYERS = (
    {"workbench"},
    {"cli"},
    {
        "cli_operators",
        "cli_counters",
        "cli_cache",
        "cli_compare",
        "cli_export",
        "cli_network",
        "cli_inspect",
        "cli_rewrites",
        "cli_hosts",
        "cli_models",
        "cli_plan",
        "cli_scale",
    },
    {"cli_scenario"},
    {"cli_output"},
    {"app"},
    {"view"},
    {"study"},
    {"models", "scale", "replay"},
    {"cost", "network", "graph"},
    {"hardware", "operators", "trace"},
    {"data", "units", "errors", "arguments"},
)
LEVEL = {room: level for level, rooms in enumerate(LAYERS) for room in rooms}
ARRAYS = {"numpy", "numba", "yaml"}
COMMANDS = [room for level in LAYERS[1:5] for room in sorted(level)]
STUDY = ARRAYS | {"xarray", "h5netcdf", "pydantic", "rich"}
VIEW = STUDY | {"holoviews", "bokeh", "pandas"}
APP = VIEW | {"panel", "panel_material_ui", "param", "ipywidgets", "IPython", "tornado"}
PACKAGES = {room: ARRAYS for level in LAYERS[8:11] for room in level} | {
    "workbench": set[str](),
    **dict.fromkeys(COMMANDS, STUDY | {"click"}),
    "operators": ARRAYS | {"pyarrow"},  # Parquet, where it is installed
    "app": APP,
    "view": VIEW,
    "study": STUDY | {"pyarrow"},  # Parquet and Arrow, where it is installed
    "data": set(),
    "units": {"pint"},
    "errors": set(),
    "arguments": set(),
}
# The basis has an order of its own: these imports between its modules are meant.
WITHIN_BASIS = {("data", "errors"), ("units", "errors"), ("arguments", "errors")}
KERNELS = {"numpy", "numba", "math", "typing", "__future__"}  # typing: to name what a kernel returns
MODULES = package_files()


def module_of(path: Path) -> tuple[str, ...]:
    parts = path.relative_to(PACKAGE.parent).with_suffix("").parts
    return parts[:-1] if parts[-1] == "__init__" else parts


def called(node: ast.Call) -> str:
    return str(getattr(node.func, "attr", getattr(node.func, "id", "")))


def imported(path: Path) -> Iterator[tuple[int, str]]:
    """Yield line and full dotted name of everything a file imports: anywhere in it, relative or absolute, and by importlib."""
    base = module_of(path) if path.name == "__init__.py" else module_of(path)[:-1]
    for node in ast.walk(tree(path)):
        if isinstance(node, ast.Import):
            yield from ((node.lineno, alias.name) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            start = ".".join(base[: len(base) - node.level + 1]) if node.level else ""
            module = ".".join(filter(None, (start, node.module)))
            yield from ((node.lineno, f"{module}.{alias.name}" if module == "workbench" else module) for alias in node.names)
        elif isinstance(node, ast.Call) and called(node) in ("import_module", "__import__"):
            yield from ((node.lineno, str(argument.value)) for argument in node.args[:1] if isinstance(argument, ast.Constant))


def room_of(dotted: str) -> str:
    """Return the room of a name in the package; names that the front offers belong to the front."""
    second = dotted.split(".")[1] if "." in dotted else "workbench"
    is_room = (PACKAGE / second).is_dir() or (PACKAGE / f"{second}.py").is_file()
    return second if is_room else "workbench"


def complaints(path: Path) -> Iterator[str]:
    room = (*module_of(path), "")[1] or "workbench"
    for line, dotted in imported(path):
        where, top = f"{name(path)}:{line}", dotted.split(".")[0]
        if path.name.startswith("kernels") and top not in KERNELS:
            yield f"{where} imports {dotted}; kernels import numpy, numba and math only"
        elif top != "workbench":
            if top not in sys.stdlib_module_names and top not in PACKAGES[room]:
                yield f"{where} imports {top}, which is not for the room {room}"
        elif dotted == "workbench.__version__":
            continue
        elif (other := room_of(dotted)) != room and (room, other) not in WITHIN_BASIS and LEVEL[other] <= LEVEL[room]:
            yield f"{where} imports {dotted}: {other} is not below {room}"


@pytest.mark.parametrize("path", MODULES, ids=name)
def test_imports_point_downwards(path: Path) -> None:
    assert not list(complaints(path))


def test_every_room_has_a_layer() -> None:
    """A new folder must be placed in the picture of CONTRIBUTING.md before it is used."""
    assert {(*module_of(path), "")[1] or "workbench" for path in MODULES} <= set(LEVEL)


@pytest.mark.parametrize(
    ("path", "text"),
    [
        ("graph/planted.py", "def f():\n    from workbench.cost import estimate\n"),  # a neighbour, inside a function
        ("replay/planted.py", "from ..study import predict\n"),  # upwards, relative
        ("trace/planted.py", "import importlib\nimportlib.import_module('workbench.graph.build')\n"),
        ("study/planted.py", "from workbench import predict\n"),  # through the front
        ("graph/planted.py", "import xarray\n"),
        ("study/planted.py", "import holoviews as hv\n"),
        ("cost/kernels_planted.py", "from workbench.errors import Note\n"),
        ("cost/kernels_planted.py", "import re\n"),
        ("errors.py", "import workbench.units\n"),
    ],
)
def test_the_rule_sees_what_it_should(path: str, text: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Planted faults are found, or the test above proves nothing."""
    monkeypatch.setattr("tests.test_layers.tree", lambda path: ast.parse(text))
    assert len(list(complaints(PACKAGE / path))) == 1
