"""Which device events are communication: by their arguments first, by their name second; the rules are data.

Names: NCCL and RCCL device kernels (``ncclDevKernel_*``, ``ncclKernel_*``, ``rcclGenericKernel*``), Huawei HCCL (``hcom_*``),
MSCCL++, NVSHMEM, oneCCL, DeepEP, the libraries of Cambricon (CNCL), Moore Threads (MCCL), Enflame (ECCL) and FlagCX, the custom
all-reduce of serving engines (``cross_device_reduce_*``), and operations of XLA (openxla.org/xla/operation_semantics).
"""

from __future__ import annotations

import re
from functools import lru_cache

import numpy as np

from workbench.errors import Note
from workbench.trace.part import frozen
from workbench.trace.trace import Category, Trace

ARGUMENT = "Collective name"  # written by the profiler on kernels of process groups

# matched at the start of the name, after a return type and namespaces
NAMES = (
    r"nccl",
    r"rccl",
    r"hccl",
    r"hcom_",
    r"msccl",
    r"nvshmem",
    r"rocshmem",
    r"oneccl",
    r"xccl",
    r"bkcl",
    r"gloo",
    r"cncl",
    r"mccl",
    r"eccl",
    r"flagcx",
    r"deep_ep::",
    r"(?:all_?reduce|all_?gather|reduce_?scatter|all_?to_?all|broadcast)_(?:one|two)_?shot",
    r"(?:one|two)_?shot_all_?reduce",
    r"multimem_(?:one_shot_)?all_?(?:reduce|gather)",
    r"cross_device_reduce",
    r"(?:quick|custom)_?all_?reduce",
    r"(?:all-reduce|all-gather|reduce-scatter|all-to-all|collective-permute|collective-broadcast)(?:-start|-done)?(?:\.\d+)*$",
)
_NAME = re.compile(r"^(?:void\s+)?(?:[\w]+::|\(anonymous namespace\)::)*?(?:" + "|".join(NAMES) + ")", re.IGNORECASE)
# looks like communication but no rule knows it: listed, not guessed
_SUSPECT = re.compile(r"(?i:all_?reduce|all_?gather|reduce_?scatter|all_?to_?all|sendrecv)|(?<!ro)(?:ccl|CCL|Ccl)(?:[A-Z_]|$)")


@lru_cache(maxsize=65536)
def is_comm_name(name: str) -> bool:
    """Return whether a kernel name is one of a communication library."""
    return _NAME.match(name) is not None


def comm_by_name(trace: Trace) -> np.ndarray:
    """Bool [E]: kernels whose name says they communicate."""
    kernels = _kernels(trace)
    named = np.zeros(len(trace.strings) + 1, bool)
    for i in np.unique(trace.events.name[kernels]).tolist():
        named[i] = is_comm_name(trace.strings[i])
    return frozen(kernels & named[trace.events.name])


def comm(trace: Trace) -> np.ndarray:
    """Bool [E]: kernels that communicate, by their arguments if these say so, else by their name."""
    found = comm_by_name(trace).copy()
    column = trace.args.get(ARGUMENT)
    if column is not None:
        found[column.event] = True
    return frozen(found & _kernels(trace))


def suspects(trace: Trace, known: np.ndarray) -> dict[str, int]:
    """Return {name: total ns} of kernels that look like communication but are none of ``known`` (see `comm`), longest first."""
    rows = _kernels(trace) & ~known
    names = [i for i in np.unique(trace.events.name[rows]) if _SUSPECT.search(trace.strings[i])]
    total = {trace.strings[i]: int(trace.events.dur_ns[rows & (trace.events.name == i)].sum()) for i in names}
    return dict(sorted(total.items(), key=lambda item: (-item[1], item[0])))


def suspect_notes(trace: Trace, known: np.ndarray) -> list[Note]:
    """Say which kernels that look like communication count as computation."""
    found = suspects(trace, known)
    if not found:
        return []
    text = f"kernels named like communication that no rule knows count as computation: {', '.join(list(found)[:3])}"
    return [Note("unknown-communication", ", ".join(trace.counts), len(found), text, "report the name of the library that writes them")]


def _kernels(trace: Trace) -> np.ndarray:
    return trace.events.category == Category.KERNEL
