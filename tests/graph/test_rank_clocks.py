"""Clocks of ranks, and messages that are no synchronising collectives: by hand, with noise and drift, and as a property."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.graph.jobs import codes, group, job, message, split_of
from tests.graph.made import built, check_invariants, identity_error
from workbench.errors import Refused
from workbench.graph.ranks import ranks_of


def test_drift_only_where_the_ends_support_it(tmp_path: Path) -> None:
    """Rank 1 gains 20 us a second over 4 s; the ends are good to 1 us. Without drift but with noise of 20 us none is claimed."""
    rng = np.random.default_rng(1)
    times = np.linspace(0, 4e6, 60).round(3)
    for drift, noise in ((20e-6, 1.0), (0.0, 20.0)):
        shift = times * drift + rng.uniform(-noise, noise, 60).round(3)
        ranks = {
            0: [message(t, 300, **group((0, 1), i, "0")) for i, t in enumerate(times.tolist())],
            1: [
                message(round(t + s, 3), 300, **group((0, 1), i, "0"))
                for i, (t, s) in enumerate(zip(times.tolist(), shift.tolist(), strict=True))
            ],
        }
        trace = job(tmp_path, ranks, clock={1: 2e6})
        found = ranks_of(trace)
        assert found.clocks.drift[1] == pytest.approx(drift, abs=1e-6)
        assert found.clocks.offset_ns[1] / 1e3 == pytest.approx(2e6 + 2e6 * drift, abs=6)
        assert found.clocks.spread_ns[1] < 1e3 * noise
        b = built(trace)
        check_invariants(b.graph)
        assert identity_error(b) < 1e-9


def test_one_wrong_end_does_not_move_a_clock(tmp_path: Path) -> None:
    ranks = {r: [message(500 * i, 100 + (90_000 if (r, i) == (1, 8) else 0), **group((0, 1), i, "0")) for i in range(9)] for r in (0, 1)}
    found = ranks_of(job(tmp_path, ranks, clock={1: 42.0}))
    assert (found.clocks.offset_ns[1], found.clocks.spread_ns[1], found.clocks.worst_ns[1]) == (42_000, 0, 90_000_000)


def test_clocks_reach_ranks_that_share_no_message(tmp_path: Path) -> None:
    """0 and 2 never meet, but both meet 1."""
    pairs = [((0, 1), "a"), ((1, 2), "b")]
    ranks: dict[int, list[Any]] = {0: [], 1: [], 2: []}
    for at, (members, name) in enumerate(pairs):
        for rank in members:
            ranks[rank] += [message(1000 * i + 400 * at, 100, **group(members, i, name)) for i in range(4)]
    found = ranks_of(job(tmp_path, ranks, clock={1: 10.0, 2: -30.0}))
    assert found.clocks.offset_ns.tolist() == [0, 10_000, -30_000]
    assert found.clocks.reference.tolist() == [0, 0, 0]


def test_ranks_without_a_common_clock_are_refused(tmp_path: Path) -> None:
    """Nothing matches (groups of ranks that are not here) and no base time is stated; with bases the files can be compared."""
    ranks = {r: [message(0, 100, **group((r, r + 8), 0, str(r)))] for r in (0, 1)}
    with pytest.raises(Refused, match="no clock is common"):
        ranks_of(job(tmp_path, ranks, world=16))
    found = ranks_of(job(tmp_path, ranks, world=16, baseTimeNanoseconds=1_700_000_000_000_000_000))
    assert "clock-by-base" in codes(found)


@given(st.lists(st.tuples(st.integers(0, 400), st.integers(0, 400)), min_size=1, max_size=6), st.integers(-(10**7), 10**7))
def test_split_adds_up_and_replays(tmp_path_factory: pytest.TempPathFactory, late: list[tuple[int, int]], clock: int) -> None:
    """Whoever is late and by how much: waiting plus transfer is what was recorded, somebody does not wait, and the job replays itself."""
    ranks = {r: [message(1000 * i + both[r], 500 - both[r], **group((0, 1), i, "0")) for i, both in enumerate(late)] for r in (0, 1)}
    trace = job(tmp_path_factory.mktemp("job"), ranks, clock={1: float(clock)})
    found = ranks_of(trace)
    m, parts = found.messages, found.split
    assert (parts.wait_ns + parts.transfer_ns == m.end - m.start).all()
    first, second = (parts.wait_ns[m.rank == r] for r in (0, 1))
    assert (np.minimum(first, second) == 0).all()
    np.testing.assert_array_equal(first - second, [1000 * (b - a) for a, b in late])
    b = built(trace)
    check_invariants(b.graph)
    np.testing.assert_allclose(b.timeline.start_s, b.graph.recorded_start_s, atol=1e-12)


# -- other kinds of messages --------------------------------------------------------------------------------------------------------


def test_send_and_receive(tmp_path: Path) -> None:
    """Rank 1 waits 100 us for what rank 0 sends, then for 50 us of transfer. Sent the other way: the sender was done before the receiver
    came (its data went to a buffer), so it does not wait, and the receiver finds it there."""
    both = {"Group_size": 4, "Process_Group_Ranks": "[0, 1, 2, 3]", "Process_Group_Name": "pp"}
    anchor = message(2000, 100, **group((0, 1), 0, "tp"))
    ranks = {
        0: [message(100, 50, "send", Dst_Rank=1, **both), message(900, 300, "recv", Src_Rank=1, **both), anchor],
        1: [message(0, 150, "recv", Src_Rank=0, **both), message(500, 200, "send", Dst_Rank=0, **both), anchor],
    }
    found = ranks_of(job(tmp_path, ranks, world=4))
    assert split_of(found, 0) == [(0, 50), (0, 300), (0, 100)]
    assert split_of(found, 1) == [(100, 50), (0, 200), (0, 100)]
    assert found.split.waits.tolist() == [True, True, True, True, False, True]


def test_point_to_point_pairs_by_order_and_size(tmp_path: Path) -> None:
    """Two pipelines' worth of messages in both directions on one stream; each side orders the directions differently."""
    both = {"Group_size": 2, "Process_Group_Ranks": "[0, 1]"}
    ranks = {
        0: [
            message(0, 90, "send", 1024, Dst_Rank=1, **both),
            message(100, 90, "send", 2048, Dst_Rank=1, **both),
            message(200, 90, "recv", 512, Src_Rank=1, **both),
        ],
        1: [
            message(10, 80, "recv", 1024, Src_Rank=0, **both),
            message(120, 70, "recv", 2048, Src_Rank=0, **both),
            message(200, 90, "send", 512, Dst_Rank=0, **both),
        ],
    }
    found = ranks_of(job(tmp_path, ranks))
    m, of = found.messages, found.matches.of
    pairs = {tuple(sorted((int(m.rank[i]), int(m.bytes[i])) for i in np.flatnonzero(of == c))) for c in range(3)}
    assert pairs == {((0, 4096), (1, 4096)), ((0, 8192), (1, 8192)), ((0, 2048), (1, 2048))}


def test_broadcast_receivers_wait_for_the_root_alone(tmp_path: Path) -> None:
    """Root 1 starts at 100 and is done at 160; rank 0 waited from 0 and ends at 300; rank 2 comes at 200, after the root had finished."""
    args = {**group((0, 1, 2), 0, "0"), "Root_Rank": 1}
    anchors = [message(1000 * i, 100, **group((0, 1, 2), i, "dp")) for i in range(1, 4)]
    ranks = {
        0: [message(0, 300, "broadcast", **args)],
        1: [message(100, 60, "broadcast", **args)],
        2: [message(200, 90, "broadcast", **args)],
    }
    found = ranks_of(job(tmp_path, {r: [*first, *anchors] for r, first in ranks.items()}))
    assert [split_of(found, r)[0] for r in range(3)] == [(100, 200), (0, 60), (0, 90)]
    first = found.messages.seq == 0
    assert found.split.waits[first & (found.messages.rank == 1)].tolist() == [False]


def test_all_to_all_ends_when_its_own_parts_are_there(tmp_path: Path) -> None:
    """Nobody is done before the last has come (100), but each ends by itself."""
    anchors = [message(1000 * i, 100, **group((0, 1), i, "dp")) for i in range(1, 4)]
    args = group((0, 1), 0, "ep")
    ranks = {0: [message(0, 400, "all_to_allv", **args), *anchors], 1: [message(100, 200, "all_to_allv", **args), *anchors]}
    found = ranks_of(job(tmp_path, ranks))
    assert split_of(found, 0)[0] == (100, 300)
    assert split_of(found, 1)[0] == (0, 200)


NUMBERS = st.one_of(
    st.integers(-3, 5), st.sampled_from([2**31, 2**62, -(2**62)]), st.sampled_from(["1", "", "x", "[0, 1]", "[]", "[0, ...]"])
)
WORDS = st.sampled_from(["allreduce", "send", "recv", "all_to_allv", "broadcast", "barrier", "coalesced", "", "nccl:send 0->1"])
KEYS = (
    "Group_size", "Seq", "Src_Rank", "Dst_Rank", "Root_Rank", "Process_Group_Ranks", "Process_Group_Name", "Global_rank_start",
    "Global_rank_stride", "In_msg_nelems",
)  # fmt: skip
MESSAGES = st.lists(
    st.builds(
        lambda start, length, word, args: message(start, length, word, **args),
        st.integers(0, 5000),
        st.integers(0, 500),
        WORDS,
        st.dictionaries(st.sampled_from(KEYS), NUMBERS, max_size=5),
    ),
    min_size=1,
    max_size=8,
)


@given(st.lists(MESSAGES, min_size=2, max_size=4), st.booleans())
def test_whatever_messages_say_the_recording_replays(tmp_path_factory: pytest.TempPathFactory, ranks: list[Any], based: bool) -> None:
    """Nonsense is refused or set aside, never a traceback; what was split adds up, and steps come out as recorded."""
    top = {"baseTimeNanoseconds": 10**18} if based else {}
    trace = job(tmp_path_factory.mktemp("job"), dict(enumerate(ranks)), clock={1: 300.0}, **top)
    try:
        found = ranks_of(trace)
    except Refused:
        return
    assert (found.split.wait_ns >= 0).all()
    assert (found.split.transfer_ns >= 0).all()
    assert (found.split.wait_ns + found.split.transfer_ns == found.messages.end - found.messages.start).all()
    b = built(trace)
    check_invariants(b.graph)
    np.testing.assert_allclose(b.timeline.step_s, b.graph.measured_step_s, rtol=1e-9, atol=1e-12)
