"""Join the files of several ranks into one trace: one text table, one list of tracks, one time base."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from workbench.errors import Note
from workbench.trace.part import Part, frozen
from workbench.trace.steps import steps_of
from workbench.trace.trace import ArgColumn, Events, Flows, Rank, Trace


def merge(parts: Sequence[Part], ranks: Sequence[int], stated: Sequence[bool], digest: str) -> Trace:
    """Join parts, ``ranks[i]`` being the rank of part i (the first of its ranks if it holds several)."""
    notes = [note for part in parts for note in part.notes]
    bases, shifts, base_notes = _bases(parts)
    notes += base_notes
    strings, texts = _strings(parts)
    tracks = [replace(t, rank=rank + t.rank) for part, rank in zip(parts, ranks, strict=True) for t in part.tracks]
    tracks_before = np.cumsum([0] + [len(p.tracks) for p in parts])
    rows_before = np.cumsum([0] + [len(p.events) for p in parts])
    if len(parts) == 1:
        events, flows, args = parts[0].events, parts[0].flows, dict(parts[0].args)
    else:
        events = _events(parts, texts, shifts, tracks_before, rows_before)
        flows = _flows(parts, texts, shifts, tracks_before)
        args = _args(parts, texts, rows_before)
    people = tuple(
        Rank(rank + k, part.path, part.world_size, base, part.devices, known and part.inner_ranks == 1, part.metadata)
        for part, rank, known, base in zip(parts, ranks, stated, bases, strict=True)
        for k in range(part.inner_ranks)
    )
    steps = steps_of(events, strings, tracks)
    where = ", ".join(part.path for part in parts)
    if not len(events):
        notes.append(Note("no-events", where, 1, "the trace holds no complete event: there is nothing to predict"))
    elif not len(steps):
        notes.append(Note("no-step-marks", where, 1, "no step marks: the whole trace counts as one step"))
    counts = {part.path: part.counts for part in parts}
    return Trace(events, tuple(strings), args, tuple(tracks), steps, flows, people, counts, tuple(notes), digest)


def _bases(parts: Sequence[Part]) -> tuple[list[int | None], list[int], list[Note]]:
    """Return (base of each part after the shift, shift of each part [ns], notes).

    The absolute time of an event is its own time plus the base its file states. Files with different bases are moved to the
    earliest one, so that times of all ranks compare; files without a base beside files with one cannot be.
    """
    bases = [part.base_time_ns for part in parts]
    known = [b for b in bases if b is not None]
    if len(known) < len(bases):
        text = "other files state a time base, this one does not: their clocks cannot be compared"
        mixed = [Note("base-time-missing", p.path, 1, text) for p in parts if p.base_time_ns is None]
        return bases, [0] * len(parts), mixed if known else []
    return [min(known)] * len(parts), [b - min(known) for b in known], []


def _strings(parts: Sequence[Part]) -> tuple[list[str], list[np.ndarray]]:
    if len(parts) == 1:
        return parts[0].strings, []
    number: dict[str, int] = {}
    texts = [np.array([number.setdefault(s, len(number)) for s in part.strings], np.int32) for part in parts]
    return list(number), texts


def _events(
    parts: Sequence[Part], texts: Sequence[np.ndarray], shifts: Sequence[int], tracks_before: np.ndarray, rows_before: np.ndarray
) -> Events:
    columns = []
    for part, text, shift, t, row in zip(parts, texts, shifts, tracks_before, rows_before, strict=False):
        e = part.events
        parent = np.where(e.parent < 0, -1, e.parent + np.int32(row)).astype(np.int32)
        track = (e.track + t).astype(np.int32)
        columns.append(
            (e.start_ns + shift, e.dur_ns, track, text[e.name], e.category, text[e.raw_category], e.correlation, e.external_id, parent)
        )
    return Events(*(frozen(np.concatenate(column)) for column in zip(*columns, strict=True)))


def _flows(parts: Sequence[Part], texts: Sequence[np.ndarray], shifts: Sequence[int], tracks_before: np.ndarray) -> Flows:
    columns = []
    for part, text, shift, t in zip(parts, texts, shifts, tracks_before, strict=False):
        f = part.flows
        ids = f.id.copy()
        named = ids <= -2
        ids[named] = -2 - text[-2 - ids[named]]
        columns.append((ids, f.start_ns + shift, (f.track + t).astype(np.int32), text[f.category], f.phase))
    return Flows(*(frozen(np.concatenate(column)) for column in zip(*columns, strict=True)))


def _args(parts: Sequence[Part], texts: Sequence[np.ndarray], rows_before: np.ndarray) -> dict[str, ArgColumn]:
    pieces: dict[str, list[tuple[np.ndarray, np.ndarray, np.ndarray]]] = {}
    for part, text, row in zip(parts, texts, rows_before, strict=False):
        for key, column in part.args.items():
            value = column.value.copy()
            value[column.is_text] = text[column.value[column.is_text]]
            pieces.setdefault(key, []).append(((column.event + row).astype(np.int32), value, column.is_text))
    return {key: ArgColumn(*(frozen(np.concatenate(c)) for c in zip(*rows, strict=True))) for key, rows in pieces.items()}
