"""The allocator's own records of a profile made with ``profile_memory=True``: instants named ``[memory]``.

Form: github.com/pytorch/pytorch, torch/csrc/profiler/kineto_shim and collection.cpp: ``Bytes`` (negative: freed), ``Addr``, ``Device Type``
(c10/core/DeviceType.h), ``Device Id``, ``Total Allocated`` and ``Total Reserved`` after the event; of 2021 ``Bytes`` and the device alone.
They are no work, so the reader does not keep them; here they are sought in the text, in one pass.
"""

from __future__ import annotations

import json
from bisect import bisect_left
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from workbench.trace.source import Source

MARK = b'"[memory]"'
CHUNK = 1 << 24  # [B]
REACH = 1 << 12
"""No record is longer [B]."""
DEVICES = ("cpu", "cuda", "mkldnn", "opengl", "opencl", "ideep", "hip", "fpga", "maia", "xla", "vulkan", "metal", "xpu", "mps", "meta",
           "hpu", "ve", "lazy", "ipu", "mtia", "privateuse1")  # fmt: skip
"""Names of ``Device Type`` (c10/core/DeviceType.h)."""
NONE = -(2**63)


@dataclass(frozen=True)
class Allocations:
    """Allocations and frees of one device of one file, in time order; arrays of length N.

    ``total`` and ``reserved`` are what the allocator holds after the event [B] (`NONE`: not recorded); ``address`` likewise.
    """

    device: str
    at_ns: np.ndarray  # int64 [ns], on the clock of the file
    nbytes: np.ndarray  # int64 [B], negative: freed
    address: np.ndarray  # int64
    total: np.ndarray  # int64 [B]
    reserved: np.ndarray  # int64 [B]


def allocations(path: str | Path) -> list[Allocations]:
    """Return the records of the allocators in a JSON profile, by device; none where it has none."""
    rows: dict[str, list[tuple[int, int, int, int, int]]] = {}
    for record in _records(Path(path)):
        args, at = record.get("args"), record.get("ts")
        if not isinstance(args, dict) or not isinstance(at, int | float) or not isinstance(args.get("Bytes"), int):
            continue
        numbers = [args[key] if isinstance(args.get(key), int) else NONE for key in ("Addr", "Total Allocated", "Total Reserved")]
        rows.setdefault(_device(args), []).append((round(at * 1000), args["Bytes"], *numbers))
    out = []
    for device, found in sorted(rows.items()):
        table = np.array([row for row in found if all(-(2**63) <= n < 2**63 for n in row)], dtype=np.int64).reshape(-1, 5)
        table = table[np.argsort(table[:, 0], kind="stable")]
        out.append(Allocations(device, *(np.ascontiguousarray(table[:, i]) for i in range(5))))
    return out


def _device(args: dict[str, object]) -> str:
    kind, number = args.get("Device Type"), args.get("Device Id")
    name = DEVICES[kind] if isinstance(kind, int) and 0 <= kind < len(DEVICES) else f"device type {kind}"
    return f"{name}:{number}" if isinstance(number, int) and number >= 0 else name


def _records(path: Path) -> Iterator[dict[str, object]]:
    """Yield the records named ``[memory]`` of a text, read in overlapping windows."""
    source, decoder = Source(path), json.JSONDecoder()
    kept, begin = b"", 0
    try:
        buffer = bytearray(CHUNK)
        while True:
            count = source.readinto(memoryview(buffer))
            text = kept + bytes(buffer[:count])
            last = max(len(text) - (REACH if count else 0), begin)
            at = text.find(MARK, begin)
            while 0 <= at < last:
                if (record := _record(text, at, decoder)) is not None:
                    yield record
                at = text.find(MARK, at + len(MARK))
            if not count:
                return
            kept = text[max(last - REACH, 0) :]
            begin = last - max(last - REACH, 0)
    finally:
        source.close()


def _record(text: bytes, at: int, decoder: json.JSONDecoder) -> dict[str, object] | None:
    """Return the record around a name: the nearest brace before it from which an object can be read that has this name."""
    begin = at
    for _ in range(3):
        begin = text.rfind(b"{", max(at - REACH, 0), begin)
        if begin < 0:
            return None
        inner = text.find(b"}", at)
        for end in (text.find(b"}", inner + 1) + 1, at + REACH):  # mostly the second brace closes the record
            try:
                found, _ = decoder.raw_decode(text[begin:end].decode("utf-8", "replace"))
            except ValueError:
                continue
            if isinstance(found, dict) and found.get("name") == "[memory]":
                return found
            break
    return None


@dataclass(frozen=True)
class Held:
    """Memory of one device as its allocator tells it."""

    peak: int  # index of the event after which most is allocated
    level: np.ndarray  # int64 [N] [B], allocated after each event
    before: int  # [B] allocated before the first event (0 where totals are not recorded)
    live: tuple[tuple[int, int], ...]  # (bytes, time [ns]) of what was allocated in the recording and lives at the peak, largest first
    clashes: tuple[tuple[int, int], ...]  # (time [ns], bytes) of allocations inside one that still lives


def held(found: Allocations, most: int = 10) -> Held:
    """Return how much a device holds over time, what lives at the peak, and allocations that overlap live ones.

    Parameters
    ----------
    found : Allocations
    most : int
        How many of the live ones are kept.
    """
    told = bool((found.total != NONE).all())
    level = found.total if told else np.cumsum(found.nbytes)
    peak = int(np.argmax(level)) if len(level) else 0
    live: dict[int, tuple[int, int]] = {}
    starts: list[int] = []
    clashes: list[tuple[int, int]] = []
    at_peak: list[tuple[int, int]] = []
    for i, (at, size, address) in enumerate(zip(found.at_ns.tolist(), found.nbytes.tolist(), found.address.tolist(), strict=True)):
        if address != NONE and size < 0 and address in live:
            del live[address]
            starts.pop(bisect_left(starts, address))
        elif address != NONE and size > 0:
            place = bisect_left(starts, address)
            below = starts[place - 1] if place else None
            inside = below is not None and below + live[below][0] > address
            if inside or (place < len(starts) and starts[place] < address + size):
                clashes.append((at, size))
            if address not in live:
                starts.insert(place, address)
            live[address] = (size, at)
        if i == peak:
            at_peak = sorted(live.values(), key=lambda one: (-one[0], one[1]))[:most]
    before = int(level[0] - found.nbytes[0]) if told and len(level) else 0
    return Held(peak, level, before, tuple(at_peak), tuple(clashes))
