"""Messages matched across ranks, clocks, waiting and transfer: by hand, and on the handed recordings."""

from __future__ import annotations

import json
from itertools import permutations
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.graph.jobs import codes, group, job, message, split_of
from tests.graph.made import built, check_invariants, identity_error
from workbench.graph.ranks import ranks_of
from workbench.replay.replay import replay
from workbench.trace.open import open_trace
from workbench.trace.trace import Trace

MEGATRON = [f"traces/megatron_a100_tp8/kineto_rank{r}.json.gz" for r in range(8)]


def opened(shared: Path, *names: str) -> Trace:
    return open_trace([shared / name for name in names])


# -- the handed cases and recordings ------------------------------------------------------------------------------------------------


def test_clock_skew(shared: Path) -> None:
    """README: rank 1 is 3.000 ms ahead; each all-reduce is 100 us of transfer and rank 1 waits 200 us."""
    found = ranks_of(opened(shared, "cases/traces/clock_skew_rank0.json", "cases/traces/clock_skew_rank1.json"))
    assert found.clocks.offset_ns.tolist() == [0, 3_000_000]
    assert found.clocks.spread_ns.tolist() == [0, 0]
    assert split_of(found, 0) == [(0.0, 100.0)] * 4
    assert split_of(found, 1) == [(200.0, 100.0)] * 4


def test_clock_offset(shared: Path) -> None:
    """README: offset 11 560 000 us; the steps really start 1600 us apart; nothing is left on 3 collectives."""
    trace = opened(shared, "cases/field/06_clock_offset.rank0.json", "cases/field/06_clock_offset.rank1.json")
    found = ranks_of(trace)
    assert found.clocks.offset_ns[1] == 11_560_000_000
    assert (found.clocks.worst_ns[1], found.clocks.ends[1]) == (0, 3)
    b = built(trace)
    first, second = b.graph.recorded_start_s[b.graph.step_begin]
    assert second - first == pytest.approx(1600e-6)


def test_peer_wait(shared: Path) -> None:
    """README: transfer 30 us, rank 0 waits 9970 us; rank 1's product 2x faster: both end at 6000 us."""
    trace = opened(shared, "cases/field/16_peer_wait.rank0.json", "cases/field/16_peer_wait.rank1.json")
    found = ranks_of(trace)
    assert split_of(found, 0) == [(9970.0, 30.0)]
    assert split_of(found, 1) == [(0.0, 30.0)]
    b = built(trace)
    node_s = b.graph.measured_s.copy()
    node_s[next(v for v in b.nodes("gemm") if b.graph.rank[v] == 1)] /= 2
    ends = [v for v in b.nodes("ncclDevKernel_AllReduce_Sum_bf16_RING_LL") if b.graph.measured_s[v] > 0]
    np.testing.assert_allclose(replay(b.graph, node_s).finish_s[ends], 6000e-6)


def test_base_times(shared: Path) -> None:
    """README: kernels of rank 1 start 3.000 s after those of rank 0, which only the bases can tell (said in a note)."""
    trace = opened(shared, "cases/traces/base_time_rank0.json", "cases/traces/base_time_rank1.json")
    b = built(trace)
    starts = [b.graph.recorded_start_s[v] for v in b.nodes("gemm_0")]
    assert max(starts) - min(starts) == pytest.approx(3.0, abs=1e-9)
    assert "clock-by-base" in b.codes()


def test_missing_peer(shared: Path) -> None:
    """README: recorded duration kept, flagged, no wait for absent ranks."""
    b = built(opened(shared, "cases/traces/missing_peer_rank0.json"))
    assert b.codes()["missing-peers"] == 1
    assert b.graph.measured_s.max() == pytest.approx(120e-6)


def test_megatron(shared: Path, facts: dict[str, Any]) -> None:
    """facts.json: 84 collectives in the same order, ends within 11 us (median of the largest), transfers of 50.099 ms a rank."""
    known = facts["across_ranks"]["megatron_a100_tp8"]
    trace = opened(shared, *MEGATRON)
    found = ranks_of(trace)
    m, matches = found.messages, found.matches
    assert len(matches.first) == matches.complete.sum() == known["same_order_and_name"] == 84
    for rank in range(8):
        mine = m.rank == rank
        assert (np.diff(matches.of[mine]) > 0).all(), "the same order on every rank"
        assert found.split.transfer_ns[mine].sum() == known["sum_min_over_ranks_ns"]
        assert found.split.wait_ns[mine].sum() + known["sum_min_over_ranks_ns"] == (m.end - m.start)[mine].sum()
    assert round((m.end - m.start).sum() / 8) == known["mean_recorded_ns"]
    ends = np.array([m.end[m.rank == r] for r in range(8)])
    away = np.abs(ends - ends[0]) / 1e3
    of_ranks = np.abs(np.median(ends - ends[0], axis=1)) / 1e3
    assert (of_ranks.max(), away.max()) == tuple(known["end_offset_vs_rank0_us"].values())
    assert np.abs(found.clocks.offset_ns).max() <= 1e3 * known["end_offset_vs_rank0_us"]["median_max_abs"]
    aligned = np.abs(ends - found.clocks.offset_ns[:, None] - ends[0]) / 1e3
    assert aligned.sum() < away.sum(), "the ends agree better"
    assert (found.clocks.drift == 0).all()


def test_megatron_replays_together(shared: Path) -> None:
    """Every rank's step comes out as recorded, and equal to what its file gives alone."""
    b = built(opened(shared, *MEGATRON))
    check_invariants(b.graph)
    assert identity_error(b) < 1e-9
    alone = built(opened(shared, MEGATRON[5]))
    at = b.graph.rank[b.graph.step_begin] == 5
    np.testing.assert_allclose(b.graph.measured_step_s[at], alone.graph.measured_step_s, rtol=1e-12)
    # an intervention: rank 3's host is 10 ms late before everything it does; every rank's step ends later, none by more than that
    node_s = b.graph.measured_s.copy()
    late = next(
        v for v in range(len(b.graph)) if b.graph.rank[v] == 3 and node_s[v] > 0 and "thread" in b.graph.resources[b.graph.resource[v]]
    )
    node_s[late] += 10e-3
    after = replay(b.graph, node_s)
    moved = after.finish_s[b.graph.step_end] - b.timeline.finish_s[b.graph.step_end]
    assert (moved >= -1e-12).all()
    assert (moved <= 10e-3 + 1e-9).all()


# -- matching -----------------------------------------------------------------------------------------------------------------------


def test_groups_interleaved_differently(tmp_path: Path) -> None:
    """Rank 0 reduces with 1, then with 2; rank 3 with 2, then with 1: by hand, of equal sizes and numbers."""
    a, b, c, d = (group(r, 0, n) for r, n in (((0, 1), "1"), ((0, 2), "2"), ((2, 3), "3"), ((1, 3), "4")))
    ranks = {
        0: [message(0, 50, **a), message(60, 100, **b)],
        1: [message(20, 30, **a), message(100, 40, **d)],
        2: [message(10, 40, **c), message(120, 40, **b)],
        3: [message(30, 20, **c), message(80, 60, **d)],
    }
    found = ranks_of(job(tmp_path, ranks))
    assert [split_of(found, r) for r in range(4)] == [
        [(20, 30), (60, 40)],
        [(0, 30), (0, 40)],
        [(20, 20), (0, 40)],
        [(0, 20), (20, 40)],
    ]
    check_invariants(built(job(tmp_path, ranks)).graph)


@pytest.mark.parametrize("numbered", [True, False])
def test_a_rank_whose_recording_starts_later(tmp_path: Path, numbered: bool) -> None:
    """Rank 1's first two all-reduces were not recorded; sizes alternate and steps are uneven, so that only one overlap fits."""
    times = [0, 1000, 2300, 3100, 4700, 5200]
    args = [{"elements": (1 + i % 2) << 20, **group((0, 1), 7 + i if numbered else None, "0")} for i in range(6)]
    ranks = {
        0: [message(t, 150, **a) for t, a in zip(times, args, strict=True)],
        1: [message(t + 50, 100, **a) for t, a in zip(times[2:], args[2:], strict=True)],
    }
    found = ranks_of(job(tmp_path, ranks, clock={1: 777.0}))
    assert split_of(found, 0) == [(0, 150), (0, 150)] + [(50, 100)] * 4
    assert split_of(found, 1) == [(0, 100)] * 4
    assert codes(found)["message-unmatched"] == 2
    assert found.clocks.offset_ns[1] == 777_000


def test_equal_messages_are_laid_by_their_ends(tmp_path: Path) -> None:
    """All the same size, no numbers, as many on both, but rank 1 recorded one later: the uneven times between them tell."""
    times = np.cumsum([0, 700, 1900, 400, 2600, 900, 1500, 300]).tolist()
    ranks = {r: [message(t, 100, **group((0, 1), None, "0")) for t in times[r : r + 7]] for r in (0, 1)}
    found = ranks_of(job(tmp_path, ranks, clock={1: -123_456.0}))
    assert len(found.matches.first) == 6
    assert found.clocks.offset_ns[1] == -123_456_000


def test_a_message_lost_in_the_middle(tmp_path: Path) -> None:
    """Without numbers, all sizes different: the others keep their partners."""
    args = [{"elements": (i + 1) << 10, **group((0, 1), None, "0")} for i in range(7)]
    ranks = {r: [message(200 * i, 100, **a) for i, a in enumerate(args) if (r, i) != (1, 3)] for r in (0, 1)}
    found = ranks_of(job(tmp_path, ranks))
    assert len(found.matches.first) == 6
    assert codes(found)["message-unmatched"] == 1


def test_sizes_that_differ_are_not_matched(tmp_path: Path) -> None:
    ranks = {r: [message(0, 100, elements=1024 << r, **group((0, 1), 4, "0")), message(500, 100, **group((0, 1), 5, "0"))] for r in (0, 1)}
    found = ranks_of(job(tmp_path, ranks))
    assert codes(found)["sizes-disagree"] == 2
    assert len(found.matches.first) == 1


def test_repeated_numbers_are_matched_in_order(tmp_path: Path) -> None:
    """A number used twice by both ranks, a third time by one of them."""
    ranks = {r: [message(300 * i, 100, **group((0, 1), 9, "0")) for i in range(3 - r)] for r in (0, 1)}
    found = ranks_of(job(tmp_path, ranks))
    assert len(found.matches.first) == 2
    assert codes(found)["message-repeated"] == 3
    assert codes(found)["message-unmatched"] == 1


def test_absent_members_are_not_waited_for(tmp_path: Path) -> None:
    """Two of four ranks: the common end tells the clocks, but who of the absent came last is not known."""
    ranks = {r: [message(100 * r, 300 - 100 * r, **group(range(4), 0, "0"))] for r in (0, 1)}
    trace = job(tmp_path, ranks, clock={1: 50.0}, world=4)
    found = ranks_of(trace)
    assert split_of(found, 0) == [(0, 300)]
    assert split_of(found, 1) == [(0, 200)]
    assert found.clocks.offset_ns[1] == 50_000
    assert codes(found)["missing-peers"] == 1
    b = built(trace)
    delayed = replay(b.graph, np.where(b.graph.rank == 0, 2.0, 1.0) * b.graph.measured_s)
    mine = b.graph.rank == 1
    np.testing.assert_allclose(delayed.start_s[mine], b.timeline.start_s[mine], err_msg="rank 1 does not wait for rank 0")


def test_groups_of_the_same_name_are_told_apart_by_their_ends(tmp_path: Path) -> None:
    """Four ranks say only 'a group of two, named tp': 0 ends with 2 and 1 with 3, on clocks far apart."""
    rng = np.random.default_rng(4)
    even, odd = (np.cumsum(rng.uniform(300, 900, 12)).round() for _ in range(2))
    args = [{"Group_size": 2, "Process_Group_Name": "tp", "Seq": i} for i in range(12)]
    ranks = {r: [message(float(t), 100 + r, **a) for t, a in zip((even, odd)[r % 2], args, strict=True)] for r in range(4)}
    found = ranks_of(job(tmp_path, ranks, clock={1: 5e6, 2: -7e6, 3: 1e6}))
    assert sorted(g.ranks for g in found.matches.groups) == [(0, 2), (1, 3)]
    assert found.matches.complete.all()
    assert "clock-unknown" in codes(found), "the two pairs share no message"


def test_communicator_addresses_are_not_compared(tmp_path: Path) -> None:
    """Old recordings state number, communicator (an address of the process) and rank among the inputs of record_param_comms only."""
    paths = []
    for rank in (0, 1):
        events: list[dict[str, Any]] = []
        for i in range(3):
            inputs = ["", str(40 + i), str(93_825_000_000_000 + 4096 * rank), str(rank), "", "[]", "[]", "2"]
            args = {"External id": i, "Concrete Inputs": inputs, "Input Dims": [[[1024]], [], [], [], [], [], [], []]}
            args["Input type"] = ["TensorList", "Scalar", "Scalar", "Scalar", "", "ScalarList", "ScalarList", "Scalar"]
            at = 1000 * i + 100 * rank
            events.append({"ph": "X", "cat": "cpu_op", "name": "record_param_comms", "pid": 9, "tid": 9, "ts": at, "dur": 50, "args": args})
            call, name = {"correlation": i + 1}, "ncclKernel_AllReduce_RING_LL_Sum_float(ncclWorkElem)"
            events.append(
                {"ph": "X", "cat": "cuda_runtime", "name": "cudaLaunchKernel", "pid": 9, "tid": 9, "ts": at + 5, "dur": 5, "args": call}
            )
            kernel = {"ts": at + 20, "dur": 200 - 100 * rank, "args": {"device": 0, "stream": 20, **call}}
            events.append({"ph": "X", "cat": "kernel", "name": name, "pid": 0, "tid": 20, **kernel})
        paths.append(tmp_path / f"{rank}.json")
        paths[-1].write_text(json.dumps({"distributedInfo": {"rank": rank, "world_size": 2}, "traceEvents": events}))
    found = ranks_of(open_trace(paths))
    assert found.messages.seq.tolist() == [40, 41, 42] * 2
    assert found.messages.bytes.tolist() == [4096] * 6
    assert split_of(found, 0) == [(100, 100)] * 3
    assert "messages-by-order" not in codes(found)


def test_order_of_files_and_events_does_not_matter(tmp_path: Path) -> None:
    ranks = {r: [message(400 * i + 30 * r, 200 - 30 * r, **group((0, 1, 2), None, "0")) for i in range(4)] for r in range(3)}
    results = []
    for order in permutations(range(3)):
        found = ranks_of(job(tmp_path, {r: ranks[r][::-1] if r == 1 else ranks[r] for r in order}, clock={2: 1e6}))
        results.append((found.clocks.offset_ns.tolist(), [split_of(found, r) for r in range(3)]))
    assert all(result == results[0] for result in results)
    assert results[0] == ([0, 0, 1_000_000_000], [[(60, 140)] * 4, [(30, 140)] * 4, [(0, 140)] * 4])
