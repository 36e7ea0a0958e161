"""The document of ``workbench cache --json``: where opened traces are kept, and how much of them."""

from __future__ import annotations

import os
from pathlib import Path

from pydantic import Field

from workbench.study.document import Document
from workbench.trace.cache import entries, evict, folder, limit


class CacheDocument(Document):
    """The cache of opened traces."""

    folder: str | None = Field(description="null: switched off by WORKBENCH_CACHE=off, or the user has no home")
    writable: bool = Field(description="false: traces are read every time")
    entries: int
    bytes: int
    limit_bytes: int = Field(description="beyond it the least recently used entries go (WORKBENCH_CACHE_BYTES)")
    removed: int = Field(description="entries removed by this call")


def cache_document(*, clear: bool = False) -> CacheDocument:
    """Return what the cache holds.

    Parameters
    ----------
    clear : bool
        Remove all entries before.
    """
    where = folder()
    if where is None:
        return CacheDocument(folder=None, writable=False, entries=0, bytes=0, limit_bytes=limit(), removed=0)
    removed = evict(where, -1) if clear else 0
    rows = entries(where)
    size = sum(size for _, size, _ in rows)
    return CacheDocument(folder=str(where), writable=_writable(where), entries=len(rows), bytes=size, limit_bytes=limit(), removed=removed)


def _writable(where: Path) -> bool:
    """Whether the folder can be written, or made in the first folder above it that exists."""
    try:
        while not where.exists() and where != where.parent:
            where = where.parent
        return where.is_dir() and os.access(where, os.W_OK | os.X_OK)
    except (OSError, ValueError):
        return False
