"""Which event lies inside which: the parent column of a trace."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from workbench.trace import kernels
from workbench.trace.trace import Category, Events

# of two events with the same start and length, the earlier kind here encloses the later one
OUTER_FIRST = (Category.ANNOTATION, Category.PYTHON, Category.CPU_OP, Category.RUNTIME, Category.DRIVER)


def nesting(events: Events, recorded_id: np.ndarray, strings: Sequence[str]) -> np.ndarray:
    """Return the innermost enclosing event of each event on its track, int32 [E] (-1: none).

    Ties of start are settled by length (longer encloses), kind, the id the producer counted up, the name, and only then by the
    order of the file: events that differ in any of these nest the same way however the file is shuffled.
    """
    place = np.full(len(Category), len(OUTER_FIRST), np.int8)
    place[list(OUTER_FIRST)] = range(len(OUTER_FIRST))
    alphabetic = np.empty(len(strings), np.int32)
    alphabetic[sorted(range(len(strings)), key=strings.__getitem__)] = np.arange(len(strings), dtype=np.int32)
    e = events
    order = np.lexsort((alphabetic[e.name], recorded_id, place[e.category], -np.maximum(e.dur_ns, 0), e.start_ns, e.track))
    return kernels.nest(order, e.track, e.start_ns, e.dur_ns, e.category == Category.PYTHON)
