"""Work that no rule knows, with its time: operators without a formula, kernels that only look like communication."""

from __future__ import annotations

import numpy as np

from workbench import units
from workbench.graph.graph import NodeKind
from workbench.operators.kinds import shorten
from workbench.operators.table import Kind
from workbench.study.documents_health import FindingDocument
from workbench.study.findings import finding
from workbench.study.seen import Seen
from workbench.trace.comm import comm, suspects

WORTH = 0.01
"""Unknown work of a smaller share of the device time is not worth a word [1]."""
SHOWN = 5


def unknown_operators(seen: Seen) -> list[FindingDocument]:
    """Find the kernels whose operator has no formula, or recorded no shapes: a model cannot price them, only a measurement or a vendor."""
    graph, table = seen.graph, seen.table
    nodes = seen.device[(graph.kind[seen.device] == NodeKind.COMPUTE) & (graph.op[seen.device] >= 0)]
    if not len(nodes):
        return []
    total = np.bincount(graph.op[nodes], weights=graph.measured_s[nodes], minlength=len(table))
    unknown = (table.kind == Kind.UNKNOWN) & (total > 0)
    share = total[unknown].sum() / total.sum() if total.sum() > 0 else 0.0
    if share < WORTH:
        return []
    by_name: dict[str, float] = {}
    for row in np.flatnonzero(unknown):
        by_name[table.name[row]] = by_name.get(table.name[row], 0.0) + float(total[row])
    bare = float(total[unknown & ~table.has_shapes].sum() / total[unknown].sum())
    text = f"{share:.1%} of the kernels' time is in work without a formula ({bare:.0%} of that without recorded shapes)"
    fix = "record with record_shapes=True; give vendor times for these names; a rule for a name is one line (CONTRIBUTING.md)"
    return [finding(seen, "unknown-operators", text, _listed(by_name), len(by_name), 0.0, fix, "certain")]


def unknown_messages(seen: Seen) -> list[FindingDocument]:
    """Find kernels that are named like communication, but that neither arguments nor a rule says are."""
    found = {shorten(name, 60): ns / 1e9 for name, ns in suspects(seen.trace, comm(seen.trace)).items()}
    if not found:
        return []
    text = "kernels named like communication that no rule knows count as computation"
    fix = "add the library's prefix to the names of communication kernels"
    return [finding(seen, "unknown-communication", text, _listed(found), len(found), sum(found.values()), fix, "possible")]


def _listed(seconds: dict[str, float]) -> str:
    """Return names with their time, the longest first."""
    first = sorted(seconds, key=lambda name: (-seconds[name], name))
    text = ", ".join(f"{name} {units.format(seconds[name], 's', 4)}" for name in first[:SHOWN])
    return f"{text} and {len(first) - SHOWN} more" if len(first) > SHOWN else text
