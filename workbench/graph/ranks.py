"""Ranks of one recording: the same message on each, their clocks, and waiting told apart from transfer."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from workbench.errors import Note, Refused
from workbench.graph.rank_arguments import MOST
from workbench.graph.rank_clocks import Clocks, clocks
from workbench.graph.rank_match import Matches, match
from workbench.graph.rank_messages import Messages, messages
from workbench.graph.rank_split import Split, split
from workbench.graph.units import price_units
from workbench.operators.table import OpTable
from workbench.trace.clean import clean
from workbench.trace.part import frozen
from workbench.trace.trace import Trace


@dataclass(frozen=True)
class Ranks:
    """What the ranks of a recording have to do with each other.

    Parameters
    ----------
    messages : Messages
        N messages of all ranks, times as recorded.
    matches : Matches
    clocks : Clocks
    split : Split
    shift_ns : int64 [R]
        What is subtracted from the times of each rank of ``clocks.rank`` to lay all on one time line [ns].
    notes : tuple of Note
    """

    messages: Messages
    matches: Matches
    clocks: Clocks
    split: Split
    shift_ns: np.ndarray
    notes: tuple[Note, ...]


def match_ranks(trace: Trace, table: OpTable, op: np.ndarray) -> Ranks:
    """Match the messages of all ranks, estimate their clocks, and split each message into waiting and transfer.

    Parameters
    ----------
    trace : Trace
        Cleaned; times as recorded.
    table : OpTable
    op : int32 [E]
        Row of ``table`` of each event, see `workbench.graph.units.price_units`.

    Returns
    -------
    Ranks

    Raises
    ------
    Refused
        Ranks of several files communicate, but nothing matches and no time base is stated: no clock is common to them.
    """
    found = messages(trace, table, op)
    worlds = [r.world_size or 0 for r in trace.ranks]
    matches = match(found, max((size for size in worlds if size <= MOST), default=0))
    ranks = np.unique(np.array([r.rank for r in trace.ranks], dtype=np.int32))
    watches = clocks(found, matches, ranks)
    parts = split(found, matches, watches)
    shift, notes = _shifts(trace, found, watches)
    return Ranks(found, matches, watches, parts, shift, (*matches.notes, *parts.notes, *notes))


def ranks_of(trace: Trace) -> Ranks:
    """Return what the ranks of a recording, as opened, have to do with each other (see `match_ranks`).

    Parameters
    ----------
    trace : Trace

    Raises
    ------
    Refused
        No clock is common to them.
    """
    trace = clean(trace)
    table, op, *_ = price_units(trace)
    return match_ranks(trace, table, op)


def aligned(trace: Trace, ranks: Ranks) -> Trace:
    """Return the trace with all ranks on the clock of the first: one constant a rank is subtracted from its times."""
    if not ranks.shift_ns.any():
        return trace
    e, flows, steps = trace.events, trace.flows, trace.steps
    of_track = ranks.shift_ns[ranks.clocks.row(np.array([t.rank for t in trace.tracks], dtype=np.int32))]
    events = replace(e, start_ns=frozen(e.start_ns - of_track[e.track]))
    flows = replace(flows, start_ns=frozen(flows.start_ns - of_track[flows.track])) if len(flows.id) else flows
    steps = replace(steps, start_ns=frozen(steps.start_ns - ranks.shift_ns[ranks.clocks.row(steps.rank)])) if len(steps) else steps
    return replace(trace, events=events, flows=flows, steps=steps)


def missing_peers(trace: Trace, messages: np.ndarray) -> list[Note]:
    """Say that the messages of one rank have no recorded peers.

    Parameters
    ----------
    trace : Trace
        One rank.
    messages : bool [E]
        Device work that communicates.
    """
    if not messages.any() or not trace.ranks or trace.ranks[0].world_size == 1:
        return []
    text = "messages whose other members are not recorded keep their recorded time: absent ranks are not waited for"
    return [Note("missing-peers", trace.ranks[0].path, int(messages.sum()), text, "open the recordings of all ranks together")]


def _shifts(trace: Trace, m: Messages, watches: Clocks) -> tuple[np.ndarray, list[Note]]:
    """Shift of each rank [ns]: its clock's offset; parts without a common message by the base of their files, else by their first event."""
    shift = watches.offset_ns.copy()
    heads = np.unique(watches.reference)
    notes = [_told(watches)] if (watches.ends > 0).any() else []
    if len(heads) == 1:
        return shift, notes
    where = ", ".join(dict.fromkeys(r.path for r in trace.ranks))
    of = {r.rank: r for r in trace.ranks}
    comparable = len({r.path for r in trace.ranks}) == 1 or all(r.base_time_ns is not None for r in trace.ranks)
    if comparable:
        text = "ranks share no message: their clocks are compared by the time base of their files, whose accuracy is not known"
        return shift, [*notes, Note("clock-by-base", where, len(heads), text)]
    if not (watches.ends > 0).any() and len(np.unique(m.rank)) > 1:
        what = "nothing these ranks sent each other matches, and the files state no time base: no clock is common to them"
        raise Refused(where, what, "open ranks of one process group that were recorded at the same time, or each rank alone")
    first = _first_events(trace, watches.rank)
    for head in heads[1:]:
        mine = watches.reference == head
        shift[mine] += first[mine][0] - first[0]
    names = ", ".join(str(of[int(h)].rank) for h in heads[:8])
    text = f"parts of the recording share no message (they begin at ranks {names}): each is laid at the start of the first"
    return shift, [*notes, Note("clock-unknown", where, len(heads), text, "open the recordings of all ranks together")]


def _first_events(trace: Trace, rank: np.ndarray) -> np.ndarray:
    """Int64 [R]: first start of each rank [ns] (0 where it has no events)."""
    out = np.full(len(rank), np.iinfo(np.int64).max)
    of_track = np.searchsorted(rank, np.array([t.rank for t in trace.tracks], dtype=np.int32))
    np.minimum.at(out, of_track[trace.events.track], trace.events.start_ns)
    return np.where(out == np.iinfo(np.int64).max, 0, out)


def _told(watches: Clocks) -> Note:
    rows = np.flatnonzero(watches.ends > 0)
    worst = rows[int(np.argmax(np.abs(watches.offset_ns[rows])))]
    text = (
        f"clocks are laid on that of rank {int(watches.reference[worst])} by the common ends of messages: "
        f"by up to {watches.offset_ns[worst] / 1e3:.3f} us (rank {int(watches.rank[worst])}), "
        f"give or take {int(watches.spread_ns[rows].max()) / 1e3:.3f} us"
    )
    if (watches.drift != 0).any():
        text += f", with a drift of up to {np.abs(watches.drift).max() * 1e6:.3g} us/s"
    return Note("clocks-aligned", "ranks", len(rows), text)
