"""Making very many small objects: Python's cycle collector looks at all of them again and again and finds nothing."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def in_bulk() -> Iterator[None]:
    """Keep the cycle collector from running meanwhile; ``@in_bulk()`` does so for a function.

    Reading and pricing 200 000 rows took a fifth longer with it. What is counted out is freed at once as ever.

    Yields
    ------
    None
    """
    collects = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if collects:
            gc.enable()
