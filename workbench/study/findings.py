"""How a check says what it found."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence

import numpy as np

from workbench.study.documents_health import Certainty, FindingDocument
from workbench.study.seen import Seen

SHOWN = 3
"""Names that a finding lists, those of most weight first."""


def finding(seen: Seen, code: str, what: str, where: str, count: int, total_s: float, fix: str, certainty: Certainty) -> FindingDocument:
    """Return a finding; its cost is spread over the steps.

    Parameters
    ----------
    seen : Seen
    code, what, where, fix : str
        As in `FindingDocument`.
    count : int
    total_s : float
        Cost over the whole recording [s].
    certainty : str
    """
    steps = max(len(seen.graph.step_numbers), 1)
    share = total_s / seen.steps_s if seen.steps_s > 0 else 0.0
    return FindingDocument(
        code=code, what=what, where=where, count=count, cost_s=total_s / steps, share=share, fix=fix, certainty=certainty
    )


def names_of(names: Sequence[str], weight: np.ndarray, most: int = SHOWN) -> str:
    """Return the names of most weight as text: ``name (times), name, and n more``."""
    total: dict[str, float] = defaultdict(float)
    times: dict[str, int] = defaultdict(int)
    for name, one in zip(names, weight.tolist(), strict=True):
        total[name] += one
        times[name] += 1
    first = sorted(total, key=lambda name: (-total[name], name))
    text = ", ".join(f"{name} ({times[name]}x)" if times[name] > 1 else name for name in first[:most])
    return f"{text} and {len(first) - most} more" if len(first) > most else text
