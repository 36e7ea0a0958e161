"""Open a trace: one file or one of each rank, what it is decided by its content."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np

from workbench.errors import Note, Refused, UnreadableInput
from workbench.trace import kineto
from workbench.trace.ascend import read_table, settle
from workbench.trace.cache import remembered
from workbench.trace.chakra import read_chakra
from workbench.trace.chakra_nodes import is_chakra
from workbench.trace.clean import faults, notes_of
from workbench.trace.execution_join import join
from workbench.trace.execution_trace import NODES, Execution, Nodes, is_execution
from workbench.trace.files import NoTrace, Paths, asked, read_all
from workbench.trace.kernel_table import KernelTable
from workbench.trace.merge import merge
from workbench.trace.nsight import read_nsight
from workbench.trace.nsight_tables import MAGIC
from workbench.trace.part import Part
from workbench.trace.protobuf import BrokenMessage
from workbench.trace.scanner import Records, Scanner
from workbench.trace.source import Source, first_bytes, kind_of
from workbench.trace.steps import incomplete_notes
from workbench.trace.strangers import GIVE, strange_json
from workbench.trace.trace import Trace
from workbench.trace.window import CHUNK
from workbench.trace.xplane import is_xplane, read_xplane

RANK_IN_NAME = re.compile(r"(?i)(?:^|[^a-z])rank[-_ ]?(\d{1,6})(?!\d)")


def open_trace(paths: Paths, *, salvage: bool = False, ranks: Sequence[int] | None = None, chunk: int = CHUNK) -> Trace:
    """Read one trace file, or the files of several ranks as one trace.

    Parameters
    ----------
    paths : path or sequence of paths
        Files, directories of them, or patterns (``runs/*.json``): what in a directory is no trace is left out with a note. PyTorch
        profiler or Chrome traces in JSON, XLA profiles (xplane), Ascend timelines, kernel tables and output folders, plain or gzip;
        beside them the execution traces of the same ranks, whose tensors their operators get. The content decides, never the name.
    salvage : bool
        Import what is whole of a damaged file, with a note that counts what was lost. The default refuses it.
    ranks : sequence of int, optional
        The rank of each profile; overrides what the files say.
    chunk : int
        Bytes of plain text read at once [B]. The result does not depend on it.

    Returns
    -------
    Trace
        Times are exact integer nanoseconds. With several files they share one base: the earliest the files state.

    Raises
    ------
    UnreadableInput
        Missing, damaged, or no trace; names the file and the byte. Nothing to read in a directory.
    Refused
        Two files of one rank, or several files of which one does not say its rank.
    """
    files = asked(paths)
    if not files:
        raise UnreadableInput("open_trace", "no file was given", "name at least one trace file")
    if ranks is not None and not (isinstance(ranks, Sequence) and all(type(r) is int and 0 <= r < 2**31 for r in ranks)):
        raise Refused("--ranks", f"{ranks!r} are no ranks", "give a list of whole numbers, counted from 0")
    read, skipped = read_all(files, lambda path: remembered(path, salvage, lambda: _read(path, salvage, chunk)))
    parts = settle(read, [file.path for file in files])
    executions = [execution for execution in read if isinstance(execution, Execution)]
    if not read:
        raise UnreadableInput(str(paths)[:200], f"holds no trace: {skipped[0].where} {skipped[0].text}", GIVE)
    if not parts:
        what = "is an execution trace: it holds no times" if len(read) == 1 else "are execution traces: they hold no times"
        raise UnreadableInput(", ".join(execution.path for execution in executions), what, "give the profiles recorded with them as well")
    if ranks is not None and len(ranks) != len(parts):
        what = f"{len(ranks)} ranks for {len(parts)} profiles"
        raise Refused("--ranks", what, "give one rank for each profile, in the order of the files (none for execution traces)")
    join(parts, executions)
    stated = [ranks is not None or part.rank is not None for part in parts]
    found = _ranks(parts, ranks)
    digest = parts[0].digest if len(parts) == 1 and ranks is None else _digest(parts, found)
    trace = merge(parts, found, stated, digest)
    return replace(trace, notes=(*trace.notes, *skipped, *notes_of(trace, faults(trace)), *incomplete_notes(trace)))


def _read(path: Path, salvage: bool, chunk: int) -> Part | Execution | KernelTable:
    head = first_bytes(path)
    if (table := read_table(path, head, salvage)) is not None:
        return table
    source = Source(path)
    try:
        if head.startswith(MAGIC):
            return _database(source, salvage)
        if not kind_of(head) and is_chakra(np.frombuffer(head, np.uint8)):
            return _chakra(source, salvage)
        if not kind_of(head) and is_xplane(np.frombuffer(head, np.uint8)):
            records = _profile(source, salvage)
        else:
            nodes = Nodes()
            records = Scanner(source, salvage=salvage, chunk=chunk, each={NODES: nodes.add}).run()
            if not records.has_events and is_execution(records.top):
                return nodes.execution(records.top, str(path), records.digest)
            _refuse_strangers(records, str(path))
    finally:
        source.close()
    return kineto.to_part(records, str(path))


def _database(source: Source, salvage: bool) -> Part:
    """Read an SQLite database, which must lie there as it is."""
    if source.compressed:
        raise UnreadableInput(str(source.path), "is a compressed SQLite database", "unpack it with `gunzip`")
    return read_nsight(source.path, source.whole_digest(), salvage)


def _chakra(source: Source, salvage: bool) -> Part:
    """Read a Chakra trace; a damaged one is refused unless what is whole is asked for."""
    data = np.frombuffer(source.whole(), np.uint8)
    try:
        return read_chakra(data, str(source.path), source.digest(), salvage)
    except BrokenMessage as fault:
        why = source.fault or "is a Chakra trace that is damaged or cut short"
        raise UnreadableInput(str(source.path), f"{why}: {fault}", "convert it again, or import what is whole with --salvage") from None


def _profile(source: Source, salvage: bool) -> Records:
    """Read an XLA profile; a damaged one is refused unless what is whole is asked for."""
    data = np.frombuffer(source.whole(), np.uint8)
    try:
        return read_xplane(data, source.digest(), salvage)
    except BrokenMessage as fault:
        why = source.fault or "is an XLA profile (xplane) that is damaged or cut short"
        fix = "write the profile again" if salvage else "write the profile again, or import what is whole with --salvage"
        raise UnreadableInput(str(source.path), f"{why}: {fault}", fix) from None


def _refuse_strangers(records: Records, path: str) -> None:
    """Refuse JSON that is no trace."""
    top = records.top
    if not records.has_events:
        if records.damage:
            what = f"nothing could be salvaged: {records.damage[0].why} at byte {records.damage[0].offset}"
            raise UnreadableInput(path, what, GIVE)
        what, fix = strange_json(top)
        raise NoTrace(path, f"is {what}", fix)
    strange = records.counters["not_object"] + records.counters["no_ph"] - records.counters["empty"]
    if strange and not records.phases:
        raise NoTrace(path, "is JSON, but its records are no trace events (none has a phase)", GIVE)


def _ranks(parts: list[Part], ranks: Sequence[int] | None) -> list[int]:
    """Return the rank of each file: given, stated, or for a single file from its name."""
    if ranks is None and len(parts) == 1:
        part = parts[0]
        if part.rank is not None:
            return [part.rank]
        name = RANK_IN_NAME.search(Path(part.path).name)
        rank = int(name[1]) if name else 0
        text = f"the file states no rank; {rank} is {'from its name' if name else 'assumed'}"
        if part.inner_ranks == 1:
            part.notes.append(Note("rank-assumed", part.path, 1, text, "open_trace(ranks=...) and inspect --ranks set it"))
        return [rank]
    many = [part.path for part in parts if part.inner_ranks > 1]
    if many and len(parts) > 1:
        raise Refused(", ".join(many), "holds several merged ranks and cannot be joined with other files", "open it alone")
    silent = [part.path for part in parts if part.rank is None]
    if ranks is None and silent:
        raise Refused(", ".join(silent), "the rank is not in the file", "say the rank of each file with --ranks, in the order of the files")
    found = [int(r) for r in ranks] if ranks is not None else [part.rank for part in parts if part.rank is not None]
    for i, rank in enumerate(found):
        if rank < 0:
            raise Refused("--ranks", f"{rank} is no rank", "ranks count from 0")
        if rank in found[:i]:
            both = f"{parts[found.index(rank)].path}, {parts[i].path}"
            raise Refused(both, f"both files are rank {rank}", "leave one out, or say the rank of each file with --ranks")
    return found


def _digest(parts: list[Part], ranks: list[int]) -> str:
    text = ";".join(f"{rank}:{part.digest}" for rank, part in zip(ranks, parts, strict=True))
    return hashlib.sha256(text.encode()).hexdigest()[:32]
