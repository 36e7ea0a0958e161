"""Lanes, the canvas buffer and what is said about a node: against the graph they were made from."""

from __future__ import annotations

import numpy as np
import pytest

from workbench.graph.graph import DEVICE_KINDS, NodeKind
from workbench.view import canvas
from workbench.view.kernels import FLAG_AGGREGATED, FLAG_RARE
from workbench.view.palette import Look
from workbench.view.timeline import lanes_of, names_of, rgb, statistics, timeline, typical_step

MARKS = (NodeKind.ROOT, NodeKind.STEP_BEGIN, NodeKind.STEP_END)


def test_every_node_is_in_both_lanes_with_its_own_time(prediction):
    """Lane 2 r holds the measured, 2 r + 1 the predicted interval of every node of resource r."""
    lanes, graph = lanes_of(prediction), prediction.graph
    shown = np.flatnonzero(~np.isin(graph.kind, MARKS))
    assert len(lanes.node) == 2 * len(shown)
    for side, times in enumerate((prediction.measured_timeline, prediction.timeline)):
        at = lanes.place[shown, side]
        np.testing.assert_array_equal(lanes.node[at], shown)
        np.testing.assert_allclose(lanes.start[at], times.start_s[shown])
        np.testing.assert_allclose(lanes.finish[at], times.finish_s[shown])
        lane = np.searchsorted(lanes.ptr, at, side="right") - 1
        assert (lane % 2 == side).all()
        assert [lanes.resources[i] for i in lane // 2] == [graph.resources[r] for r in graph.resource[shown]]


def test_a_step_starts_at_zero_on_both_sides_and_devices_come_first(prediction):
    step = typical_step(prediction)
    lanes = lanes_of(prediction, step)
    assert set(prediction.graph.step[lanes.node]) == {step}
    assert lanes.start.min() == pytest.approx(0.0, abs=1e-4)
    for side, times in enumerate((prediction.measured_timeline, prediction.timeline)):
        inside = np.arange(len(lanes.node))[(np.searchsorted(lanes.ptr, np.arange(len(lanes.node)), side="right") - 1) % 2 == side]
        assert lanes.finish[inside].max() <= times.step_s[step] * 1.001
    first_host = np.flatnonzero(~lanes.is_device)
    assert not len(first_host) or lanes.is_device[: first_host[0]].all()
    assert not lanes.is_device[first_host[0] :].any()


def decoded(buffer):
    head = np.frombuffer(buffer, "<f8", 16)
    n, at, out = int(head[1]), 128, {}
    for name, kind in zip(
        ("x0", "x1", "share", "index", "count", "name", "op", "lane", "look", "flags"),
        ("<f4",) * 3 + ("<i4",) * 4 + ("<u2", "u1", "u1"),
        strict=True,
    ):
        out[name] = np.frombuffer(buffer, kind, n, at)
        at += out[name].nbytes
    assert at == len(buffer)
    return head, out


def test_the_buffer_holds_the_busy_time_of_its_window(prediction):
    """Sum of share x width = sum of the durations of all nodes shown (the window covers everything); names and rows are theirs."""
    lanes, names = lanes_of(prediction), names_of(prediction)
    buffer = canvas.pack(lanes, names, prediction.graph.op, (0.0, lanes.end_s), 1000, 7, (1.0, 2.0))
    head, picture = decoded(buffer)
    assert head[7] == 7 and head[8] == 1.0 and head[9] == 2.0
    busy = ((picture["x1"].astype(float) - picture["x0"]) * picture["share"]).sum()
    assert busy == pytest.approx((lanes.finish - lanes.start).sum(), rel=1e-4)
    single = picture["flags"] & FLAG_AGGREGATED == 0
    node = lanes.node[picture["index"][single]]
    np.testing.assert_array_equal(picture["op"][single], prediction.graph.op[node])
    assert [names.text[i] for i in picture["name"][single][:50]] == [names.text[names.index[v]] for v in node[:50]]
    rare = picture["flags"] & FLAG_RARE > 0  # drawn beside the rectangle that already counts them
    assert picture["count"][~rare].sum() == len(lanes.node)


def test_statistics_of_everything_are_those_of_the_graph(prediction):
    lanes = lanes_of(prediction)
    wanted = np.arange(len(lanes.ptr) - 1) % 2 == 0
    rows = {row["kind"]: row for row in statistics(lanes, wanted, -1.0, lanes.end_s + 1.0)}
    communication = prediction.graph.kind == NodeKind.COMMUNICATION
    assert rows["communication"]["count"] == communication.sum()
    assert rows["communication"]["sum_s"] == pytest.approx(prediction.graph.measured_s[communication].sum())


def test_details_arrows_and_search_name_the_node(prediction):
    lanes, names, graph = lanes_of(prediction), names_of(prediction), prediction.graph
    node = int(np.flatnonzero(np.isin(graph.kind, DEVICE_KINDS) & (graph.op >= 0))[3])
    title, rows = canvas.node_details(prediction, lanes, names, node)
    words = dict(rows)
    assert title == names.text[names.index[node]]
    assert words["operator"] == prediction.table.signature[graph.op[node]]
    found = canvas.arrows(prediction, lanes, node)
    assert any(arrow["binding"] for arrow in found)
    into = graph.edge_ptr[node + 1] - graph.edge_ptr[node]
    assert len(found) <= 2 * (into + (graph.edge_from == node).sum())
    index, place, count = canvas.find(lanes, names, title[:12].upper(), -1, 1)
    assert place == 1 and title[:12] in names.text[names.index[lanes.node[index]]]
    second, place, _ = canvas.find(lanes, names, title[:12], index, 1)
    assert place == 2 and lanes.start[second] >= lanes.start[index]
    assert canvas.find(lanes, names, title[:12], index, -1)[1] == count
    assert canvas.find(lanes, names, "no such event", -1, 1) == (-1, 0, 0)


def test_the_raster_is_white_where_nothing_runs(prediction):
    lanes = lanes_of(prediction)
    image = rgb(lanes, lanes.end_s + 1.0, lanes.end_s + 2.0, 10)
    assert (image == 255).all()
    assert (rgb(lanes, 0.0, lanes.end_s, 400) < 255).any()


def test_the_notebook_picture_renders(prediction):
    hv = pytest.importorskip("holoviews")
    hv.extension("bokeh", logo=False)
    assert hv.render(timeline(prediction)) is not None


def test_looks_tell_matrix_work_from_vector_work(prediction):
    lanes = lanes_of(prediction)
    present = {Look(code) for code in np.unique(lanes.look)}
    assert {Look.MATRIX, Look.VECTOR, Look.COMMUNICATION, Look.HOST} <= present
