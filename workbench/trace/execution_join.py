"""Execution traces joined to the profile of their rank: its operators get their tensors, and shapes where it has none.

The profile's ``External id`` of an operator is the node's ``rf_id`` plus a constant of the run.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence

import numpy as np

from workbench.errors import Note, Refused
from workbench.trace.execution_trace import DESCRIBED, Execution
from workbench.trace.part import Part, frozen
from workbench.trace.trace import ArgColumn, Category

RARE = 32
"""Operators called at most so often vote for the constant between ``External id`` and ``rf_id``."""
BELONGS = 0.5
"""Share of nodes that must find an operator of their name for two files to belong together."""


def join(parts: Sequence[Part], executions: Sequence[Execution]) -> None:
    """Give the operators of each profile the tensors of its execution trace, and shapes where the profile has none.

    Parameters
    ----------
    parts : sequence of Part
        Profiles; changed in place.
    executions : sequence of Execution
        At most one a profile.

    Raises
    ------
    Refused
        An execution trace belongs to none of the profiles, or two belong to one.
    """
    owner: dict[int, str] = {}
    for execution in executions:
        at, shift, share = _home(parts, execution)
        if share < BELONGS:
            what = f"belongs to none of the profiles: at most {100 * share:.0f} % of its operators are found in one"
            raise Refused(execution.path, what, "give the profile that was recorded with it")
        if at in owner:
            raise Refused(f"{owner[at]}, {execution.path}", f"both belong to {parts[at].path}", "leave one out")
        owner[at] = execution.path
        _link(parts[at], execution, shift)


def _home(parts: Sequence[Part], execution: Execution) -> tuple[int, int, float]:
    """Return the profile an execution trace belongs to, the constant between the ids, and the share of nodes found."""
    same = [i for i, part in enumerate(parts) if any(track.pid == str(execution.pid) for track in part.tracks)]
    best = (0, 0, -1.0)
    for i in same or range(len(parts)):
        by_id = _operators(parts[i])
        shift = _shift(by_id, parts[i], execution)
        share = len(_matches(by_id, parts[i], execution, shift)) / len(execution)
        if share > best[2]:
            best = (i, shift, share)
    return best


def _operators(part: Part) -> dict[int, int]:
    """Return the row of each operator of a profile by its external id (the first, where one repeats)."""
    e = part.events
    rows = np.flatnonzero(((e.category == Category.CPU_OP) | (e.category == Category.ANNOTATION)) & (e.external_id >= 0))[::-1]
    return dict(zip(e.external_id[rows].tolist(), rows.tolist(), strict=True))


def _matches(by_id: Mapping[int, int], part: Part, execution: Execution, shift: int) -> list[tuple[int, int]]:
    """Return (row of the profile, number of the node) of equally named pairs, by row."""
    names, name = execution.strings, part.events.name
    rows = ((by_id.get(number + shift, -1), at) for at, number in enumerate(execution.rf_id.tolist()))
    mine = execution.name.tolist()
    return sorted((row, at) for row, at in rows if row >= 0 and part.strings[name[row]] == names[mine[at]])


def _shift(by_id: Mapping[int, int], part: Part, execution: Execution) -> int:
    """Return the constant that most pairs of equally named, rare operators agree on."""
    here: dict[str, list[int]] = defaultdict(list)
    for number, row in by_id.items():
        here[part.strings[part.events.name[row]]].append(number)
    there: dict[str, list[int]] = defaultdict(list)
    for at, number in zip(execution.name.tolist(), execution.rf_id.tolist(), strict=True):
        there[execution.strings[at]].append(number)
    votes: Counter[int] = Counter()
    for name, ids in there.items():
        if len(ids) <= RARE and 0 < len(here[name]) <= RARE:
            votes.update(external - rf_id for external in here[name] for rf_id in ids)
    return votes.most_common(1)[0][0] if votes else 0


def _link(part: Part, execution: Execution, shift: int) -> None:
    pairs = _matches(_operators(part), part, execution, shift)
    rows, first = np.unique(np.array([row for row, _ in pairs], np.int32), return_index=True)
    nodes = np.array([at for _, at in pairs], np.int32)[first]
    known = part.args["Input Dims"].event if "Input Dims" in part.args else np.empty(0, np.int32)
    bare = ~np.isin(rows, known)
    number: dict[str, int] = {}
    for at, text in enumerate(part.strings):
        number.setdefault(text, at)
    before = len(number)
    place = np.array([number.setdefault(text, len(part.strings) - before + len(number)) for text in execution.strings], np.int64)
    part.strings += list(number)[before:]
    args = dict(part.args)
    for key, column in execution.args.items():
        kept = (column[nodes] >= 0) & (bare if key in DESCRIBED else True)
        if kept.any():
            args[key] = _with(args.get(key), rows[kept], place[column[nodes[kept]]])
    part.args = args
    part.digest = f"{part.digest}+{execution.digest}"
    gained = int((bare & (execution.args["Input Dims"][nodes] >= 0)).sum())
    text = f"{len(pairs)} of {len(execution)} operators of {execution.path} joined to the profile (External id = rf_id + {shift})"
    part.notes.append(Note("execution-trace-joined", part.path, len(pairs), text + (f"; {gained} gain their shapes" if gained else "")))
    if execution.unread:
        part.notes.append(Note("execution-trace-unread", execution.path, execution.unread, "nodes without name or id are left out"))


def _with(old: ArgColumn | None, rows: np.ndarray, texts: np.ndarray) -> ArgColumn:
    """Return an argument with texts added to rows that do not have it; rows ascend."""
    old = old or ArgColumn(np.empty(0, np.int32), np.empty(0, np.int64), np.empty(0, bool))
    new = ~np.isin(rows, old.event)
    event = np.concatenate((old.event, rows[new].astype(np.int32)))
    order = np.argsort(event, kind="stable")
    values = np.concatenate((old.value, texts[new]))[order]
    is_text = np.concatenate((old.is_text, np.ones(int(new.sum()), bool)))[order]
    return ArgColumn(*map(frozen, (event[order], values, is_text)))
