"""Ranks that others wait for, and ranks with more work than others."""

from __future__ import annotations

import numpy as np

from workbench.graph.graph import NodeKind
from workbench.study.documents_health import FindingDocument
from workbench.study.documents_ranks import RanksDocument
from workbench.study.findings import finding
from workbench.study.seen import Seen

UNEQUAL = 0.05
"""A rank that computes this much more than the median rank has more work [1]."""
CAUSED = 1.5
"""A rank is a straggler if the others wait for it this many times as long as an equal share [1]."""


def straggling(seen: Seen, ranks: RanksDocument | None) -> list[FindingDocument]:
    """Find the ranks the others wait for most, from messages all of whose members are recorded."""
    if ranks is None or len(ranks.ranks) < 2:
        return []
    waited = sum(row.caused_s for row in ranks.ranks)
    late = [row for row in ranks.ranks if waited > 0 and row.caused_s > CAUSED * waited / len(ranks.ranks)]
    if not late:
        return []
    late.sort(key=lambda row: -row.caused_s)
    where = ", ".join(f"rank {row.rank} ({row.caused_s / waited:.0%} of all waiting)" for row in late[:4])
    cost = sum(row.caused_s for row in late)
    fix = "compare this rank's input, host and clock with the others'"
    return [
        finding(seen, "straggler", "the other ranks wait in messages for the same few to arrive", where, len(late), cost, fix, "likely")
    ]


def unequal_work(seen: Seen) -> list[FindingDocument]:
    """Find ranks whose kernels, messages left out, take longer than those of the median rank."""
    graph = seen.graph
    mine = seen.device[graph.kind[seen.device] == NodeKind.COMPUTE]
    ranks, back = np.unique(graph.rank[mine], return_inverse=True)
    if len(ranks) < 2:
        return []
    time = np.bincount(back, weights=graph.measured_s[mine])
    count = np.bincount(back)
    typical = float(np.median(time))
    more = np.flatnonzero(time > (1 + UNEQUAL) * typical)
    if not len(more) or typical <= 0:
        return []
    more = more[np.argsort(-time[more])]
    same = (count[more] == np.median(count)).all()
    where = ", ".join(f"rank {ranks[i]}: {time[i] / typical - 1:+.1%}" for i in more[:4])
    text = "kernels take longer than on the median rank, with " + (
        "the same number of them: a slower card or other data" if same else "more of them"
    )
    fix = "balance the layers, the experts or the batch" if not same else "compare clocks, temperature and inputs of the cards"
    lost = float(time[more].max() - typical) * len(ranks)  # all wait for the slowest
    return [finding(seen, "unequal-work", text, where, len(more), lost, fix, "certain")]
