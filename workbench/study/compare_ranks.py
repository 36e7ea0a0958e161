"""Which rank's steps are compared: the one whose step changed as the ranks' steps typically did, or one that is asked for."""

from __future__ import annotations

import numpy as np

from workbench.errors import Refused
from workbench.study.documents_compare import RankPairDocument
from workbench.study.one_step import step_times_of
from workbench.study.workload import Workload


def ranks_in(workload: Workload) -> list[int]:
    """Return the ranks that have steps, ascending."""
    graph = workload.graph
    return sorted({int(rank) for rank in graph.rank[graph.step_begin]})


def rank_pairs(a: Workload, b: Workload) -> list[RankPairDocument]:
    """Return the median step of every rank that both recordings have."""
    out = []
    for rank in sorted(set(ranks_in(a)) & set(ranks_in(b))):
        first, second = (float(np.median(step_times_of(load, rank))) for load in (a, b))
        out.append(RankPairDocument(rank=rank, a_s=first, b_s=second, delta_s=second - first))
    return out


def compared_ranks(a: Workload, b: Workload, pairs: list[RankPairDocument], rank: int | None) -> tuple[int, int]:
    """Return the rank of either side whose step is compared.

    Parameters
    ----------
    a, b : Workload
    pairs : list of RankPairDocument
        From `rank_pairs`.
    rank : int or None
        The rank asked for; None: of the common ranks the one whose change is nearest to the median of the changes, else the first of
        each side.

    Raises
    ------
    Refused
        A recording has no steps of the rank asked for.
    """
    if rank is not None:
        for load in (a, b):
            if rank not in (known := ranks_in(load)):
                raise Refused(load.path, f"has no steps of rank {rank}", f"give one of {', '.join(map(str, known))}, or none")
        return rank, rank
    if not pairs:
        return ranks_in(a)[0], ranks_in(b)[0]
    middle = float(np.median([pair.delta_s for pair in pairs]))
    typical = min(pairs, key=lambda pair: (abs(pair.delta_s - middle), pair.rank)).rank
    return typical, typical
