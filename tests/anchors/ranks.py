"""Which of two cards is faster, and by how much: shapes that one harness timed on both, measured and predicted."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np

from tests.anchors.scored import Scored
from workbench.cost.fit import hashes
from workbench.hardware.schema import ERROR_GROUPS

FEWEST = 30


@dataclass(frozen=True)
class Rank:
    """Over shapes timed on two cards: Spearman's correlation of measured and predicted ratios, share of shapes in right order."""

    first: str
    second: str
    kind: str
    rows: int
    spearman: float
    ordered: float
    ratio_error: float  # mean |predicted ratio / measured ratio - 1|


def ranks(found: Sequence[Scored]) -> list[Rank]:
    """Compare every two cards of one harness and dtype, kind by kind; the joint fits predict."""
    out = []
    for one, two in combinations(found, 2):
        if (one.series.source, one.series.dtype) != (two.series.source, two.series.dtype):
            continue
        keys = [[key.tobytes() for key in hashes(of.series.table)] for of in (one, two)]
        place = {key: at for at, key in enumerate(keys[1])}
        pairs = np.array([(at, place[key]) for at, key in enumerate(keys[0]) if key in place], dtype=int).reshape(-1, 2)
        group = one.series.group[pairs[:, 0]]
        for code in np.unique(group):
            a, b = pairs[group == code].T
            if len(a) < FEWEST:
                continue
            measured = np.log(one.series.table.measured_s[a] / two.series.table.measured_s[b])
            predicted = np.log(one.seconds[a] / two.seconds[b])
            out.append(
                Rank(
                    one.series.name,
                    two.series.device,
                    ERROR_GROUPS[code],
                    len(a),
                    spearman(measured, predicted),
                    float(np.mean(np.sign(measured) == np.sign(predicted))),
                    float(np.mean(np.abs(np.expm1(predicted - measured)))),
                )
            )
    return out


def spearman(x: np.ndarray, y: np.ndarray) -> float:
    """Return Spearman's rank correlation: Pearson's of the ranks, ties at their mean rank."""
    return float(np.corrcoef(_ranked(x), _ranked(y))[0, 1])


def _ranked(x: np.ndarray) -> np.ndarray:
    _, inverse, counts = np.unique(x, return_inverse=True, return_counts=True)
    ends = np.cumsum(counts)
    return ((ends - counts + 1 + ends) / 2.0)[inverse]
