"""Which files are meant: files, directories of them, and patterns; several are read side by side."""

from __future__ import annotations

import glob
import os
import re
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

from workbench.errors import Note, UnreadableInput
from workbench.trace.ascend_folder import profile_files
from workbench.trace.source import first_bytes, kind_of

Paths = str | os.PathLike[str] | Sequence[str | os.PathLike[str]]
T = TypeVar("T")

MOST = 4096
"""Files a directory may hold."""


class NoTrace(UnreadableInput):
    """A whole file that is something else than a trace."""


@dataclass(frozen=True)
class Asked:
    """One file.

    Parameters
    ----------
    path : Path
    named : bool
        False: found in a directory or by a pattern, so that it may be something else than a trace.
    """

    path: Path
    named: bool = True


def asked(paths: Paths) -> list[Asked]:
    """Return the files that some paths mean, directories and patterns in natural order of names.

    Parameters
    ----------
    paths : path or sequence of paths
        A directory means the files in it (where it has none, those in the directories below); a path that does not exist and holds
        ``*``, ``?`` or ``[`` is a pattern.

    Raises
    ------
    UnreadableInput
        Not paths, a directory without files, or a pattern nothing matches.
    """
    try:
        given = [paths] if isinstance(paths, str | os.PathLike) else list(paths)
        named = [Path(path) for path in given]
    except TypeError:
        raise UnreadableInput(repr(paths)[:200], "is neither a path nor a list of paths", "name the trace files") from None
    out: list[Asked] = []
    for path in named:
        try:
            out += _expanded(path)
        except (OSError, ValueError) as fault:
            raise UnreadableInput(repr(str(path))[:200], f"is no path that can be opened: {fault}", "check the path") from None
    return out


def _expanded(path: Path) -> list[Asked]:
    if path.is_dir():
        return [Asked(found, False) for found in _inside(path)]
    if path.exists() or not glob.has_magic(str(path)):
        return [Asked(path)]
    found = sorted((Path(p) for p in glob.glob(str(path), recursive=True)), key=_natural)
    if not found:
        raise UnreadableInput(str(path), "no file matches this pattern", "check the pattern")
    return [one for p in found for one in ([Asked(q, False) for q in _inside(p)] if p.is_dir() else [Asked(p, False)])]


def _inside(folder: Path) -> list[Path]:
    if (recordings := profile_files(folder)) is not None:
        return recordings
    found = [p for p in folder.iterdir() if p.is_file() and not p.name.startswith(".")]
    found = found or [p for p in folder.rglob("*") if p.is_file() and not p.name.startswith(".")]
    if not found:
        raise UnreadableInput(str(folder), "the directory holds no file", "name a directory of traces, or the traces")
    if len(found) > MOST:
        raise UnreadableInput(str(folder), f"the directory holds {len(found)} files", f"name the traces, or a pattern of at most {MOST}")
    return sorted(found, key=_natural)


def _natural(path: Path) -> list[tuple[int, int, str]]:
    """Order by the numbers in a name: rank 2 before rank 10."""
    pieces = re.split(r"([0-9]{1,18})", str(path))
    return [(1, 0, piece) if at % 2 == 0 else (0, int(piece), "") for at, piece in enumerate(pieces)]


def read_all(files: Sequence[Asked], read: Callable[[Path], T]) -> tuple[list[T], list[Note]]:
    """Read files side by side on the cores there are; what was not named and is no trace is left out with a note.

    Parameters
    ----------
    files : sequence of Asked
    read : callable
        Reads one file; raises `UnreadableInput`.

    Returns
    -------
    list
        What was read, in the order of the files.
    list of Note
    """

    def one(file: Asked) -> T | Note:
        try:
            return read(file.path)
        except UnreadableInput as fault:
            if file.named or not (isinstance(fault, NoTrace) or not _begins_as_json(file.path)):
                raise
            return Note("file-skipped", str(file.path), 1, f"is left out: {fault.what}")

    if len(files) == 1:
        results = [one(files[0])]
    else:
        with ThreadPoolExecutor(min(len(files), os.cpu_count() or 1)) as pool:
            results = list(pool.map(one, files))
    return [r for r in results if not isinstance(r, Note)], [r for r in results if isinstance(r, Note)]


def _begins_as_json(path: Path) -> bool:
    """Whether a file that could not be read was meant as JSON: then it is damaged, which must not pass silently."""
    try:
        return kind_of(first_bytes(path)) != ""
    except UnreadableInput:
        return True
