"""Descriptions by name or file: what comes with the workbench under ``data``, and a person's own. One rule for cards, hosts, clusters."""

from __future__ import annotations

import difflib
import os
from collections.abc import Sequence

from workbench.data import data_path, is_file, read_small
from workbench.errors import InvalidSpec, UnreadableInput


def shipped(*folder: str) -> tuple[str, ...]:
    """Return the sorted names of the descriptions in a folder below ``data``."""
    return tuple(sorted(path.stem for path in data_path(*folder).glob("*.yaml")))


def shipped_text(*place: str) -> tuple[str, str]:
    """Return text and file name of a description that comes with the workbench: its folder and, last, its name."""
    file = f"{place[-1]}.yaml"
    return data_path(*place[:-1], file).read_text(encoding="utf-8"), file


def own_text(name: str) -> str | None:
    """Return the text of a person's own description; None where the name is no path.

    Raises
    ------
    UnreadableInput
        A path that cannot be read, or is no text.
    """
    if not (name.endswith((".yaml", ".yml")) or "/" in name or os.sep in name or is_file(name)):
        return None
    fix = "give the path of a YAML description"
    try:
        return read_small(name, fix).decode("utf-8")
    except UnicodeDecodeError as error:
        raise UnreadableInput(name, f"cannot be read: {error}", fix) from None


def unknown_name(name: str, known: Sequence[str], what: str, otherwise: str) -> InvalidSpec:
    """Return the refusal of a name: the names that begin with it, else the nearest, else all; ``otherwise`` what to give instead."""
    begun = [one for one in known if name and one.startswith(name.lower())]
    near = begun or difflib.get_close_matches(name.lower(), known, 3, 0.3)
    hint = f"nearest: {', '.join(near)}" if near else f"known: {', '.join(known)}"
    return InvalidSpec(repr(name[:100]), f"no {what} of this name", f"{hint}; or give {otherwise}")
