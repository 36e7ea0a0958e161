"""What the app's canvas is told: one buffer of rectangles, the details of a node, its dependencies, a search.

The buffer is 16 float64 (version, R, t0, t1, end, aggregated, intervals, epoch, measured step, predicted step, pixels,
5 spare) and then R values of each of x0, x1, share (float32; x relative to t0 [s]), interval, count, name, operator row
(int32), lane (uint16), look, flags (uint8): everything one picture needs, so that it can never be torn.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from workbench.cost.cost import Bound, Evidence
from workbench.graph.graph import EdgeKind, NodeKind
from workbench.study.prediction import Prediction
from workbench.view.kernels import FLAG_AGGREGATED
from workbench.view.palette import BOUNDS, EVIDENCE, LOOKS, Look
from workbench.view.text import quantity
from workbench.view.timeline import Lanes, Names, detail

VERSION = 1.0
_EDGE_WORDS = {
    EdgeKind.ROOT: "start of the recording",
    EdgeKind.PROGRAM: "program order",
    EdgeKind.HANDOVER: "hand-over between threads",
    EdgeKind.LAUNCH: "launch",
    EdgeKind.STREAM: "stream order",
    EdgeKind.EVENT: "event",
    EdgeKind.EVENT_INFERRED: "event (inferred)",
    EdgeKind.SYNC: "synchronisation",
    EdgeKind.SYNC_INFERRED: "synchronisation (inferred)",
    EdgeKind.QUEUE: "full launch queue",
    EdgeKind.FALLBACK: "no recorded cause",
}


def pack(
    lanes: Lanes, names: Names, op: np.ndarray, view: tuple[float, float], pixels: int, epoch: int, steps: tuple[float, float]
) -> bytes:
    """Return the buffer for a view and half of it on either side.

    Parameters
    ----------
    lanes, names : Lanes, Names
    op : ndarray
        int32 [V], operator row of every node (negative: none).
    view : (float, float)
        Visible window [s].
    pixels : int
        Width of the visible window [px].
    epoch : int
        Changes when the picture is another one and the canvas has to fit it anew.
    steps : (float, float)
        Measured and predicted end of the step [s] (0: no mark).
    """
    span = view[1] - view[0]
    t0, t1 = max(view[0] - span / 2, -0.05 * lanes.end_s), min(view[1] + span / 2, 1.05 * lanes.end_s)
    t1 = max(t1, t0 + 1e-9)
    box, index, lane, tag = detail(lanes, t0, t1, max(1, min(8000, round(pixels * (t1 - t0) / span))))
    node = lanes.node[np.maximum(index[:, 0], 0)]
    name, row = names.index[node], op[node]
    aggregated = bool((tag[:, 1] & FLAG_AGGREGATED).any())
    head = np.zeros(16)
    head[:11] = VERSION, len(box), t0, t1, lanes.end_s, aggregated, len(lanes.node), epoch, *steps, pixels
    columns = (
        (box[:, 0] - t0).astype("<f4"),
        (box[:, 1] - t0).astype("<f4"),
        box[:, 2].astype("<f4"),
        *(column.astype("<i4") for column in (index[:, 0], index[:, 1], name, row)),
        lane.astype("<u2"),
        tag[:, 0],
        tag[:, 1],
    )
    return b"".join((head.astype("<f8").tobytes(), *(np.ascontiguousarray(column).tobytes() for column in columns)))


def lane_labels(lanes: Lanes) -> list[dict[str, Any]]:
    """Return one ``{label, device}`` a resource."""
    heads = {" ".join(name.split()[:2]) for name in lanes.resources}
    only = heads.pop() + " " if len(heads) == 1 else ""  # "rank 0 " is not worth its room when there is but one
    pairs = zip(lanes.resources, lanes.is_device, strict=True)
    return [{"label": name.removeprefix(only), "device": bool(device)} for name, device in pairs]


def look_inks() -> list[dict[str, str]]:
    """Return word and colours of every `Look`, in its order."""
    return [{"word": LOOKS[look].word, "light": LOOKS[look].light, "dark": LOOKS[look].dark} for look in Look]


def node_details(prediction: Prediction, lanes: Lanes, names: Names, node: int) -> tuple[str, list[tuple[str, str]]]:
    """Return title and (word, text with unit) rows about one node."""
    graph, timeline = prediction.graph, prediction.timeline
    begins = [quantity(float(lanes.start[at]), "s") if at >= 0 else "–" for at in lanes.place[node]]
    before, after = float(graph.measured_s[node]), float(prediction.node_s[node])
    change = f" ({before / after:.2f}x faster)" if 0 < after <= before else f" ({after / before:.2f}x slower)" if before > 0 else ""
    rows = [
        ("is", NodeKind(graph.kind[node]).name.lower().replace("_", " ")),
        ("on", graph.resources[graph.resource[node]]),
        ("measured", quantity(before, "s")),
        ("predicted", quantity(after, "s") + change),
        ("starts", f"{begins[0]} measured, {begins[1]} predicted"),
        ("slack", "none: it sets the step" if timeline.critical[node] else quantity(timeline.slack_s[node], "s")),
    ]
    row = int(graph.op[node])
    if row >= 0:
        cost = prediction.cost
        rows += [
            ("operator", prediction.table.signature[row]),
            ("bound by", BOUNDS[Bound(cost.bound[row, 0])].word),
            ("rests on", EVIDENCE[Evidence(cost.evidence[row])].word),
        ]
        if prediction.table.flops[row] > 0:
            rows.append(("work", quantity(prediction.table.flops[row], "FLOP")))
    return names.text[names.index[node]], rows


def arrows(prediction: Prediction, lanes: Lanes, node: int, most: int = 40) -> list[dict[str, Any]]:
    """Return the dependencies into and out of a node, in both timelines; ``binding`` marks the one that set a start."""
    graph = prediction.graph
    into = np.arange(graph.edge_ptr[node], graph.edge_ptr[node + 1])
    out = np.flatnonzero(graph.edge_from == node)[:most]
    target = np.searchsorted(graph.edge_ptr, out, side="right") - 1
    pairs = [(int(graph.edge_from[e]), node, int(e)) for e in into[:most]] + [
        (node, int(v), int(e)) for v, e in zip(target, out, strict=True)
    ]
    found = []
    for side, timeline in enumerate((prediction.measured_timeline, prediction.timeline)):
        for begin, end, edge in pairs:
            a, b = lanes.place[begin, side], lanes.place[end, side]
            if a < 0 or b < 0:
                continue
            lane = np.searchsorted(lanes.ptr, [a, b], side="right") - 1
            found.append(
                {
                    "x0": float(lanes.finish[a]),
                    "x1": float(lanes.start[b]),
                    "lane0": int(lane[0]),
                    "lane1": int(lane[1]),
                    "binding": bool(timeline.binding[end] == edge),
                    "word": _EDGE_WORDS[EdgeKind(graph.edge_kind[edge])],
                }
            )
    return found


def find(lanes: Lanes, names: Names, text: str, after: int, way: int) -> tuple[int, int, int]:
    """Search measured lanes for the next event by time whose name holds ``text``.

    Parameters
    ----------
    text : str
        Part of a name, in any case.
    after : int
        Interval to go on from (-1: from the begin).
    way : int
        1 forwards, -1 backwards.

    Returns
    -------
    (int, int, int)
        Interval (-1: none), its place among the matches (from 1), and how many there are.
    """
    wanted = np.array([text.strip().lower() in name.lower() for name in names.text], dtype=bool)
    lane = np.searchsorted(lanes.ptr, np.arange(len(lanes.node)), side="right") - 1
    rows = np.flatnonzero(wanted[names.index[lanes.node]] & (lane % 2 == 0)) if len(lanes.node) else np.zeros(0, dtype=np.int64)
    if not len(rows):
        return -1, 0, 0
    rows = rows[np.argsort(lanes.start[rows], kind="stable")]
    place = np.flatnonzero(rows == after)
    if len(place):
        at = int(place[0] + way) % len(rows)
    else:
        at = 0 if way > 0 else len(rows) - 1
    return int(rows[at]), at + 1, len(rows)
