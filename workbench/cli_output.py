"""What commands share: printing for a terminal, options that name files, pairs of names."""

from __future__ import annotations

import math
import os
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:
    from rich.console import RenderableType

WIDTH = 100  # columns where the terminal does not say


def show(parts: Iterable[RenderableType]) -> None:
    """Print rich renderables."""
    from rich.console import Console, Group
    from rich.text import Text

    from workbench.study.terminal_table import Phrases

    known = sys.stdout.isatty() or os.environ.get("COLUMNS", "").isdecimal()
    console = Console(width=None if known else WIDTH, highlight=False, markup=False)
    for part in parts:
        console.print(Group(Phrases.of(part)) if isinstance(part, Text) else part)  # joined texts would be no phrases


def writable(path: str, option: str) -> None:
    """Refuse a path nothing can be written to, before the work begins."""
    try:
        folder = Path(path).resolve().parent
        fine = folder.is_dir() and os.access(folder, os.W_OK) and not Path(path).is_dir()
    except (OSError, ValueError):  # a name too long, a NUL in it
        fine = False
    if not fine:
        raise click.UsageError(f"{option} {path}: cannot be written there; name a file in an existing folder")


def folder(path: str, option: str) -> None:
    """Make a folder to write into, or refuse it before the work begins."""
    try:
        Path(path).mkdir(parents=True, exist_ok=True)
        fine = os.access(path, os.W_OK)
    except (OSError, ValueError):  # a file of this name, a parent nothing can be made in, a NUL
        fine = False
    if not fine:
        raise click.UsageError(f"{option} {path}: no folder can be written there; name another one")


def pairs(texts: Iterable[str], option: str) -> dict[str, str]:
    """Read ``NAME=VALUE,NAME=VALUE`` options."""
    out = {}
    for text in texts:
        for part in text.split(","):
            name, equals, value = part.partition("=")
            if not equals or not name.strip():
                raise click.UsageError(f"{option} {text!r}: write NAME=VALUE")
            out[name.strip()] = value.strip()
    return out


def finite(context: click.Context, parameter: click.Parameter, value: float | None) -> float | None:
    """Refuse nan and infinity, which a range lets through."""
    if value is not None and not math.isfinite(value):
        raise click.BadParameter("give a finite number", context, parameter)
    return value


def vendor_options(vendor: str | None, columns: Iterable[str], contract: Iterable[str]) -> tuple[dict[str, str], dict[str, str]]:
    """Read what is said of a vendor's table; without a table it says nothing, and is refused."""
    stated = pairs(columns, "--vendor-columns"), pairs(contract, "--vendor-contract")
    if vendor is None and any(stated):
        raise click.UsageError("--vendor-columns and --vendor-contract describe a vendor's table: give it with --vendor")
    return stated
