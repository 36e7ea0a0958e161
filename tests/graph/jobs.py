"""Recordings of several ranks written by hand: each message a kernel behind its launch; times in us."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from tests.graph.made import event
from workbench.graph.ranks import Ranks
from workbench.trace.open import open_trace
from workbench.trace.trace import Trace

Message = tuple[float, float, Mapping[str, Any]]
"""Start, duration, arguments."""

KERNELS = {
    "allreduce": "ncclDevKernel_AllReduce_Sum_f32_RING_LL",
    "_allgather_base": "ncclDevKernel_AllGather_RING_LL",
    "broadcast": "ncclDevKernel_Broadcast_RING_LL",
}


def message(start: float, length: float, collective: str = "allreduce", elements: int = 1 << 20, stream: int = 20, **args: Any) -> Message:
    """A message of fp32 elements; ``args`` with underscores for spaces: ``Group_size=2``."""
    named = {key.replace("_", " "): value for key, value in args.items()}
    stated = {"Collective name": collective, "In msg nelems": elements, "Out msg nelems": elements, "dtype": "Float", "stream": stream}
    return start, length, {**stated, **named}


def group(ranks: Sequence[int], number: int | None = None, name: str = "") -> dict[str, Any]:
    """Arguments of a process group, and the number of the message in it."""
    out: dict[str, Any] = {"Group_size": len(ranks), "Process_Group_Ranks": str(list(ranks))}
    out |= {"Process_Group_Name": name} if name else {}
    return out | ({} if number is None else {"Seq": number})


def rank_events(messages: Sequence[Message], clock: float = 0.0) -> list[dict[str, Any]]:
    out = []
    for number, (start, length, args) in enumerate(messages, 1):
        name = KERNELS.get(args["Collective name"], "ncclDevKernel_SendRecv")
        out.append(event("cuda_runtime", "cudaLaunchKernelExC", clock + start - 8, 5, correlation=number))
        out.append(event("kernel", name, clock + start, length, args["stream"], 0, device=0, correlation=number, **args))
    return out


def job(
    folder: Path, ranks: Mapping[int, Sequence[Message]], clock: Mapping[int, float] | None = None, world: int | None = None, **top: Any
) -> Trace:
    """Write one file a rank, with clocks ahead by so many us, and open them as one trace."""
    paths = []
    for rank, messages in ranks.items():
        events = rank_events(messages, (clock or {}).get(rank, 0.0))
        info = {"rank": rank, "world_size": world or len(ranks)}
        paths.append(folder / f"job_{rank}.json")
        paths[-1].write_text(json.dumps({"schemaVersion": 1, "distributedInfo": info, "traceEvents": events, **top}))
    return open_trace(paths)


def codes(found: Ranks) -> dict[str, int]:
    return {note.code: note.count for note in found.notes}


def split_of(found: Ranks, rank: int) -> list[tuple[float, float]]:
    """Waiting and transfer of the messages of a rank, in us."""
    mine = found.messages.rank == rank
    return [(w / 1e3, t / 1e3) for w, t in zip(found.split.wait_ns[mine].tolist(), found.split.transfer_ns[mine].tolist(), strict=True)]
