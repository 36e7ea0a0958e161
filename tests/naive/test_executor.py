"""The naive executor against schedules worked out by hand, and its files against themselves."""

from __future__ import annotations

import gzip
import json
from decimal import Decimal
from pathlib import Path

import pytest

from tests.naive.actions import Await, Begin, End, Launch, Program, Record, Signal, Synchronize, Wait, Work
from tests.naive.answers import answers, is_device, length_where
from tests.naive.executor import Row, execute
from tests.naive.generate import files
from tests.naive.kineto import EPOCH_NS, OFFSET_NS, document
from tests.naive.programs import ALL_REDUCE, GEMM, data_parallel, launch_bound, queue_full

# Constants of the hand-computed schedules: launch 10, latency 5, other calls 2, return 3, hand-over 4.
HAND = {"issue_ns": 10, "latency_ns": 5, "call_ns": 2, "return_ns": 3, "handover_ns": 4}


def schedule(rows: list[Row], *, device: bool = True) -> list[tuple[str, int, int]]:
    return [(row.name, row.start_ns, row.end_ns) for row in rows if is_device(row) == device]


def test_two_streams_joined_by_an_event() -> None:
    """By hand, with launch calls at 0-10, 10-20, 24-34 and 34-44:

    a (stream 7): queued 10, starts 15, ends 115. b (stream 7): queued 20, starts when a ends, 115, ends 165.
    The event record 20-22 lies behind b, so it completes at 165; stream 20 waits for it (call 22-24).
    c (stream 20): queued 34, would start at 39, waits until 165, ends 185. d (stream 8): starts at 44 + 5 = 49, ends 79.
    The device synchronisation is called at 44, everything ends at 185, it returns at 185 + 3.
    """
    main = (
        Launch("a", 7, 100),
        Launch("b", 7, 50),
        Record("e", 7),
        Wait("e", 20),
        Launch("c", 20, 20),
        Launch("d", 8, 30),
        Synchronize(),
    )
    rows = execute(Program({"main": main}, **HAND))
    assert schedule(rows) == [("a", 15, 115), ("d", 49, 79), ("b", 115, 165), ("c", 165, 185)]
    calls = schedule(rows, device=False)
    assert [call[1:] for call in calls] == [(0, 10), (10, 20), (20, 22), (22, 24), (24, 34), (34, 44), (44, 188)]
    assert next(row.waits_on for row in rows if row.name == "cudaStreamWaitEvent") == (7, 3)


def test_full_queue_second_thread_and_blocking_copy() -> None:
    """By hand, with a queue of two.

    main: launches x 0-10 and y 10-20; x runs 15-65, y 65-115. The third launch is called at 20, finds both slots taken, gets
    x's at 65 and issues until 75; z may start at 80, starts when y ends, 115, and ends 165. main signals at 75 and awaits.
    other: goes on at 75 + 4 = 79, works until 86, then copies blockingly on stream 9: call at 86, queued 96, runs 101-108,
    returns 111, signals. main goes on at 111 + 4 = 115 and synchronises with stream 7: done 165, returns 168.
    """
    main = (Launch("x", 7, 50), Launch("y", 7, 50), Launch("z", 7, 50), Signal("go"), Await("back"), Synchronize(stream=7))
    other = (Await("go"), Work(7), Launch("copy", 9, 7, "gpu_memcpy", "cudaMemcpyAsync", blocking=True), Signal("back"))
    rows = execute(Program({"main": main, "other": other}, queue_depth=2, **HAND))
    assert schedule(rows) == [("x", 15, 65), ("y", 65, 115), ("copy", 101, 108), ("z", 115, 165)]
    calls = schedule(rows, device=False)
    assert calls[2] == ("cudaLaunchKernel", 20, 75)
    assert calls[3] == ("cudaMemcpyAsync", 86, 111)
    assert calls[4] == ("cudaStreamSynchronize", 115, 168)


def test_event_synchronisation_and_a_record_that_was_never_made() -> None:
    """By hand: k runs 15-35; the event's record (10-12) completes at 35, so the call at 12 returns at 38.

    Waiting for an unknown event waits for nothing: l is called at 40, queued 50, runs 55-56. A finished event returns at once.
    """
    main = (Launch("k", 7, 20), Record("e", 7), Synchronize(event="e"), Wait("never", 7), Launch("l", 7, 1), Synchronize(event="e"))
    rows = execute(Program({"main": main}, **HAND))
    assert schedule(rows) == [("k", 15, 35), ("l", 55, 56)]
    assert [row.end_ns - row.start_ns for row in rows if row.name == "cudaEventSynchronize"] == [26, 2]


def test_gaps_of_the_device() -> None:
    """By hand, with a gap of 6 and an event latency of 7: a runs 15-115, b 121-131; the record (20-22) completes at 131.

    c on stream 20 is queued at 34, released at 131 and starts at 138. A stream that is behind anyway waits for no latency:
    d is launched after b has ended (work until 134, wait call until 136, queued 146), and starts at 151.
    """
    main = (Launch("a", 7, 100), Launch("b", 7, 10), Record("e", 7), Wait("e", 20), Launch("c", 20, 5))
    rows = execute(Program({"main": (*main, Work(100), Wait("e", 8), Launch("d", 8, 5))}, gap_ns=6, wait_ns=7, **HAND))
    assert schedule(rows) == [("a", 15, 115), ("b", 121, 131), ("c", 138, 143), ("d", 151, 156)]


def test_a_deadlock_is_said() -> None:
    with pytest.raises(RuntimeError, match="never ends"):
        execute(Program({"main": (Await("nobody"),)}))


def test_lengths_of_covered_time() -> None:
    """[0, 10) and [5, 20) cover 20; without [8, 12) and [19, 30) there remain [0, 8) and [12, 19): 15."""
    assert length_where([(0, 10), (5, 20)]) == 20
    assert length_where([(0, 10), (5, 20)], [(8, 12), (19, 30)]) == 15
    assert length_where([]) == 0


def test_answers_by_hand() -> None:
    """A step marked 0-32 launches k (15-115) and a collective (25-75, on another stream): the step ends with k, nothing is exposed."""
    main = (Begin("ProfilerStep#1", category="user_annotation"), Launch("k", 7, 100), Launch("nccl", 20, 50), Work(12), End())
    known = answers(execute(Program({"main": main}, **HAND)))
    assert known["steps"] == [
        {"number": 1, "step_ns": 115, "mark_ns": 32, "busy_ns": 100, "compute_ns": 100, "communication_ns": 50, "exposed_ns": 0}
    ]


def test_edits_change_what_they_say() -> None:
    """The last all-reduce of the last step is exposed: half of it less shortens that step by exactly that much."""
    base = data_parallel()
    shorter = base.scaled(ALL_REDUCE, 0.5, occurrence=8)
    last = [answers(execute(program))["steps"][-1]["step_ns"] for program in (base, shorter)]  # type: ignore[index]
    assert last[0] - last[1] == 475_000
    kernels = [answers(execute(program))["kernels"] for program in (base, base.without(GEMM.format("nn"), 0), base.without(ALL_REDUCE))]
    assert kernels == [213, 212, 204]
    late = execute(base.delayed("main", 0, 1_000))
    assert [row.start_ns for row in late] == [row.start_ns + 1_000 for row in execute(base)]
    with pytest.raises(LookupError):
        base.scaled(ALL_REDUCE, 2, occurrence=9)


def test_the_three_regimes() -> None:
    """What each program is for: device bound with overlap, host bound, and blocked in launch calls."""
    ddp, thin, full = (execute(program) for program in (data_parallel(), launch_bound(), queue_full()))
    for step in answers(ddp)["steps"]:  # type: ignore[attr-defined]
        assert step["busy_ns"] > 0.9 * step["step_ns"]
        assert 0 < step["exposed_ns"] < step["communication_ns"]
    for step in answers(thin)["steps"]:  # type: ignore[attr-defined]
        assert step["busy_ns"] < 0.4 * step["step_ns"]
    blocked = [row for row in full if row.name == "cudaLaunchKernel" and row.end_ns - row.start_ns > 100_000]
    assert len(blocked) == 3 * (40 - 8)


def test_documents_hold_every_nanosecond() -> None:
    """Times written as microseconds come back exactly when read as decimals, and every arrow to the device has both ends."""
    rows = execute(data_parallel(steps=1))
    parsed = json.loads(json.dumps(document(rows)), parse_float=Decimal)
    assert parsed["baseTimeNanoseconds"] == EPOCH_NS
    work = [event for event in parsed["traceEvents"] if event.get("cat") in ("kernel", "gpu_memcpy")]
    wanted = [(row.name, row.start_ns + OFFSET_NS, row.end_ns - row.start_ns) for row in rows if is_device(row)]
    assert [(event["name"], event["ts"] * 1000, event["dur"] * 1000) for event in work] == wanted
    ends = {phase: {e["id"] for e in parsed["traceEvents"] if e["ph"] == phase and e["cat"] == "ac2g"} for phase in "sf"}
    assert {event["args"]["correlation"] for event in work} <= ends["s"] & ends["f"]
    quiet = document(rows, sync_records=False)["traceEvents"]
    assert {event.get("cat") for event in parsed["traceEvents"]} - {event.get("cat") for event in quiet} == {"cuda_sync"}


@pytest.mark.parametrize(("name", "content"), list(files()), ids=lambda value: value if isinstance(value, str) else "")
def test_stored_files_are_what_the_generator_writes(project: Path, name: str, content: bytes) -> None:
    stored = (project / "data" / "traces" / name).read_bytes()
    if name.endswith(".gz"):  # another zlib may compress differently
        stored, content = gzip.decompress(stored), gzip.decompress(content)
    assert stored == content


def test_samples_stay_small(project: Path) -> None:
    assert sum(path.stat().st_size for path in (project / "data" / "traces").iterdir()) < 5_000_000
