"""The Chrome trace of a prediction: complete, well formed, and the same times as the timeline."""

from __future__ import annotations

import gzip
import json
from collections import defaultdict
from itertools import pairwise

import numpy as np
import pytest

from workbench.errors import Refused
from workbench.graph.graph import DEVICE_KINDS, EdgeKind
from workbench.study.perfetto import perfetto, write_perfetto


@pytest.fixture(scope="module")
def events(prediction):
    return perfetto({"step.json": prediction})["traceEvents"]


def test_two_process_groups_with_every_lane_named(events, prediction):
    names = {e["pid"]: e["args"]["name"] for e in events if e["name"] == "process_name"}
    assert names == {1: "measured: step.json", 2: "predicted on npu-x: step.json"}
    lanes = [e["args"]["name"] for e in events if e["name"] == "thread_name" and e["pid"] == 2]
    assert lanes == ["steps", "critical path", *prediction.graph.resources]


def test_device_work_keeps_its_total_time(events, prediction):
    """Sum of the slices on device lanes = sum of node durations, up to the rounding to nanoseconds."""
    device = np.isin(prediction.graph.kind, DEVICE_KINDS)
    on_device = {i + 2 for i, is_device in enumerate(prediction.graph.resource_is_device) if is_device}
    for pid, seconds in ((1, prediction.graph.measured_s), (2, prediction.node_s)):
        found = [e for e in events if e["ph"] == "X" and e["pid"] == pid and e["tid"] in on_device]
        assert len(found) == device.sum()
        assert sum(e["dur"] for e in found) * 1e-6 == pytest.approx(seconds[device].sum(), abs=1e-9 * len(found))


def test_slices_of_a_lane_are_nested_or_apart(events):
    """Chrome JSON draws crossing slices wrongly; a resource does one thing at a time."""
    lanes = defaultdict(list)
    for e in events:
        if e["ph"] == "X" and e["pid"] == 2:
            lanes[e["tid"]].append((e["ts"], e["ts"] + e["dur"]))
    for spans in lanes.values():
        spans.sort()
        assert all(after[0] >= before[1] - 2e-3 for before, after in pairwise(spans))


def test_every_launch_is_an_arrow_from_host_to_device(events, prediction):
    graph = prediction.graph
    into = np.repeat(np.arange(len(graph)), np.diff(graph.edge_ptr))
    launches = int(((graph.edge_kind == EdgeKind.LAUNCH) & np.isin(graph.kind[into], DEVICE_KINDS)).sum())
    heads = {e["id"]: e for e in events if e["ph"] == "f"}
    tails = {e["id"]: e for e in events if e["ph"] == "s"}
    assert heads.keys() == tails.keys()
    assert len(heads) == 2 * launches > 0


def test_the_critical_path_is_marked(events, prediction):
    marked = [e for e in events if e["ph"] == "X" and e["pid"] == 2 and e["cat"] == "critical"]
    assert len(marked) == int((prediction.timeline.critical & (prediction.node_s > 0) & (prediction.graph.event >= -1)).sum())


def test_files_plain_and_compressed_hold_the_same(prediction, tmp_path):
    write_perfetto(tmp_path / "a.json", {"step": prediction})
    write_perfetto(tmp_path / "a.json.gz", {"step": prediction})
    plain = (tmp_path / "a.json").read_bytes()
    assert gzip.decompress((tmp_path / "a.json.gz").read_bytes()) == plain
    assert json.loads(plain)["displayTimeUnit"] == "ns"
    with pytest.raises(Refused, match="written"):
        write_perfetto(tmp_path / "no" / "a.json", {"step": prediction})
