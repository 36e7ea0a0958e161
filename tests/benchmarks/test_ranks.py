"""Speed of matching the messages of many ranks: a generated job of 64, and that twice the messages take about twice the time."""

from __future__ import annotations

import sys
import time
from pathlib import Path

import pytest

from tests.graph.jobs import Message, codes, group, job, message
from workbench.graph.ranks import match_ranks
from workbench.graph.units import price_units
from workbench.trace.trace import Trace

pytestmark = pytest.mark.benchmark
RANKS, IN_NODE = 64, 8
FLOOR_MESSAGES_S = 20_000


def messages(rank: int, count: int) -> list[Message]:
    """Messages of all ranks and of the eight of a node, in turn; every rank arrives at its own time and all end together."""
    node = rank // IN_NODE
    groups = [
        group(range(RANKS), name="all"),
        group(range(IN_NODE * node, IN_NODE * (node + 1)), name=f"node {node}"),
    ]
    late = 2.0 * ((7 * rank) % RANKS)
    return [message(1000.0 * i + late, 400.0 - late, **groups[i % 2], Seq=i // 2) for i in range(count)]


def made(folder: Path, count: int) -> Trace:
    folder.mkdir()
    return job(folder, {rank: messages(rank, count) for rank in range(RANKS)}, clock={rank: 37.0 * rank for rank in range(RANKS)})


def seconds(trace: Trace) -> float:
    """Processor time of matching alone [s]; every message is found with all its members."""
    table, op, _, _ = price_units(trace)
    times = []
    for _ in range(3):
        begin = time.process_time()
        found = match_ranks(trace, table, op)
        times.append(time.process_time() - begin)
    assert len(found.messages.rank) == (trace.is_device_work).sum()
    assert codes(found) == {"clocks-aligned": RANKS - 1}
    assert found.clocks.offset_ns.tolist() == [37_000 * rank for rank in range(RANKS)]
    return min(times)


def test_matching_of_64_ranks_is_linear(tmp_path: Path) -> None:
    short, long = seconds(made(tmp_path / "short", 50)), seconds(made(tmp_path / "long", 200))
    rate = RANKS * 200 / long
    sys.stdout.write(f"\n{RANKS} ranks: {rate:,.0f} messages matched a second; four times as many take {long / short:.1f} times as long\n")
    assert rate > FLOOR_MESSAGES_S
    assert long < 8 * short
