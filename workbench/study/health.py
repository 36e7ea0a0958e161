"""Health checks of a recording: what an engineer who brings up a card or a job looks for, ordered by what it costs."""

from __future__ import annotations

from collections.abc import Sequence

from workbench.study.documents_health import FindingDocument
from workbench.study.documents_ranks import RanksDocument
from workbench.study.health_device import damaged_times, impossible_times, stream_overlaps
from workbench.study.health_host import blocking_calls, host_copies, launch_bound
from workbench.study.health_messages import exposed_messages
from workbench.study.health_names import unknown_messages, unknown_operators
from workbench.study.health_order import unordered_work
from workbench.study.health_ranks import straggling, unequal_work
from workbench.study.health_reads import reads_while_written
from workbench.study.health_steps import clock_faults, long_gaps, odd_steps, silences
from workbench.study.memory import tensor_faults
from workbench.study.seen import Seen
from workbench.trace.footprint import Fault

CHECKS = (
    impossible_times, reads_while_written, unordered_work, stream_overlaps, damaged_times, blocking_calls, host_copies, launch_bound,
    exposed_messages, odd_steps, long_gaps, silences, clock_faults, unequal_work, unknown_operators, unknown_messages,
)  # fmt: skip
ALARMS = (
    "faster-than-compute-roof", "faster-than-memory-roof", "read-while-written", "unordered-streams", "aliased-storage",
    "read-past-storage", "overlapping-allocation",
)  # fmt: skip
"""Codes that say a number or a result may be wrong: listed before what merely costs time, unless they are only possible."""
OF_STARTS = (
    "unordered-streams", "stream-overlap", "overflow-duration", "allocator-calls", "code-loading", "device-synchronise",
    "stream-synchronise", "pageable-copy", "repeated-upload", "launch-bound", "exposed-messages", "warm-up-step", "outlier-step",
    "drifting-steps", "long-idle", "silence", "clock-skew", "straggler", "read-while-written",
)  # fmt: skip
"""Codes that rest on when things started: no more than possible where a reader had to reconstruct the starts."""
RECONSTRUCTED = "starts-reconstructed"


def findings(seen: Seen, ranks: RanksDocument | None = None, faults: Sequence[Fault] = ()) -> list[FindingDocument]:
    """Return what the checks found: first what may be wrong, then by cost.

    Parameters
    ----------
    seen : Seen
    ranks : RanksDocument, optional
        Of several ranks, who waits for whom.
    faults : sequence of Fault
        Among the tensors of execution traces.
    """
    found = [one for check in CHECKS for one in check(seen)] + straggling(seen, ranks) + tensor_faults(seen, list(faults))
    if any(note.code == RECONSTRUCTED for note in seen.trace.notes):
        found = [_doubted(one) if one.code in OF_STARTS else one for one in found]
    return sorted(found, key=lambda one: (one.code not in ALARMS or one.certainty == "possible", -one.cost_s, one.code))


def _doubted(one: FindingDocument) -> FindingDocument:
    return one.model_copy(update={"what": f"{one.what} (as far as reconstructed starts tell)", "certainty": "possible"})
