"""A workload after what-if edits: its graph and table are the edited ones, its recorded times those of the recording.

Operators an edit made get a measured time as every other has one, so that all that is priced from measurements goes on working: the
sum of what they were made of, times model(new) / sum of model(old) on the recording's own card. It is an estimate, and says so.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property

import numpy as np

from workbench.cost.estimate import estimate
from workbench.errors import Note, Refused
from workbench.graph.graph import Graph
from workbench.graph.rewrite import Rewrite, Rewritten, recorded, rewrite
from workbench.graph.rewrite_rows import Made
from workbench.hardware.npu import NpuSpec
from workbench.operators.rows import take
from workbench.operators.table import Kind, OpTable
from workbench.replay.timeline import Account, Timeline
from workbench.study.workload import Workload

MOVERS = (Kind.ELEMENTWISE, Kind.COPY)


@dataclass(frozen=True, kw_only=True)
class EditedWorkload(Workload):
    """A workload after edits.

    Parameters
    ----------
    base : Workload
        As recorded.
    rewrites : tuple of Rewrite
        Applied one after the other.
    source : NpuSpec or None
        The recording's card, whose models price what was made.
    """

    base: Workload = field(repr=False)
    rewrites: tuple[Rewrite, ...]
    source: NpuSpec | None
    begun: Rewritten | None = field(default=None, repr=False)  # the recording after the first ``done`` edits
    done: int = 0

    @cached_property
    def after(self) -> Rewritten:
        """The recording after all edits, made rows still unpriced."""
        begun = self.begun or recorded(self.base.graph, self.base.table, self.base.trace)
        return rewrite(begun, self.rewrites[self.done :])

    @cached_property
    def _edited(self) -> tuple[Graph, OpTable, np.ndarray]:
        return measured(self.after, self.source)

    @cached_property
    def _built(self) -> tuple[Graph, OpTable]:
        return self._edited[0], self._edited[1]

    @property
    def estimated(self) -> np.ndarray:
        """Bool [U]: rows whose measured time is an estimate."""
        return self._edited[2]

    @cached_property
    def measured_timeline(self) -> Timeline:
        """Identity replay of the recording, for the nodes that are left; added nodes take no time where they would begin."""
        return _timeline_of(self.base.measured_timeline, self.after, self.graph)

    @cached_property
    def measured_account(self) -> Account:
        """Account of the identity replay of the recording."""
        return self.base.measured_account


def as_recorded(workload: Workload) -> Workload:
    """Return a workload without edits."""
    return workload.base if isinstance(workload, EditedWorkload) else workload


def edited(base: Workload, rewrites: tuple[Rewrite, ...], source: NpuSpec | None, known: Workload) -> Workload:
    """Return a workload after edits.

    Parameters
    ----------
    base : Workload
        As recorded.
    rewrites : tuple of Rewrite
    source : NpuSpec or None
        The recording's card.
    known : Workload
        Taken as it is where it is the same, and gone on from where it has the first of the edits.
    """
    if not rewrites:
        return base
    begun, done = None, 0
    if isinstance(known, EditedWorkload) and known.base is base and known.source == source:
        if known.rewrites == rewrites:
            return known
        if known.rewrites == rewrites[: len(known.rewrites)]:
            begun, done = known.after, len(known.rewrites)
    profiler = base.unprofiled_step_s, base.event_s
    return EditedWorkload(base.trace, None, *profiler, base=base, rewrites=rewrites, source=source, begun=begun, done=done)


def measured(after: Rewritten, source: NpuSpec | None) -> tuple[Graph, OpTable, np.ndarray]:
    """Give made rows and their nodes their measured times.

    Parameters
    ----------
    after : Rewritten
        Measured times of made rows are still those of their parts.
    source : NpuSpec or None
        The recording's card.

    Returns
    -------
    graph : Graph
    table : OpTable
        Without the rows that no work is left of.
    estimated : bool [U]

    Raises
    ------
    Refused
        A made row has no model on the recording's card, or no card is known, and nothing stands for the model.
    """
    table, graph, made = after.table, after.graph, after.made
    used = np.unique(graph.op[graph.op >= 0])
    mine = [int(row) for row in used if int(row) in made]
    times, by_model = _times(table, made, mine, source)
    ratio = np.ones(len(table))
    seconds = table.measured_s.copy()
    for row, value in times.items():
        ratio[row] = value / table.measured_s[row] if table.measured_s[row] > 0 else 0.0
        seconds[row] = value
    on_row = graph.op >= 0
    node_s = graph.measured_s.copy()
    node_s[on_row] *= ratio[graph.op[on_row]]
    bare = [row for row in mine if not made[row].parts]
    added = np.isin(graph.op, bare)
    node_s[added] = seconds[graph.op[added]]
    kept = np.flatnonzero(np.bincount(graph.op[on_row], minlength=len(table)))
    number = np.full(len(table), -1, dtype=np.int32)
    number[kept] = np.arange(len(kept))
    op = np.where(on_row, number[np.maximum(graph.op, 0)], graph.op).astype(np.int32)
    for values in (node_s, op, seconds):
        values.setflags(write=False)
    notes = graph.notes
    if mine and not by_model:
        text = "the recording's card is not known: times of edited operators follow their bytes and products, not a model"
        notes = (*notes, Note("rewrite-unmodelled", "operators", len(mine), text, "name the card with --source"))
    is_made = np.zeros(len(table), dtype=bool)
    is_made[mine] = True
    return replace(graph, op=op, measured_s=node_s, notes=notes), take(replace(table, measured_s=seconds), kept), is_made[kept]


def _times(table: OpTable, made: Mapping[int, Made], mine: list[int], source: NpuSpec | None) -> tuple[dict[int, float], bool]:
    """Return the measured time of made rows [s], and whether a model gave it."""
    wanted = sorted({row for new in mine for row in (new, *(part for part, _ in made[new].parts))})
    place = {row: i for i, row in enumerate(wanted)}
    model = np.full(len(wanted), np.nan)
    if source is not None and wanted:
        model = estimate(take(table, np.array(wanted)), [source]).seconds[:, 0].copy()
        model[[table.kind[row] == Kind.UNKNOWN for row in wanted]] = np.nan
    out = {}
    for row in mine:
        parts = made[row].parts
        ratio = float(model[place[row]] / sum(model[place[part]] * share for part, share in parts)) if parts else np.nan
        ratio = ratio if np.isfinite(ratio) else made[row].ratio
        if parts and np.isfinite(ratio):
            out[row] = float(table.measured_s[row] * ratio)
        elif not parts and np.isfinite(model[place[row]]):
            out[row] = float(model[place[row]])
        else:
            out[row] = _by_pace(table, row)
    return out, source is not None


def _by_pace(table: OpTable, row: int) -> float:
    """Return the time of moving a row's bytes at the pace of the recording's quickest map [s]."""
    moved = table.bytes_read + table.bytes_written
    known = table.among(MOVERS) & (table.measured_s > 0) & (moved > 0)
    if table.kind[row] not in MOVERS or not known.any():
        what = "no model prices it and the recording's card is not known"
        raise Refused(table.name[row], what, "name the card the trace was recorded on with --source")
    return float(moved[row] / (moved[known] / table.measured_s[known]).max())


def _timeline_of(timeline: Timeline, after: Rewritten, graph: Graph) -> Timeline:
    at = np.maximum(after.origin, 0)
    new = after.origin < 0
    start = np.where(new, graph.recorded_start_s, timeline.start_s[at])
    columns = {
        "start_s": start,
        "finish_s": np.where(new, start, timeline.finish_s[at]),
        "slack_s": timeline.slack_s[at],
        "critical": timeline.critical[at] & ~new,
        "binding": np.full(len(at), -1, dtype=np.int64),
    }
    for values in columns.values():
        values.setflags(write=False)
    return Timeline(**columns, step_s=timeline.step_s, makespan_s=timeline.makespan_s)
