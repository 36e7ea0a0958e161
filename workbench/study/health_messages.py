"""Messages that no computation hides."""

from __future__ import annotations

import re

import numpy as np

from workbench import units
from workbench.graph.graph import NodeKind
from workbench.operators.kinds import shorten
from workbench.study.documents_health import FindingDocument
from workbench.study.findings import finding, names_of
from workbench.study.seen import Seen

WORTH = 0.05
"""Exposed messages that add up to less of the steps are not worth a word [1]."""
NUMBERED = re.compile(r"__\d+(_\d+)+\Z")
"""Group and number that HCCL appends to the name of a message."""


def exposed_messages(seen: Seen) -> list[FindingDocument]:
    """Find messages during which no kernel of their rank computes: what overlapping them could save at most.

    The time is that of the account (`workbench.replay.account`): of messages matched across ranks the transfer, of others the
    recorded time with what they wait for their peers.
    """
    graph = seen.graph
    cost = float(seen.workload.measured_account.exposed_communication_s.sum())
    messages = seen.device[(graph.kind[seen.device] == NodeKind.COMMUNICATION) & (graph.step[seen.device] >= 0)]
    if not len(messages) or cost < WORTH * seen.steps_s:
        return []
    total = float(seen.workload.measured_account.communication_s.sum())
    names, bare = _bare(seen, messages)
    text = f"{units.format(cost, 's', 4)} of {units.format(total, 's', 4)} in messages pass while nothing computes"
    if (graph.kind == NodeKind.ARRIVAL).sum() < len(messages):
        text += "; part of it may be waiting for peers that are not recorded"
    fix = "send in parts as soon as each is ready, beside computation on another stream; send less (dtype, sharding); or use faster links"
    return [finding(seen, "exposed-messages", text, names_of(names, bare), len(messages), cost, fix, "certain")]


def _bare(seen: Seen, messages: np.ndarray) -> tuple[list[str], np.ndarray]:
    """Name every message, and say how long it runs alone [s]: the time of all of a name spread evenly over them."""
    graph = seen.graph
    names = [NUMBERED.sub("", shorten(seen.name(event), 60)) for event in graph.event[messages].tolist()]
    _, group = np.unique(np.array(names), return_inverse=True)
    out = np.zeros(len(messages))
    for rank in np.unique(graph.rank[messages]):
        kernels = seen.device[(graph.rank[seen.device] == rank) & (graph.kind[seen.device] == NodeKind.COMPUTE)]
        for number in np.unique(group):
            mine = (group == number) & (graph.rank[messages] == rank)
            if mine.any():
                out[mine] = seen.uncovered(messages[mine], kernels) / mine.sum()
    return names, out
