"""The timeline as lanes of intervals: measured above predicted, for a canvas, a raster or an export."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from workbench.errors import Refused
from workbench.graph.graph import Graph, NodeKind
from workbench.replay.timeline import Timeline
from workbench.study.prediction import Prediction
from workbench.view import kernels
from workbench.view.backend import plotting
from workbench.view.palette import LOOKS, Look, looks

_MARKS = (NodeKind.ROOT, NodeKind.STEP_BEGIN, NodeKind.STEP_END, NodeKind.ARRIVAL, NodeKind.MEETING)
BUDGET = 9000
"""Rectangles a picture holds at most."""


@dataclass(frozen=True)
class Lanes:
    """Intervals of two timelines by lane; interval arrays have length I, sorted by lane and start.

    Even lanes are measured, odd lanes predicted; lanes 2 r and 2 r + 1 belong to ``resources[r]``.
    """

    resources: tuple[str, ...]
    is_device: np.ndarray  # bool [R]
    ptr: np.ndarray  # int64 [2 R + 1]
    start: np.ndarray  # float64 [I] [s] since the begin of the step shown (of the recording, when all are)
    finish: np.ndarray  # float64 [I] [s]
    reach: np.ndarray  # float64 [I] [s], running maximum of finish
    look: np.ndarray  # uint8 [I], Look
    critical: np.ndarray  # bool [I]
    node: np.ndarray  # int32 [I], row of the Graph
    place: np.ndarray  # int32 [V, 2], interval of a node, measured and predicted (-1: not shown)

    @property
    def end_s(self) -> float:
        """Latest finish of either timeline [s]."""
        return float(self.finish.max()) if len(self.finish) else 1.0


@dataclass(frozen=True)
class Layout:
    """The measured half of `Lanes`, which every prediction of a recording shares; lane r owns rows ``ptr[r]:ptr[r + 1]``."""

    graph: Graph
    step: int | None
    resources: tuple[str, ...]
    is_device: np.ndarray  # bool [R]
    ptr: np.ndarray  # int64 [R + 1]
    node: np.ndarray  # int32 [N], sorted by lane and measured start
    start: np.ndarray  # float64 [N] [s]
    finish: np.ndarray  # float64 [N] [s]
    critical: np.ndarray  # bool [N]
    look: np.ndarray  # uint8 [V], Look


def layout_of(prediction: Prediction, step: int | None = None) -> Layout:
    """Lay the measured timeline out: devices first, resources with nothing to show left out (arguments as in `lanes_of`)."""
    graph = prediction.graph
    hidden = np.zeros(max(NodeKind) + 1, dtype=bool)
    hidden[list(_MARKS)] = True
    shown = ~hidden[graph.kind]
    if step is not None:
        shown &= graph.step == step
    nodes = np.flatnonzero(shown)
    used = np.flatnonzero(np.bincount(graph.resource[nodes], minlength=len(graph.resources)))
    used = used[np.argsort(~graph.resource_is_device[used], kind="stable")]
    rank = np.zeros(len(graph.resources), dtype=np.int64)
    rank[used] = np.arange(len(used))
    start, finish, critical = _side(graph, prediction.measured_timeline, nodes, step)
    lane = rank[graph.resource[nodes]]
    order = np.lexsort((start, lane))
    ptr = np.searchsorted(lane[order], np.arange(len(used) + 1)).astype(np.int64)
    return Layout(
        graph, step, tuple(graph.resources[r] for r in used), graph.resource_is_device[used], ptr, nodes[order].astype(np.int32),
        start[order], finish[order], critical[order], looks(graph, prediction.table),
    )  # fmt: skip


def lanes_of(prediction: Prediction, step: int | None = None, layout: Layout | None = None) -> Lanes:
    """Lay the measured and the predicted timeline out in lanes.

    Parameters
    ----------
    prediction : Prediction
    step : int or None
        Index of the step to show, both timelines starting at its begin; None shows the whole recording.
    layout : Layout, optional
        Of another prediction of the same recording, to be used again.

    Returns
    -------
    Lanes
        Resources with nothing to show are left out; devices come first.
    """
    base = layout if layout is not None and layout.graph is prediction.graph and layout.step == step else layout_of(prediction, step)
    node = _by_start(base, prediction.timeline.start_s)
    start, finish, critical = _side(base.graph, prediction.timeline, node, step)
    rows, count = len(node), len(base.resources)
    sizes = np.repeat(np.diff(base.ptr), 2)
    ptr = np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)
    lane = np.repeat(np.arange(count), np.diff(base.ptr))
    at = np.arange(rows) + base.ptr[lane]  # of the measured interval: those of earlier lanes lie twice before it
    other = at + np.diff(base.ptr)[lane]

    def woven(measured: np.ndarray, predicted: np.ndarray) -> np.ndarray:
        out = np.empty(2 * rows, dtype=measured.dtype)
        out[at], out[other] = measured, predicted
        return out

    place = np.full((len(base.graph), 2), -1, dtype=np.int32)
    place[base.node, 0], place[node, 1] = at, other
    both, ends = woven(base.node, node), woven(base.finish, finish)
    reach = np.empty(2 * rows)
    kernels.running_max(ptr, ends, reach)
    return Lanes(
        base.resources, base.is_device, ptr, woven(base.start, start), ends, reach, base.look[both], woven(base.critical, critical),
        both, place,
    )  # fmt: skip


def _by_start(base: Layout, start_s: np.ndarray) -> np.ndarray:
    """Return the nodes of a layout sorted by lane and start; most lanes keep the measured order, so only the others are sorted."""
    node = base.node.copy()
    begin = start_s[node]
    falls = np.flatnonzero(begin[1:] < begin[:-1])
    for lane in np.unique(np.searchsorted(base.ptr, falls, side="right") - 1):
        low, high = base.ptr[lane], base.ptr[lane + 1]
        node[low:high] = node[low:high][np.argsort(begin[low:high], kind="stable")]
    return node


def _side(graph: Graph, timeline: Timeline, nodes: np.ndarray, step: int | None) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Start, finish [s] and criticality of the nodes, counted from the begin of the step."""
    if step is not None and not 0 <= step < len(graph.step_begin):
        raise Refused("step", f"{step!r} is none of the {len(graph.step_begin)} steps", "count them from 0")
    origin = 0.0 if step is None else timeline.finish_s[graph.step_begin[step]]
    return timeline.start_s[nodes] - origin, timeline.finish_s[nodes] - origin, timeline.critical[nodes]


def typical_step(prediction: Prediction) -> int:
    """Return the step whose recorded time is nearest the median of complete steps."""
    graph = prediction.graph
    distance = np.abs(graph.measured_step_s - prediction.measured_step_s)
    return int(np.argmin(np.where(graph.step_complete, distance, np.inf) if graph.step_complete.any() else distance))


@dataclass(frozen=True)
class Names:
    """Text of the nodes, interned: ``text[index[v]]`` is the name of node v."""

    text: tuple[str, ...]
    index: np.ndarray  # int32 [V]


def names_of(prediction: Prediction) -> Names:
    """Return the recorded event name of every node, or what the node is where no event was recorded."""
    graph, trace = prediction.graph, prediction.scenario.workload.trace
    words = [kind.name.lower().replace("_", " ") for kind in NodeKind]
    code = graph.kind.astype(np.int64)
    rows = graph.event >= 0
    code[rows] = len(words) + trace.events.name[graph.event[rows]]
    unique, index = np.unique(code, return_inverse=True)
    text = tuple(words[c] if c < len(words) else trace.strings[c - len(words)] for c in unique)
    return Names(text, index.astype(np.int32))


def detail(lanes: Lanes, t0: float, t1: float, pixels: int, budget: int = BUDGET) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Return the rectangles of [t0, t1].

    Parameters
    ----------
    lanes : Lanes
    t0, t1 : float
        Window [s].
    pixels : int
        Its width [px].
    budget : int
        Most rectangles.

    Returns
    -------
    tuple of ndarray
        See `workbench.view.kernels.detail`.
    """
    return kernels.detail(lanes.ptr, lanes.start, lanes.finish, lanes.reach, lanes.look, lanes.critical, t0, t1, pixels, budget)


def statistics(lanes: Lanes, wanted: np.ndarray, t0: float, t1: float) -> list[dict[str, float | str]]:
    """Return one row a kind for the intervals of the ``wanted`` lanes (bool [2 R]) that touch [t0, t1] [s].

    Each row holds kind, count, inside_s (time within the selection), sum_s, mean_s, min_s and max_s of whole durations [s].
    """
    found = kernels.interval_statistics(lanes.ptr, lanes.start, lanes.finish, lanes.reach, lanes.look, wanted, t0, t1)
    rows: list[dict[str, float | str]] = []
    for look in Look:
        count, inside, total, low, high = found[look]
        if count:
            rows.append(
                {
                    "kind": LOOKS[look].word,
                    "count": int(count),
                    "inside_s": inside,
                    "sum_s": total,
                    "mean_s": total / count,
                    "min_s": low,
                    "max_s": high,
                }
            )
    return rows


def timeline(prediction: Prediction, step: int | None = None, *, width: int = 900, row: int = 18) -> Any:
    """Return the timeline as a HoloViews picture that is drawn afresh at every zoom.

    Parameters
    ----------
    prediction : Prediction
    step : int or None
        Step to show; None: the typical one.
    width, row : int
        Size of the picture and of a lane [px].

    Returns
    -------
    holoviews.DynamicMap
        An RGB raster; each lane shows the dominant kind of a pixel, shaded by its busy share.
    """
    from holoviews.streams import RangeX

    hv = plotting()

    lanes = lanes_of(prediction, typical_step(prediction) if step is None else step)
    end = lanes.end_s * 1e3
    ticks = [
        (len(lanes.ptr) - 1.5 - i, f"{name} {side}")
        for i, (name, side) in enumerate((n, s) for n in lanes.resources for s in ("measured", "predicted"))
    ]

    def draw(x_range: tuple[float, float] | None) -> Any:
        low, high = x_range or (0.0, end)
        low, high = max(low, -0.05 * end), min(max(high, low + 1e-6), 1.05 * end)
        image = rgb(lanes, low * 1e-3, high * 1e-3, width)
        return hv.RGB(image, bounds=(low, 0.0, high, float(len(image))), kdims=["time", "lane"]).opts(apply_hard_bounds=False)

    def bounded(plot: Any, _element: Any) -> None:
        plot.handles["x_range"].bounds = (-0.05 * end, 1.05 * end)  # else the wheel leads into emptiness

    options = {
        "hooks": [bounded],
        "width": width,
        "height": 80 + row * len(ticks),
        "yticks": ticks,
        "xlabel": "time [ms]",
        "ylabel": "",
        "tools": ["xwheel_zoom", "xpan", "reset"],
    }
    return hv.DynamicMap(draw, streams=[RangeX()]).opts(
        hv.opts.RGB(**options, active_tools=["xwheel_zoom", "xpan"], default_tools=[], title=_title(prediction))
    )


def rgb(lanes: Lanes, t0: float, t1: float, pixels: int) -> np.ndarray:
    """Return the raster of [t0, t1] [s] as uint8 [lanes, pixels, 3], white where idle."""
    top, share = kernels.raster(lanes.ptr, lanes.start, lanes.finish, lanes.reach, lanes.look, t0, t1, pixels)
    ink = np.full((256, 3), 255.0)
    for look, colour in LOOKS.items():
        ink[look] = [int(colour.light[i : i + 2], 16) for i in (1, 3, 5)]
    weight = np.where(top == 255, 0.0, np.clip(0.25 + 0.75 * share, 0.0, 1.0))[..., None]
    return (255.0 + weight * (ink[top] - 255.0)).astype(np.uint8)


def _title(prediction: Prediction) -> str:
    card = prediction.scenario.npu.name if prediction.scenario.npu is not None else "as recorded"
    return f"measured {prediction.measured_step_s * 1e3:.3f} ms, predicted {prediction.step_time_s * 1e3:.3f} ms ({card})"
