"""The messages of a recording: who took part in what, by the arguments of kernels and operators, else by names, streams and order.

Arguments are those of PyTorch's ``record_param_comms`` (torch/csrc/distributed/c10d/ParamCommsUtils.hpp), which the profiler writes on
the operator, its kernel, or both; producers before them state sequence number and communicator among the operator's inputs only.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from enum import IntEnum

import numpy as np

from workbench.graph.callers import event_ranks, launch_calls, operators_by_id
from workbench.graph.rank_arguments import MOST, Arguments, as_int
from workbench.operators.kinds import collective_kind
from workbench.operators.table import COLLECTIVES, Kind, OpTable
from workbench.trace.comm import comm
from workbench.trace.trace import DEVICE_WORK, Trace

OPERATOR = "record_param_comms"
_PAIR = re.compile(r"(?i)\b(send|recv)\D*(\d+)\s*(?:->|<-)\s*(\d+)")


class Sense(IntEnum):
    """Who has to have arrived before a member can finish."""

    ALL = 0  # everybody waits for everybody, and all end together: all-reduce, all-gather, reduce-scatter, barrier
    EXCHANGE = 1  # everybody waits for everybody, each ends by itself: all-to-all
    FROM_ROOT = 2  # broadcast, scatter
    TO_ROOT = 3  # reduce, gather
    SEND = 4
    RECEIVE = 5
    UNKNOWN = 6


SENSES = {
    **dict.fromkeys(("broadcast", "broadcastoop", "scatter"), Sense.FROM_ROOT),
    **dict.fromkeys(("reduce", "reduceoop", "gather"), Sense.TO_ROOT),
    **dict.fromkeys(("send", "isend"), Sense.SEND),
    **dict.fromkeys(("recv", "irecv", "recvanysource"), Sense.RECEIVE),
}
OF_KIND = {
    **dict.fromkeys((Kind.ALL_REDUCE, Kind.ALL_GATHER, Kind.REDUCE_SCATTER, Kind.BARRIER), Sense.ALL),
    Kind.ALL_TO_ALL: Sense.EXCHANGE,
    Kind.BROADCAST: Sense.FROM_ROOT,
}


@dataclass(frozen=True)
class Messages:
    """Device work of messages, sorted by rank and start; arrays of length N."""

    event: np.ndarray  # int32, row in Trace.events
    rank: np.ndarray  # int32
    kind: np.ndarray  # int8, Kind (UNKNOWN: not said)
    sense: np.ndarray  # int8, Sense
    seq: np.ndarray  # int64, number within the process group (-1: not said)
    bytes: np.ndarray  # int64 [B], the larger buffer of one rank (0: not said)
    exact: np.ndarray  # bool, ``bytes`` counts bytes, not elements of a type that is not said
    size: np.ndarray  # int32, ranks of the group (0: not said)
    name: tuple[str, ...]  # of the process group ("": not said)
    members: tuple[tuple[int, ...], ...]  # ranks of the group ((): not said)
    local: tuple[str, ...]  # what tells groups of one rank apart where they have no name
    peer: np.ndarray  # int32, the other rank of a point-to-point message, or the root (-1: not said)
    start: np.ndarray  # int64 [ns], as recorded
    end: np.ndarray  # int64 [ns], as recorded

    def __len__(self) -> int:
        return len(self.event)


def messages(trace: Trace, table: OpTable, op: np.ndarray) -> Messages:
    """Return every message of a recording.

    Parameters
    ----------
    trace : Trace
        Cleaned.
    table : OpTable
    op : int32 [E]
        Row of ``table`` of each event (-1: none), see `workbench.graph.units.price_units`.
    """
    e = trace.events
    collective = np.append(np.isin(table.kind, COLLECTIVES), False)
    found = comm(trace) | (collective[op] & np.isin(e.category, DEVICE_WORK))
    rank = event_ranks(trace)
    event = np.flatnonzero(found)
    event = event[np.lexsort((event, e.start_ns[event], rank[event]))]
    row = op[event]
    ask = Arguments(trace, event, *_operators(trace, event))
    names = ask.texts("Collective name")
    labels = [_label(trace, own, note, int(i)) for own, note, i in zip(names, ask.label, event, strict=True)]
    stated = [int(table.kind[r]) if r >= 0 and collective[r] else 0 for r in row.tolist()]
    distinct = {pair: (of := _kind(*pair), int(_sense(pair[0], Kind(of)))) for pair in set(zip(labels, stated, strict=True))}
    told = np.array([distinct[pair] for pair in zip(labels, stated, strict=True)], dtype=np.int8).reshape(-1, 2)
    kind, sense = told[:, 0], told[:, 1]
    size = ask.integers("Group size", 0)
    size = np.where((size >= 0) & (size <= MOST), size, 0)
    bytes_, exact = _bytes(table, row, ask)
    known = np.append(np.minimum(table.dim("group_size"), MOST), 0)[row]
    size = np.where(size > 0, size, np.where(collective[row], known, 0))
    ranks = ask.members(size, [int(r) for r in rank[event]])
    size = np.array([len(m) or s for m, s in zip(ranks, size.tolist(), strict=True)], dtype=np.int32)
    start = e.start_ns[event].astype(np.int64)
    columns = (event.astype(np.int32), rank[event].astype(np.int32), kind, sense, ask.sequence(), bytes_, exact, size)
    peer = _peers(ask, sense, labels, ranks)
    return Messages(
        *columns, tuple(ask.group_names()), tuple(ranks), tuple(ask.local()), peer, start, start + np.maximum(e.dur_ns[event], 0)
    )


def _operators(trace: Trace, event: np.ndarray) -> tuple[np.ndarray, list[str]]:
    """Return the operator of each message that states its arguments (-1: none), and the annotation around its launch ("": none)."""
    e, strings = trace.events, trace.strings
    call = launch_calls(trace)[event]
    known = {i for i, text in enumerate(strings) if text == OPERATOR}
    spoken = {i for i, text in enumerate(strings) if text.startswith(("nccl:", "hccl:", "xccl:", "gloo:", "rccl:"))}
    operator, label = np.full(len(event), -1, dtype=np.int64), [""] * len(event)
    for i, at in enumerate(call.tolist()):
        while at >= 0 and operator[i] < 0:
            name = int(e.name[at])
            if name in spoken and not label[i]:
                label[i] = strings[name]
            operator[i] = at if name in known else -1
            at = int(e.parent[at])
    lost = np.flatnonzero(operator < 0)
    for ask in (event[lost], np.maximum(call[lost], 0)):
        hit = operators_by_id(trace, ask)
        fine = (hit >= 0) & np.isin(e.name[hit], list(known)) & (operator[lost] < 0)
        operator[lost[fine]] = hit[fine]
    return operator, label


def _label(trace: Trace, own: str, annotation: str, event: int) -> str:
    """Name that tells best what a message is: its argument, the annotation around its launch, or its kernel."""
    return own or annotation or trace.name_of(event)


def _kind(label: str, known: int) -> int:
    pair = _PAIR.search(label)
    kind = Kind.SEND_RECV if pair else collective_kind(label.rstrip("_"))
    return int(kind) if kind is not None else known


def _sense(label: str, kind: Kind) -> int:
    plain = label.lower().removeprefix("nccl:").removeprefix("hccl:").removeprefix("xccl:").removeprefix("c10d::")
    pair = _PAIR.search(label)
    word = pair[1].lower() if pair else plain.replace("_", "")
    return int(SENSES.get(word, OF_KIND.get(kind, Sense.UNKNOWN)))


def _bytes(table: OpTable, row: np.ndarray, ask: Arguments) -> tuple[np.ndarray, np.ndarray]:
    """Return the size of each message [B] (0: not said), and whether that is one: else a number that stands for it."""
    known = np.append(np.isin(table.kind, COLLECTIVES), False)[row]
    size = np.append(table.dim("bytes"), 0)[row]
    count = np.maximum(ask.integers("In msg nelems", 0), ask.integers("Out msg nelems", 0))
    exact = known & (size > 0)
    return np.where(exact, size, count).astype(np.int64), exact


def _peers(ask: Arguments, sense: np.ndarray, labels: Sequence[str], members: Sequence[tuple[int, ...]]) -> np.ndarray:
    """Return the other rank of a message, or the root of a rooted one (-1: not said)."""
    source, target = ask.integers("Src Rank"), ask.integers("Dst Rank")
    root = np.full(len(sense), -1, dtype=np.int64)
    for key in ("Root Rank", "Root rank", "Root"):
        root = np.where(root >= 0, root, ask.integers(key))
    rooted = np.isin(sense, (Sense.FROM_ROOT, Sense.TO_ROOT))
    peer = np.where(sense == Sense.SEND, target, np.where(sense == Sense.RECEIVE, source, np.where(rooted, root, -1)))
    for i in np.flatnonzero((peer < 0) & np.isin(sense, (Sense.SEND, Sense.RECEIVE))).tolist():
        pair = _PAIR.search(labels[i])
        local = as_int(pair[3]) if pair else -1
        peer[i] = members[i][local] if 0 <= local < len(members[i]) else local
    return np.where((peer >= 0) & (peer < MOST), peer, -1).astype(np.int32)
