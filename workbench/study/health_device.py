"""Device work that cannot be: faster than its card allows, two kernels at once on a stream, times below zero."""

from __future__ import annotations

from math import isfinite

import numpy as np

from workbench import units
from workbench.hardware.npu import NpuSpec
from workbench.operators.kinds import shorten
from workbench.operators.table import COLLECTIVES, Dtype, Kind
from workbench.study.documents_health import Certainty, FindingDocument
from workbench.study.findings import finding, names_of
from workbench.study.seen import Seen
from workbench.trace.clean import faults

TOLERANCE = 1.02
"""A time this much below a roof is rounding [1]."""
TRANSFORMED = 4.0
"""A convolution may do with this many times fewer multiplications: Winograd F(4x4,3x3) (Lavin and Gray, CVPR 2016)."""
CONVOLUTIONS = (Kind.CONV_FORWARD, Kind.CONV_BACKWARD_DATA, Kind.CONV_BACKWARD_WEIGHT, Kind.CONV_BACKWARD)


def impossible_times(seen: Seen) -> list[FindingDocument]:
    """Find operators recorded faster than the card's roofs allow.

    A unit of F operations and B compulsory bytes takes at least max(F / peak of its dtype, (B - S) / bandwidth of the outermost
    memory), S being what the shared level may still hold of it: time below F / peak or below (B - S) / bandwidth cannot be; time
    below B / bandwidth alone says that the shared level was warm, which is no fault. One unit of the producer's clock is allowed for.
    """
    card = seen.card
    if card is None or not len(seen.device):
        return []
    unit_s, row = _units(seen)
    table, slack = seen.table, resolution_s(seen)
    kind = table.kind[row]
    known = ~np.isin(kind, (*COLLECTIVES, Kind.UNKNOWN)) & table.has_shapes[row] & (unit_s > 0)
    time = unit_s * TOLERANCE + slack
    computing = table.flops[row] / peaks(seen, card)[row]
    moved = (table.bytes_read + table.bytes_written)[row]
    crossing = kind == Kind.COPY
    crossing[crossing] = table.dim("direction")[row[crossing]] > 0  # to and from the host: not through this memory twice
    bandwidth, shared = outer_bandwidth(card), _shared_size(card)
    fast = known & (computing > time)
    folded = fast & np.isin(kind, CONVOLUTIONS) & (computing <= TRANSFORMED * time)
    below = known & ~fast & ~crossing & (moved / bandwidth > time)
    unread = below & ((moved - shared) / bandwidth > time)
    out = []
    sure: Certainty
    for which, code, what, fix, sure in (
        (fast & ~folded, "faster-than-compute-roof", f"recorded faster than {card.name} multiplies at its peak",
         "compare the recorded shapes and dtype with what ran: sparsity, another dtype, or a wrong clock", "likely"),
        (folded, "fast-algorithm", f"faster than {card.name} multiplies at its peak, as a convolution by Winograd's algorithm may be",
         "nothing: count its operations with care when stating utilisation", "possible"),
        (unread, "faster-than-memory-roof", f"recorded faster than {card.name} moves the operands, even with its shared level full of them",
         "check that the operator ran on the recorded shapes, and the device's clock", "likely"),
        (below & ~unread, "warm-shared-level", "faster than the outermost memory allows: operands were still in the shared level",
         "nothing: such times hold only where the producer runs just before", "likely"),
    ):  # fmt: skip
        units = np.flatnonzero(which)
        if len(units):
            need = np.maximum(computing, moved / bandwidth)[units]
            text = f"{what}: {need.sum() / unit_s[units].sum():.2f}x in sum, up to {(need / unit_s[units]).max():.2f}x"
            names = names_of([table.name[r] for r in row[units]], unit_s[units])
            out.append(finding(seen, code, text, names, len(units), 0.0, fix, sure))
    return out


def _units(seen: Seen) -> tuple[np.ndarray, np.ndarray]:
    """Recorded time [s] and row of the table of each priced unit."""
    graph, nodes = seen.graph, seen.device
    nodes = nodes[(graph.unit[nodes] >= 0) & (graph.op[nodes] >= 0)]
    number, unit = np.unique(graph.unit[nodes], return_inverse=True)
    row = np.zeros(len(number), dtype=np.int64)
    row[unit] = graph.op[nodes]
    return np.bincount(unit, weights=graph.measured_s[nodes], minlength=len(number)), row


def peaks(seen: Seen, card: NpuSpec) -> np.ndarray:
    """Return the most operations a second at the dtype of each row; infinite where dtype or unit are not known."""
    codes, back = np.unique(seen.table.dtype, return_inverse=True)
    peaks = [card.peak_flops(Dtype(code).name.lower()) if code else 0.0 for code in codes]
    return np.array([peak if peak > 0 else np.inf for peak in peaks])[back]


def outer_bandwidth(card: NpuSpec) -> float:
    """Return the bandwidth of the outermost memory, both ways together where they are apart [B/s]; infinite where it is not stated."""
    outer = list(card.memory)[-1]
    one = card.bandwidth(outer)
    both = card.bandwidth(outer, True) if card.memory[outer].write_bandwidth is not None else 0.0
    return one + both if isfinite(one) and one > 0 else np.inf


def _shared_size(card: NpuSpec) -> float:
    """Size of the level all cores share [B] (0: none)."""
    level = next((one for one in list(card.memory.values())[-2::-1] if one.scope == "chip"), None)
    return level.size * level.replicas if level is not None else 0.0


def resolution_s(seen: Seen) -> float:
    """Return the unit of the producer's device times [s]: 1 us where all durations are whole microseconds, else 1 ns."""
    dur = seen.trace.events.dur_ns[seen.graph.event[seen.device]]
    return 1e-6 if len(dur) and not (dur % 1000).any() else 1e-9


def stream_overlaps(seen: Seen) -> list[FindingDocument]:
    """Find work that starts before earlier work of its stream has ended."""
    graph = seen.graph
    nodes = seen.device[np.argsort(graph.resource[seen.device], kind="stable")]
    start, lane = graph.recorded_start_s[nodes], graph.resource[nodes]
    end = start + graph.measured_s[nodes]
    over = np.zeros(len(nodes))
    for number in np.unique(lane):
        mine = np.flatnonzero(lane == number)
        over[mine[1:]] = np.minimum(np.maximum.accumulate(end[mine])[:-1], end[mine[1:]]) - start[mine[1:]]
    hit = np.flatnonzero(over > resolution_s(seen) * 1.5)
    if not len(hit):
        return []
    where = ", ".join(dict.fromkeys(graph.resources[number] for number in lane[hit][:3]))
    launch = seen.trace.events.correlation[graph.event[nodes]]
    graphs = np.mean((launch[hit] == launch[hit - 1]) & (launch[hit] >= 0)) > 0.5
    text = f"work starts before earlier work of its stream has ended, by {over[hit].sum() * 1e6:.1f} us in sum"
    text += "; branches of a launched graph may run side by side" if graphs else ""
    fix = "check which stream the producer writes; times of such work are shares of a device, not of the operator alone"
    return [finding(seen, "stream-overlap", text, where, len(hit), float(over[hit].sum()), fix, "certain")]


def damaged_times(seen: Seen) -> list[FindingDocument]:
    """Find durations below zero and those that run past later work of their stream."""
    found, out = faults(seen.trace), []
    e = seen.trace.events
    for rows, code, text, lost in (
        (found.negative, "negative-duration", "durations below zero, read as zero", 0.0),
        (
            found.overflow,
            "overflow-duration",
            "recorded ends lie behind later launches of the same stream; they end at the next start",
            float((e.dur_ns[found.overflow] - found.clipped_ns).sum()) / 1e9,
        ),
    ):
        if len(rows):
            names = names_of([shorten(seen.name(int(i))) for i in rows], np.ones(len(rows)))
            text += f": {units.format(lost, 's', 4)} are set aside" if lost else ""
            out.append(finding(seen, code, text, names, len(rows), 0.0, "record again with a newer profiler", "certain"))
    return out
