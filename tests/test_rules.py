"""The project's rules on its own source: size, printing, state, documentation, sources of numbers, nobody's machine."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml

import workbench
from tests.source import PACKAGE, PROJECT, files, functions, name, package_files, tree

LONGEST_FILE, LONGEST_FUNCTION = 300, 50
MUTATORS = {"append", "add", "update", "pop", "popitem", "setdefault", "clear", "extend", "insert", "remove", "discard", "sort", "reverse"}
CONTAINERS = {"list", "dict", "set", "defaultdict", "OrderedDict", "Counter", "deque", "bytearray"}
# Written in pieces, so that this file does not hold what it looks for.
FOLDERS = ("wo" + "rk", "ro" + "ot", "ho" + "me", "Us" + "ers", "tm" + "p/dev", "opt/" + "py")
PLACES = re.compile(rf"(?<![\w.$}}>-])/(?:{'|'.join(FOLDERS)})\b/?")
BINARY = {".gz", ".nc", ".png", ".ico", ".woff2", ".pb"}
MODULES = package_files()
PYTHON = files("*.py")
ERRORS = {"WorkbenchError", "UnreadableInput", "InvalidSpec", "Refused"}


def has_reason(lines: list[str]) -> bool:
    return any(re.search(r"# long: \S", line) for line in lines)


def own_length(function: ast.FunctionDef | ast.AsyncFunctionDef) -> int:
    """Lines of a function without its docstring: documentation is not counted against anyone."""
    total = (function.end_lineno or function.lineno) - function.lineno + 1
    first = function.body[0]
    if ast.get_docstring(function) is not None:
        total -= (first.end_lineno or first.lineno) - first.lineno + 1
    return total


@pytest.mark.parametrize("path", PYTHON, ids=name)
def test_files_and_functions_are_short(path: Path) -> None:
    """At most 300 lines a file and 50 a function, or a comment `# long: why` in it."""
    lines = path.read_text().splitlines()
    assert len(lines) <= LONGEST_FILE or has_reason([line for line in lines if line.startswith("#")]), f"{len(lines)} lines"
    long = [
        f"{function.name}: {own_length(function)} lines"
        for function in functions(path)
        if own_length(function) > LONGEST_FUNCTION and not has_reason(lines[function.lineno - 1 : function.end_lineno])
    ]
    assert not long


@pytest.mark.parametrize("path", MODULES, ids=name)
def test_only_the_command_line_prints(path: Path) -> None:
    if path.relative_to(PACKAGE).parts[0].removesuffix(".py") == "cli":
        return
    prints = [n.lineno for n in ast.walk(tree(path)) if isinstance(n, ast.Call) and isinstance(n.func, ast.Name) and n.func.id == "print"]
    assert not prints


def assigned(module: ast.Module) -> set[str]:
    """Names of mutable containers made at module level."""
    out = set()
    for node in module.body:
        targets = getattr(node, "targets", [getattr(node, "target", None)])
        value = getattr(node, "value", None)
        display = isinstance(value, ast.List | ast.Dict | ast.Set | ast.ListComp | ast.DictComp | ast.SetComp)
        call = isinstance(value, ast.Call) and getattr(value.func, "id", getattr(value.func, "attr", "")) in CONTAINERS
        if display or call:
            out |= {target.id for target in targets if isinstance(target, ast.Name)}
    return out


def mutations(module: ast.Module) -> Iterator[str]:
    """Places where a function changes what lives at module level."""
    state = assigned(module)
    for function in (node for node in ast.walk(module) if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda)):
        for node in ast.walk(function):
            targets = getattr(node, "targets", [getattr(node, "target", None)])
            written = [target.value for target in targets if isinstance(target, ast.Subscript)]
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in MUTATORS:
                written.append(node.func.value)
            if isinstance(node, ast.Global):
                yield f"line {node.lineno}: global {', '.join(node.names)}"
            if any(isinstance(value, ast.Name) and value.id in state for value in written):
                yield f"line {node.lineno}: {ast.unparse(node)}"


@pytest.mark.parametrize("path", MODULES, ids=name)
def test_no_mutable_module_state(path: Path) -> None:
    assert not list(mutations(tree(path)))


def test_mutable_state_would_be_seen() -> None:
    planted = "SEEN = {}\nLAST = []\nTABLE = {1: 2}\ndef f(x):\n    global g\n    SEEN[x] = 1\n    LAST.append(x)\n    return TABLE[x]\n"
    assert len(list(mutations(ast.parse(planted)))) == 3


def public_functions(path: Path) -> Iterator[ast.FunctionDef | ast.AsyncFunctionDef]:
    for node in tree(path).body:
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and not node.name.startswith("_"):
            yield node


def front(path: Path) -> set[str]:
    """Names of a module that users import from `workbench` itself."""
    module = ".".join(path.relative_to(PACKAGE).with_suffix("").parts)
    return {verb for verb, home in workbench._HOMES.items() if home == module}


def missing_sections(function: ast.FunctionDef | ast.AsyncFunctionDef, for_users: bool) -> list[str]:
    """Numpydoc sections that a public function lacks.

    A function of the front has them all; any other describes its parameters once there are more than four.
    """
    text = ast.get_docstring(function) or ""
    arguments = function.args
    count = len(arguments.posonlyargs) + len(arguments.args) + len(arguments.kwonlyargs)
    raised = [node.exc.func for node in ast.walk(function) if isinstance(node, ast.Raise) and isinstance(node.exc, ast.Call)]
    nothing = function.returns is None or (isinstance(function.returns, ast.Constant) and function.returns.value is None)
    wanted = ["Parameters"] if count > (0 if for_users else 4) else []
    if for_users:
        wanted += [] if nothing else ["Returns|Yields"]
        wanted += ["Raises"] if any(getattr(error, "id", "") in ERRORS for error in raised) else []
    return [section for section in wanted if not re.search(rf"^(?:{section})\n-{{4,}}$", text, re.MULTILINE)]


@pytest.mark.parametrize("path", [path for path in MODULES if not path.name.startswith(("cli", "kernels"))], ids=name)
def test_public_functions_are_documented(path: Path) -> None:
    """Shapes, units and errors need a place: numpydoc sections. (ruff sees to it that there is a docstring at all.)"""
    found = {function.name: missing_sections(function, function.name in front(path)) for function in public_functions(path)}
    assert not {function: sections for function, sections in found.items() if sections}


def test_no_paths_of_anyones_machine() -> None:
    """Tracked files name no folder of the machine they were written on."""
    found = []
    for path in files("*"):
        if path.suffix in BINARY:
            continue
        for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
            found += [f"{name(path)}:{number}: {match.group()}" for match in PLACES.finditer(line)]
    assert not found


def data_files() -> list[Path]:
    return [path for path in files("*") if PROJECT / "data" in path.parents]


@pytest.mark.parametrize("path", data_files(), ids=name)
def test_every_data_file_says_where_it_comes_from(path: Path) -> None:
    """Text says it in itself; a binary file has an entry with a `source` in a YAML file beside it."""
    if path.suffix not in BINARY:
        assert path.suffix == ".py" or re.search(r"\bsources?\b\W*:", path.read_text(encoding="utf-8")), "no `source:` in the file"
        return
    beside = [yaml.safe_load(other.read_text()) for other in path.parent.glob("*.yaml")]
    entries = [content[path.name] for content in beside if isinstance(content, dict) and path.name in content]
    assert entries, "no YAML file beside it names it"
    assert all(entry.get("source") for entry in entries), "its entry has no source"


def test_notebooks_carry_no_bulk_output() -> None:
    large = [name(path) for path in files("*.ipynb") if path.stat().st_size > 200_000]
    assert not large, "strip outputs: nbstripout NOTEBOOK"
