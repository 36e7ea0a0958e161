"""Nsight Systems databases (``nsys export --type sqlite``) -> a trace: kernels, copies, calls, synchronisation, NVTX ranges.

Source: NVIDIA, Nsight Systems documentation, "SQLite Schema Reference"; CUPTI documentation, activity records. The schema varies by
version: a column that is not there is not known. Unverified: no database of the tool was at hand. Times are nanoseconds since the start
of the session; a process is ``globalTid >> 24 & 0xffffff``, a thread ``globalTid & 0xffffff``. Ranges of ``torch.autograd.profiler.
emit_nvtx`` become operators with their shapes.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np

from workbench.errors import Note, UnreadableInput
from workbench.trace.builder import Builder, Columns
from workbench.trace.kineto import to_part
from workbench.trace.nsight_ranges import RANGES, add_ranges
from workbench.trace.nsight_tables import MISSING, Database
from workbench.trace.part import Part
from workbench.trace.scanner import Damage

ACTIVITY = "CUPTI_ACTIVITY_KIND_"
WORK = ("KERNEL", "MEMCPY", "MEMSET", "GRAPH_TRACE")
PLACE = ("start", "end", "deviceId", "streamId", "correlationId", "globalPid")
MOST_NS = 2**61
MOST_LENGTH_NS = 2**53
"""104 days: nothing lasts longer [ns]."""
COPIES = {1: "HtoD", 2: "DtoH", 3: "HtoA", 4: "AtoH", 5: "AtoA", 6: "AtoD", 7: "DtoA", 8: "DtoD", 9: "HtoH", 10: "PtoP"}
"""CUpti_ActivityMemcpyKind, as the PyTorch profiler writes it."""
MEMORIES = {0: "Pageable", 1: "Pinned", 2: "Device", 3: "Array", 4: "Managed", 5: "Device Static", 6: "Managed Static"}
"""ENUM_CUDA_MEM_KIND, where the database does not list it."""
WAITS = {1: "Event Sync", 2: "Stream Wait Event", 3: "Stream Sync", 4: "Context Sync"}
"""CUpti_ActivitySynchronizationType, as the PyTorch profiler writes it."""
OTHERS = (
    ("rocpd", "a database of rocprofv3 (rocpd)", "record with torch.profiler and give the file of export_chrome_trace"),
    ("StringTable", "a database of nvprof", "record with torch.profiler or Nsight Systems"),
    ("NCU", "a database of Nsight Compute", "export it with `ncu --csv`, for `workbench counters`"),
    ("TASK", "a database of msprof", "give trace_view.json or kernel_details.csv of the same profile"),
)
"""Databases of other tools: the beginning of a table's name, what it is, what to give instead."""


def read_nsight(path: Path, digest: str, salvage: bool) -> Part:
    """Return the trace in a database of Nsight Systems.

    Parameters
    ----------
    path : Path
        An SQLite database.
    digest : str
        Of its bytes.
    salvage : bool
        Keep the rows before a damage.

    Raises
    ------
    UnreadableInput
        Another tool's database, a damaged one, or one without device work and calls.
    """
    database = Database(path, salvage)
    try:
        _refuse_strangers(database)
        return _part(database, digest)
    finally:
        database.close()


def _refuse_strangers(database: Database) -> None:
    if any(ACTIVITY + kind in database.tables for kind in (*WORK, "RUNTIME")) and "StringIds" in database.tables:
        return
    if RANGES in database.tables:
        what, fix = "is a database of Nsight Systems without CUDA activity", "profile with `nsys profile --trace=cuda,nvtx`"
        raise UnreadableInput(str(database.path), what, fix)
    for start, what, fix in OTHERS:
        if any(name.startswith(start) for name in database.tables):
            raise UnreadableInput(str(database.path), f"is {what}: it is not read", fix)
    tables = ", ".join(sorted(database.tables)[:6]) or "none"
    fix = "give a database of `nsys export --type sqlite`"
    raise UnreadableInput(str(database.path), f"is an SQLite database, but none of Nsight Systems (its tables: {tables})", fix)


def _part(database: Database, digest: str) -> Part:
    names = dict(database.texts("StringIds", "id", "value"))
    built, lost = Builder(), 0
    _identity(built, database)
    for kind in WORK:
        lost += _device(built, database, kind, names)
    lost += _calls(built, database, names)
    lost += _waits(built, database)
    steps = add_ranges(built, database, names)
    for at, text in database.texts("ThreadNames", "globalTid", "nameId"):
        name = names.get(int(text), "") if text.isascii() and text.isdigit() else ""
        built.name(_process(at), "", _thread(at), name)
    path = str(database.path)
    damage = [Damage(0, 0, 0, what) for what in database.damage]
    part = to_part(built.records("database", digest, database.path.stat().st_size, damage, no_time=lost), path)
    _ranks(part)
    part.notes.append(
        Note("reader-unverified", path, 1, "Nsight Systems databases are read after the public documentation; no sample was at hand")
    )
    if steps:
        part.notes.append(Note("steps-from-nvtx", path, steps, "NVTX ranges that count steps are taken as step marks"))
    graphs = database.numbers(ACTIVITY + "GRAPH_TRACE", ("start",))["start"]
    if len(graphs):
        fix = "profile with --cuda-graph-trace=node"
        part.notes.append(
            Note("graph-opaque", path, len(graphs), "launches of whole CUDA graphs are recorded as one piece of work each", fix)
        )
    return part


def _process(number: int) -> str:
    return str(number >> 24 & 0xFFFFFF)


def _thread(number: int) -> str:
    return str(number & 0xFFFFFF)


def _identity(built: Builder, database: Database) -> None:
    """Say what the database says of session and devices; the devices by their CUDA number."""
    began = database.numbers("TARGET_INFO_SESSION_START_TIME", ("utcEpochNs",))["utcEpochNs"]
    if len(began) == 1 and 0 < began[0] < MOST_NS:
        built.top["baseTimeNanoseconds"] = int(began[0])
    cards = dict(database.texts("TARGET_INFO_GPU", "id", "name"))
    cuda = database.numbers("TARGET_INFO_CUDA_DEVICE", ("gpuId", "cudaId"))
    number = {int(c): int(g) for g, c in zip(cuda["gpuId"], cuda["cudaId"], strict=True) if c >= 0} or {at: at for at in cards}
    if cards and max(number, default=-1) < 4096:
        rows = [{"id": at, "name": cards.get(number.get(at, at), "")} for at in range(max(number, default=-1) + 1)]
        built.top["deviceProperties"] = rows


def _device(built: Builder, database: Database, kind: str, names: dict[int, str]) -> int:
    """Add kernels, copies, sets or whole graphs; return how many have no time."""
    more = {
        "KERNEL": (
            "demangledName",
            "shortName",
            "graphNodeId",
            "gridX",
            "gridY",
            "gridZ",
            "blockX",
            "blockY",
            "blockZ",
            "registersPerThread",
        ),
        "MEMCPY": ("bytes", "copyKind", "srcKind", "dstKind", "graphNodeId"),
        "MEMSET": ("bytes", "graphNodeId"),
        "GRAPH_TRACE": ("graphId",),
    }[kind]
    rows, lost = _timed(database.numbers(ACTIVITY + kind, (*PLACE, *more)))
    memories = dict(database.texts("ENUM_CUDA_MEM_KIND", "id", "label")) or MEMORIES if kind == "MEMCPY" else {}
    if kind == "KERNEL":
        name = _named(built, np.where(rows["demangledName"] > 0, rows["demangledName"], rows["shortName"]), names)
    elif kind == "MEMCPY":
        trio = np.stack((rows["copyKind"], rows["srcKind"], rows["dstKind"]))
        kinds, inverse = np.unique(trio, axis=1, return_inverse=True)
        name = built.strings(_copy(a, b, c, memories) for a, b, c in kinds.T.tolist())[inverse.reshape(-1)]
    else:
        name = np.full(len(rows["start"]), built.string("Memset (Device)" if kind == "MEMSET" else "CUDA graph"))
    args: dict[str, tuple[np.ndarray, np.ndarray | bool, np.ndarray]] = {
        "device": _known(rows["deviceId"]), "stream": _known(rows["streamId"]), "correlation": _known(rows["correlationId"], 1),
    }  # fmt: skip
    for key, column in (
        ("bytes", "bytes"),
        ("graph node id", "graphNodeId"),
        ("graph id", "graphId"),
        ("registers per thread", "registersPerThread"),
    ):
        if column in rows:
            args[key] = _known(rows[column], int(column != "bytes"))
    for key in ("grid", "block") if kind == "KERNEL" else ():
        sizes = np.stack([rows[key + axis] for axis in "XYZ"])
        found, inverse = np.unique(sizes, axis=1, return_inverse=True)
        args[key] = (built.strings(str(one) for one in found.T.tolist())[inverse.reshape(-1)], True, np.all(sizes > 0, axis=0))
    pid, tid = _lanes(built, rows)
    category = {"MEMCPY": "gpu_memcpy", "MEMSET": "gpu_memset"}.get(kind, "kernel")
    built.add_columns(pid, tid, name, category, rows["start"], rows["end"] - rows["start"], args)
    return lost


def _copy(kind: int, source: int, target: int, memories: dict[int, str]) -> str:
    ends = f" ({memories[source]} -> {memories[target]})" if source in memories and target in memories else ""
    return f"Memcpy {COPIES.get(kind, 'Unknown')}{ends}"


def _calls(built: Builder, database: Database, names: dict[int, str]) -> int:
    """Add the calls of the runtime and of the driver."""
    rows, lost = _timed(database.numbers(ACTIVITY + "RUNTIME", ("start", "end", "globalTid", "correlationId", "nameId")))
    driver = np.array([at for at, text in names.items() if text.startswith("cu") and not text.startswith("cuda")], np.int64)
    on_driver = np.isin(rows["nameId"], driver)
    pid, tid = _threads(built, rows["globalTid"])
    name = _named(built, rows["nameId"], names, calls=True)
    for which, category in ((~on_driver, "cuda_runtime"), (on_driver, "cuda_driver")):
        value, is_text, has = _known(rows["correlationId"][which], 1)
        start = rows["start"][which]
        args: Columns = {"correlation": (value, is_text, has)}
        built.add_columns(pid[which], tid[which], name[which], category, start, rows["end"][which] - start, args)
    return lost


def _waits(built: Builder, database: Database) -> int:
    """Add synchronisation rows, and of a wait for an event the stream and the call that recorded it last before."""
    asked = (*PLACE, "syncType", "eventId", "eventSyncId")
    rows, lost = _timed(database.numbers(ACTIVITY + "SYNCHRONIZATION", asked))
    record = database.numbers(ACTIVITY + "CUDA_EVENT", ("globalPid", "streamId", "correlationId", "eventId", "eventSyncId"))
    made = list(zip(*(record[key].tolist() for key in ("globalPid", "eventId", "eventSyncId", "correlationId", "streamId")), strict=True))
    by_event: dict[tuple[int, int], list[tuple[int, int, int]]] = {}
    for pid, event, sync, correlation, stream in sorted(made):
        by_event.setdefault((pid, event), []).append((correlation, sync, stream))
    waited = np.full((2, len(rows["start"])), MISSING)
    for at, (pid, event, sync, correlation) in enumerate(
        zip(*(rows[key].tolist() for key in ("globalPid", "eventId", "eventSyncId", "correlationId")), strict=True)
    ):
        known = by_event.get((pid, event), [])
        exact = [one for one in known if one[1] == sync and sync > 0]
        before = [one for one in known if one[0] < correlation]
        if exact or before:
            waited[:, at] = (exact or before)[-1][0], (exact or before)[-1][2]
    args: Columns = {
        "device": _known(rows["deviceId"]), "stream": _known(_narrow(rows["streamId"])), "correlation": _known(rows["correlationId"], 1),
        "wait_on_stream": _known(waited[1]), "wait_on_cuda_event_record_corr_id": _known(waited[0], 1),
        "wait_on_cuda_event_id": _known(_narrow(rows["eventId"])),
    }  # fmt: skip
    kinds, inverse = np.unique(rows["syncType"], return_inverse=True)
    name = built.strings(WAITS.get(int(kind), "Sync") for kind in kinds)[inverse] if len(kinds) else kinds
    pid, tid = _lanes(built, rows)
    built.add_columns(pid, tid, name, "cuda_sync", rows["start"], rows["end"] - rows["start"], args)
    return lost


def _timed(rows: dict[str, np.ndarray]) -> tuple[dict[str, np.ndarray], int]:
    """Leave rows without times out; return how many."""
    start, end = rows["start"], rows["end"]
    fine = (np.abs(start + 1) < MOST_NS) & (np.abs(end + 1) < MOST_NS) & ((start != 0) | (end != 0))
    fine &= np.abs(np.where(fine, end - start, 0)) < MOST_LENGTH_NS
    return {key: column[fine] for key, column in rows.items()}, int((~fine).sum())


def _known(column: np.ndarray, least: int = 0) -> tuple[np.ndarray, bool, np.ndarray]:
    return column, False, np.asarray(column >= least)


def _narrow(column: np.ndarray) -> np.ndarray:
    """Return numbers of 32 bits; the invalid one (2**32 - 1) is missing."""
    return np.where((column >= 0) & (column < 2**32 - 1), column, MISSING)


def _named(built: Builder, column: np.ndarray, names: dict[int, str], calls: bool = False) -> np.ndarray:
    found, inverse = np.unique(column, return_inverse=True)
    texts = (names.get(int(at), f"name {at}" if at > 0 else "unnamed") for at in found)
    return built.strings(_unversioned(text) if calls else text for text in texts)[inverse] if len(found) else found


def _unversioned(name: str) -> str:
    """Return the name of a call without the version of its interface: ``cudaLaunchKernel_v7000`` is ``cudaLaunchKernel``."""
    stem, mark, version = name.rpartition("_v")
    stem = stem if mark and version.isdigit() and len(version) > 3 else name
    return stem.removesuffix("_ptsz").removesuffix("_ptds")


def _threads(built: Builder, numbers: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    found, inverse = np.unique(numbers, return_inverse=True)
    if not len(found):
        return found, found
    return built.strings(map(_process, found.tolist()))[inverse], built.strings(map(_thread, found.tolist()))[inverse]


def _lanes(built: Builder, rows: dict[str, np.ndarray]) -> tuple[np.ndarray, np.ndarray]:
    """Return the lane of device rows: a process and a device, and a stream of it."""
    pids, devices, streams = rows["globalPid"], rows["deviceId"], rows["streamId"]
    found, inverse = np.unique(np.stack((pids, devices)), axis=1, return_inverse=True)
    texts = []
    for pid, device in found.T.tolist():
        texts.append(f"{_process(pid)} GPU {device}" if pid >= 0 else f"GPU {device}")
        built.name(texts[-1], f"GPU {device}" if 0 <= device < 4096 else "GPU 0")
    lanes, where = np.unique(streams, return_inverse=True)
    if not len(lanes):
        return lanes, lanes
    return built.strings(texts)[inverse.reshape(-1)], built.strings(f"stream {at}" for at in lanes.tolist())[where]


def _ranks(part: Part) -> None:
    """Tell processes with device work apart: each is a rank, by its number."""
    owners = sorted({int(t.pid.split(" GPU ")[0]) for t in part.tracks if " GPU " in t.pid and t.pid.split(" GPU ")[0].isdigit()})
    if len(owners) < 2:
        return
    rank = {str(pid): at for at, pid in enumerate(owners)}
    part.tracks = [replace(track, rank=rank.get(track.pid.split(" GPU ")[0], 0)) for track in part.tracks]
    part.inner_ranks = len(owners)
    part.notes = [note for note in part.notes if note.code != "merged-ranks"]
    part.notes.append(Note("merged-ranks", part.path, len(owners), "several processes lie in this file; each with device work is a rank"))
