"""Reads the project's own source for the tests of its rules."""

from __future__ import annotations

import ast
import subprocess
from collections.abc import Iterator
from functools import cache
from pathlib import Path

PROJECT = Path(__file__).resolve().parent.parent
PACKAGE = PROJECT / "workbench"
SKIPPED = {
    ".git",
    ".venv",
    "build",
    "dist",
    "__pycache__",
    ".ipynb_checkpoints",
    ".mypy_cache",
    ".ruff_cache",
    ".pytest_cache",
    ".hypothesis",
}


def files(*patterns: str) -> list[Path]:
    """Return the project's files that match a pattern below its root: those git knows or would add, all where there is no git."""
    try:
        command = ["git", "-C", str(PROJECT), "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
        listed = subprocess.run(command, capture_output=True, check=True, text=True).stdout.split("\0")
        known = {PROJECT / name for name in listed if name}
    except (OSError, subprocess.CalledProcessError):
        known = {path for path in PROJECT.rglob("*") if not SKIPPED & set(path.relative_to(PROJECT).parts)}
    return sorted(path for path in known if path.is_file() and any(path.relative_to(PROJECT).match(pattern) for pattern in patterns))


def package_files() -> list[Path]:
    """Return the package's modules."""
    return [path for path in files("*.py") if PACKAGE in path.parents]


def name(path: Path) -> str:
    """Return a path as the rules' messages show it."""
    return path.relative_to(PROJECT).as_posix()


@cache
def tree(path: Path) -> ast.Module:
    """Return a parsed file."""
    return ast.parse(path.read_text(encoding="utf-8"), str(path))


def functions(path: Path) -> Iterator[ast.FunctionDef | ast.AsyncFunctionDef]:
    """Yield every function and method of a file, nested ones too."""
    for node in ast.walk(tree(path)):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            yield node
