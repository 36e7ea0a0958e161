"""Lanes of a file: which (process, thread) pairs are host threads, which are device streams, and of which device."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from workbench.trace.part import group, numbers
from workbench.trace.scanner import Records
from workbench.trace.trace import DEVICE_WORK, ArgColumn, Category, Track

# a process that is a device, a thread that is a stream; the group is the number
DEVICE_PROCESS = (
    re.compile(r"/device:(?:GPU|TPU|NPU|XPU|CUSTOM)[^:]*:(\d{1,9})(?!\d)"),
    re.compile(r"^(?:GPU|NPU|MTIA|XPU|HPU) ?(\d{1,9})$"),
    re.compile(r"^Ascend Hardware()"),
    re.compile(r"^NPU()$"),
    re.compile(r"^(?:Communication|HCCL)()$"),
)
STREAM_THREAD = re.compile(r"(?i)^stream\s*#?\s*(\d{1,9})(?!\d)")
GROUP_THREAD = re.compile(r"^Group \S+ Communication$")
"""Lane of the messages of one communicator (Ascend); its planes show the parts of the same messages."""
XLA_LANES = {"XLA Ops": 0, "Async XLA Ops": 1}
"""Lanes of a device that has no streams (a TPU core): what runs there is its work, and the number that stands for a stream."""
NUMBER = re.compile(r"^\d{1,9}$")

Names = dict[tuple[str, str, str], str]

HOST = (Category.CPU_OP, Category.RUNTIME, Category.DRIVER, Category.ANNOTATION, Category.PYTHON)
ON_DEVICE = (*DEVICE_WORK, Category.SYNC, Category.GPU_ANNOTATION)


@dataclass
class Lanes:
    """Tracks in a fixed order (kind, process, thread), whatever the order of the file."""

    tracks: list[Track]
    track: np.ndarray  # int32 [E]
    flow_track: np.ndarray  # int32 [F]
    is_stream: np.ndarray  # bool [T]: a device stream by its names or its events


def lanes_of(records: Records, category: np.ndarray, args: Mapping[str, ArgColumn]) -> Lanes:
    """Group events and flows into tracks.

    A (process, thread) pair is one track, except that device work of several (device, stream) pairs is split by them.
    """
    c, f, strings = records.columns, records.flows, records.strings
    count = len(c.start)
    work = np.isin(category, DEVICE_WORK)
    device = np.where(work, numbers(args.get("device"), strings, count), -1)
    stream = np.where(work, numbers(args.get("stream"), strings, count), -1)
    pid, tid = np.concatenate((c.pid, f.pid)), np.concatenate((c.tid, f.tid))
    base, first = group(pid, tid)
    kinds = np.zeros((len(first), len(Category)), bool)
    kinds[base[:count], category] = True
    names = _names(records)
    streaming_pids = {where for (what, where, _), name in names.items() if what == "thread_name" and STREAM_THREAD.match(name)}
    part, owner, pair = _split(base[:count], device, stream, work, len(first))
    tracks, is_stream = [], []
    for i, b in enumerate(owner):
        row = first[b]
        track, streaming = _track(strings[pid[row]], strings[tid[row]], names, kinds[b], pair[i], streaming_pids)
        tracks.append(track)
        is_stream.append(streaming)
    order = sorted(range(len(tracks)), key=lambda i: _place(tracks[i]))
    position = np.empty(len(order), np.int32)
    position[order] = np.arange(len(order), dtype=np.int32)
    return Lanes([tracks[i] for i in order], position[part], position[base[count:]], np.array(is_stream, bool)[order])


def _split(
    base: np.ndarray, device: np.ndarray, stream: np.ndarray, work: np.ndarray, bases: int
) -> tuple[np.ndarray, list[int], list[tuple[int, int]]]:
    """Return (track of each event, base of each track, (device, stream) of each track); track b < bases is base b itself."""
    part = base.copy()
    owner, pair = list(range(bases)), [(-1, -1)] * bases
    rows = np.flatnonzero(work)
    groups, first = group(base[rows], device[rows], stream[rows])
    taken, place = set(), np.empty(len(first), np.int32)
    for g in sorted(range(len(first)), key=lambda g: (device[rows[first[g]]], stream[rows[first[g]]])):
        row = rows[first[g]]
        b, found = int(base[row]), (int(device[row]), int(stream[row]))
        if found == (-1, -1):
            place[g] = b
        elif b in taken:
            place[g] = len(owner)
            owner.append(b)
            pair.append(found)
        else:
            taken.add(b)
            place[g], pair[b] = b, found
    part[rows] = place[groups]
    return part, owner, pair


def _names(records: Records) -> Names:
    """Return {(kind, pid, tid): name}; the first name given wins, process names have tid ""."""
    m, strings = records.metas, records.strings
    names: Names = {}
    _, first = group(m.what, m.pid, m.tid)
    for i in first:
        what = strings[m.what[i]]
        tid = strings[m.tid[i]] if what == "thread_name" else ""
        names.setdefault((what, strings[m.pid[i]], tid), strings[m.value[i]])
    return names


def _track(pid: str, tid: str, names: Names, kinds: np.ndarray, pair: tuple[int, int], streaming_pids: set[str]) -> tuple[Track, bool]:
    process, labels = names.get(("process_name", pid, ""), ""), names.get(("process_labels", pid, ""), "")
    thread = names.get(("thread_name", pid, tid), "")
    found = next((m for rule in DEVICE_PROCESS for text in (process, labels, pid) if (m := rule.search(text))), None)
    stream = STREAM_THREAD.match(thread) or STREAM_THREAD.match(tid)
    core = XLA_LANES.get(thread, -1) if found and pid not in streaming_pids else -1
    is_stream = bool(found and (stream or core >= 0 or GROUP_THREAD.match(thread)))
    label = thread or process
    if kinds[list(ON_DEVICE)].any() or (is_stream and not kinds[list(HOST)].any()):
        device, number = pair
        if device < 0:
            device = int(found[1] or 0) if found else int(pid) if NUMBER.match(pid) and int(pid) < 4096 else -1
        if number < 0:
            plain = NUMBER.match(tid) and not GROUP_THREAD.match(thread)
            number = int(stream[1]) if stream else core if core >= 0 else int(tid) if plain else -1
        return Track(0, "device", pid, tid, device, number, label), True
    kind = "host" if kinds[list(HOST)].any() or (kinds[Category.OTHER] and not found) else "other"
    return Track(0, kind, pid, tid, label=label), is_stream


def _place(track: Track) -> tuple[object, ...]:
    def natural(text: str) -> tuple[int, int, str]:
        return (0, int(text), "") if NUMBER.match(text) else (1, 0, text)

    kind = ("host", "device", "other").index(track.kind)
    return (kind, natural(track.pid), natural(track.tid), track.device, track.stream)
