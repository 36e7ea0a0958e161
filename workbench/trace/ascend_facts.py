"""What the Ascend profiler computed itself: ``communication.json`` (messages), ``step_trace_time.csv`` (accounts of steps).

Forms after the public documentation of torch_npu and msprof-analyze; unverified: no sample was at hand. In ``communication.json`` messages
(``hcom_allReduce__445_2@<group>``) lie below steps and kinds, each with ``Communication Time Info`` [ms] and ``Communication Bandwidth
Info`` by link. ``step_trace_time.csv`` has a row a step: Computing, Communication(Not Overlapped), Overlapped, Communication, Free,
Stage, Bubble, Communication(Not Overlapped and Exclude Receive), Preparing [us].
"""

from __future__ import annotations

import csv
import json
import math
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from workbench.errors import Note, WorkbenchError
from workbench.trace import kernels
from workbench.trace.comm import ARGUMENT, is_comm_name
from workbench.trace.kernel_table import absent, nanoseconds
from workbench.trace.part import Part
from workbench.trace.source import Source
from workbench.trace.trace import Category

APART = 0.05
"""Accounts that differ by more are said to differ."""
TIME, BANDWIDTH, START = "Communication Time Info", "Communication Bandwidth Info", "Start Timestamp(us)"

Cells = dict[int, dict[str, object]]


def messages_of(part: Part, path: Path) -> Cells:
    """Return the arguments that ``communication.json`` gives to communication rows of a profile, by row.

    Messages match by name; of several rows of one name the one whose start is nearest to the stated one, each once.

    Raises
    ------
    UnreadableInput
        The file cannot be opened.
    ValueError
        It is no JSON of this form.
    """
    said = json.loads(_bytes(path))
    rows: dict[str, list[int]] = defaultdict(list)
    e = part.events
    for row in np.flatnonzero(e.category == Category.KERNEL).tolist():
        rows[part.strings[e.name[row]]].append(row)
    out: Cells = {}
    for label, message in _messages(said):
        name, _, group = label.partition("@")
        times = message[TIME]
        free = [row for row in rows.get(name, ()) if row not in out]
        if not free:
            continue
        start = times.get(START)
        at = min(free, key=lambda row: abs(int(e.start_ns[row]) - nanoseconds(str(start)))) if start is not None else free[0]
        out[at] = {key: value for key, value in times.items() if key != START and isinstance(value, int | float)}
        out[at] |= {BANDWIDTH: json.dumps(message.get(BANDWIDTH, {})), "Communication group": group}
    return out


def _messages(said: Any, depth: int = 0) -> Iterator[tuple[str, dict[str, Any]]]:
    for key, value in said.items() if isinstance(said, dict) and depth < 5 else ():
        if isinstance(value, dict) and isinstance(value.get(TIME), dict):
            if key != "Total Op Info":
                yield key, value
        else:
            yield from _messages(value, depth + 1)


def step_accounts(path: Path) -> list[dict[str, object]]:
    """Return the rows of ``step_trace_time.csv``; times as whole nanoseconds, absent cells left out.

    Raises
    ------
    UnreadableInput
        The file cannot be opened.
    ValueError
        It is no table of this form.
    """
    rows = list(csv.reader(_bytes(path).decode("utf-8-sig", "replace").replace("\0", "\ufffd").splitlines()))
    header = [name.strip() for name in rows[0]] if rows else []
    if "Computing" not in header or "Free" not in header:
        raise ValueError("it has no columns Computing and Free")
    out: list[dict[str, object]] = []
    for row in rows[1:]:
        if len(row) != len(header):
            raise ValueError(f"a row has {len(row)} cells, the header {len(header)}")
        cells = {name: cell.strip() for name, cell in zip(header, row, strict=True) if not absent(cell)}
        out.append({name: cell if name in ("Device_id", "Step") else nanoseconds(cell) for name, cell in cells.items()})
    return out


def compared(part: Part, accounts: list[dict[str, object]]) -> list[tuple[str, int, int]]:
    """Return (what, theirs, ours) [ns], over all steps, of the accounts that differ by more than 5 %."""
    ours = _account(part)
    out = []
    for name, value in ours.items():
        theirs = sum(int(str(row[name])) for row in accounts if name in row)
        if any(name in row for row in accounts) and not math.isclose(theirs, value, rel_tol=APART, abs_tol=1_000):
            out.append((name, theirs, value))
    return out


def _account(part: Part) -> dict[str, int]:
    """Return computing, communication and the part of it that overlaps nothing, as unions of intervals [ns]."""
    e = part.events
    named = np.array([is_comm_name(text) for text in part.strings], bool)
    kernel = e.category == Category.KERNEL
    message = kernel & named[e.name]
    if ARGUMENT in part.args:
        message[part.args[ARGUMENT].event] = True
        message &= kernel

    def union(rows: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        order = np.argsort(e.start_ns[rows], kind="stable")
        return kernels.merged(e.start_ns[rows][order], (e.start_ns[rows] + e.dur_ns[rows])[order])

    computing, communication = union(kernel & ~message), union(message)
    overlap = int(kernels.overlap_ns(*computing, *communication))
    whole = int((communication[1] - communication[0]).sum())
    found = {"Computing": int((computing[1] - computing[0]).sum()), "Communication": whole, "Overlapped": overlap}
    return found | {"Communication(Not Overlapped)": whole - overlap}


def _bytes(path: Path) -> bytes:
    source = Source(path)
    try:
        return bytes(source.whole())
    finally:
        source.close()


def facts_notes(part: Part, folder: Path) -> tuple[Cells, dict[str, object], list[Note]]:
    """Read what lies beside a timeline: arguments by row, metadata, and notes on what was joined, differs or cannot be read."""
    cells: Cells = {}
    said: dict[str, object] = {}
    notes = []
    for name in ("communication.json", "step_trace_time.csv"):
        path = folder / name
        if not path.is_file():
            continue
        try:
            if name == "communication.json":
                cells = messages_of(part, path)
                text = f"messages of {path} joined: time that was waiting and transfer, bandwidth by link"
                notes.append(Note("communication-joined", part.path, len(cells), text))
                continue
            accounts = step_accounts(path)
            said[name] = accounts
            for what, theirs, ours in compared(part, accounts):
                text = f"{what}: the profiler's own account is {theirs / 1e3:.3f} us, the rows of the timeline come to {ours / 1e3:.3f} us"
                notes.append(Note("account-differs", str(path), len(accounts), text, "the rows of the timeline are used"))
        except (ValueError, RecursionError, WorkbenchError) as error:
            why = error.what if isinstance(error, WorkbenchError) else str(error)
            notes.append(Note("companion-unread", str(path), 1, f"lies beside the timeline and is not used: {why[:200]}"))
    return cells, said, notes
