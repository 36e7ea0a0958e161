"""A second opening of a file: its columns as they were read, kept under the digest of the file's content and of the reader.

Entries are written beside and moved into place, so that processes never see half of one; whatever is not whole, or not this reader's,
counts as absent and is made again. Nothing here raises: without a folder that can be written, files are read every time.

``WORKBENCH_CACHE`` moves the folder, ``WORKBENCH_CACHE=off`` disables it, ``WORKBENCH_CACHE_BYTES`` limits it (default 4 GB).
"""

from __future__ import annotations

import contextlib
import hashlib
import logging
import os
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

import numpy as np

from workbench.trace.cache_entry import Kept, packed, unpacked
from workbench.trace.digest import file_digest
from workbench.trace.execution_trace import Execution
from workbench.trace.part import Part

T = TypeVar("T")
LEAST_FILE = 1 << 12
"""Smaller files are read as fast as their entry would be [B]."""
LEAST_ENTRY = 1 << 16
"""Columns that are smaller (about 100 kB of text) are not kept [B]."""
LIMIT = 4_000_000_000
SUFFIX, UNFINISHED = ".columns", ".new"
FORGOTTEN_S = 3600.0
"""Age at which an unfinished entry has been left by a process that was ended [s]."""
LOG = logging.getLogger(__name__)


def folder() -> Path | None:
    """Return the folder of the cache, which need not exist; None where it is disabled or the user has no home."""
    asked = os.environ.get("WORKBENCH_CACHE", "")
    if asked:
        return None if asked.lower() in ("off", "0", "no", "false") else Path(asked)
    try:
        if sys.platform == "win32":
            base = Path(os.environ.get("LOCALAPPDATA") or Path.home() / "AppData" / "Local")
        elif sys.platform == "darwin":
            base = Path.home() / "Library" / "Caches"
        else:
            base = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    except RuntimeError:
        return None
    return base / "workbench" / "traces"


def limit() -> int:
    """Return how large the cache may grow [B]."""
    asked = os.environ.get("WORKBENCH_CACHE_BYTES", "")
    return int(asked) if asked.isascii() and asked.isdigit() and len(asked) < 19 else LIMIT


def _source_digest() -> str:
    digest = hashlib.sha256(np.__version__.encode())
    with contextlib.suppress(OSError):
        for path in sorted(Path(__file__).parent.glob("*.py")):
            digest.update(path.name.encode() + b"\0" + path.read_bytes())
    return digest.hexdigest()


READER = _source_digest()
"""Digest of the reader's own source as it was loaded: an edited reader never serves what an older one read."""


def remembered(path: Path, salvage: bool, read: Callable[[], T]) -> T | Kept:
    """Return what a file holds from the cache, or read it and keep that.

    Parameters
    ----------
    path : Path
    salvage : bool
        Whether ``read`` salvages; such columns are kept apart.
    read : callable
        What it raises passes through and nothing is kept.
    """
    try:
        place = _place(path, salvage)
        found = _load(place, str(path)) if place else None
    except OSError as fault:
        LOG.debug("trace cache not read: %s", fault)
        place = found = None
    if found is not None:
        return found
    fresh = read()
    if place is not None and isinstance(fresh, Part | Execution):
        try:
            if place == _place(path, salvage):  # else the file changed while it was read
                _store(place, fresh)
        except (OSError, TypeError, ValueError, OverflowError, RecursionError, MemoryError) as fault:
            LOG.debug("trace cache not written: %s", fault)
    return fresh


def entries(where: Path) -> list[tuple[float, int, Path]]:
    """Return (time of last use [s], size [B], path) of each entry, least recently used first."""
    out = []
    with contextlib.suppress(OSError):
        for path in where.glob("*" + SUFFIX):
            with contextlib.suppress(OSError):
                status = path.stat()
                out.append((status.st_mtime, status.st_size, path))
    return sorted(out)


def evict(where: Path, most: int) -> int:
    """Remove the least recently used entries until at most ``most`` bytes remain; return how many were removed."""
    with contextlib.suppress(OSError):
        for path in where.glob("*" + UNFINISHED):
            with contextlib.suppress(OSError):
                if time.time() - path.stat().st_mtime > FORGOTTEN_S:
                    path.unlink()
    rows = entries(where)
    total, removed = sum(size for _, size, _ in rows), 0
    for _, size, path in rows:
        if total <= most:
            break
        with contextlib.suppress(OSError):
            path.unlink()
            removed += 1
        total -= size
    return removed


def _place(path: Path, salvage: bool) -> Path | None:
    where = folder()
    if where is None or not path.is_file() or path.stat().st_size < LEAST_FILE:
        return None
    asked = f"{file_digest(path).hex()};{path.name};{salvage};{READER}"
    return where / (hashlib.sha256(asked.encode("utf-8", "surrogatepass")).hexdigest()[:40] + SUFFIX)


def _load(place: Path, path: str) -> Kept | None:
    """Return what an entry holds under a path of now; None if there is none or it is not whole."""
    if not place.is_file():
        return None
    try:
        found = unpacked(np.fromfile(place, np.uint8), path)
    except (ValueError, TypeError, LookupError, StopIteration, MemoryError) as fault:
        LOG.debug("trace cache entry %s ignored: %s", place.name, fault)
        return None
    with contextlib.suppress(OSError):
        os.utime(place)
    return found


def _store(place: Path, found: Kept) -> None:
    if isinstance(found, Part) and any(found.path in note.text for note in found.notes):
        return  # it would be told of another path later
    body = packed(found)
    if body is None or not LEAST_ENTRY <= len(body) <= limit():
        return
    place.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    evict(place.parent, limit() - len(body))
    handle, name = tempfile.mkstemp(dir=place.parent, suffix=UNFINISHED)
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(body.data)
        os.replace(name, place)
    except BaseException:
        Path(name).unlink(missing_ok=True)
        raise
