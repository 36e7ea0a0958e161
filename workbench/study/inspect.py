"""What is in a recording, for a person: where the time of a step goes, what it consists of, and what looks wrong."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from workbench import units
from workbench.errors import Note, Refused
from workbench.graph.ranks import missing_peers
from workbench.hardware.npu import NpuSpec
from workbench.study.document import note_documents
from workbench.study.documents_health import FindingDocument
from workbench.study.documents_inspect import AccountDocument, Facts, InspectDocument, StepTimeDocument, SummaryDocument
from workbench.study.health import findings
from workbench.study.health_steps import step_kinds
from workbench.study.memory import memory_of
from workbench.study.ranks import ranks_document
from workbench.study.seen import Seen, card_of
from workbench.study.segments import layer_rows, microbatch_count, phase_rows, top_rows
from workbench.study.steps import kept_steps
from workbench.study.workload import Workload
from workbench.trace.comm import comm
from workbench.trace.facts import facts
from workbench.trace.trace import Trace


def inspect(trace: Trace, typed: Sequence[str] = (), card: NpuSpec | None = None, memory: bool = False) -> InspectDocument:
    """Return everything there is to say of a recording before anything is predicted.

    Parameters
    ----------
    trace : Trace
        One or several ranks, as opened.
    typed : sequence of str
        Paths as the user wrote them; keys of ``traces`` where they name a file.
    card : NpuSpec, optional
        The card it was recorded on, where its name is not recognised: what is faster than this card cannot be.
    memory : bool
        Read the records of memory allocators in long profiles too, which takes about as long as opening them.

    Returns
    -------
    InspectDocument
        Facts of every file as recorded; account of the mean step, steps, phases, layers, operators and findings of the whole; of
        several ranks also how they wait for each other. Where there is nothing to account for, facts and notes alone.
    """
    names = {str(Path(path)): path for path in typed}
    counted = {names.get(path, path): Facts.model_validate(values) for path, values in facts(trace).items()}
    ranks, notes = ranks_document(trace) if len(trace.ranks) > 1 else (None, missing_peers(trace, comm(trace)))
    seen = Seen(Workload(trace), card or card_of(trace))
    held, faults, unread = memory_of(trace, memory, seen.lives)
    notes = [*notes, *unread]
    try:
        graph = seen.graph
    except Refused as fault:
        notes = [*notes, Note("not-accounted", fault.where, 1, fault.what, fault.fix)]
        summary = _summary(trace, seen.card, None, None, [])
        found_notes = note_documents([*trace.notes, *notes])
        return InspectDocument(
            traces=counted, summary=summary, account=None, steps=[], phases=[], layers=[], operators=[], memory=held, findings=[],
            ranks=ranks, notes=found_notes,
        )  # fmt: skip
    account = AccountDocument(**seen.workload.measured_account.mean(kept_steps(graph.step_complete)))
    found = findings(seen, ranks, faults)
    known = {note.code for note in (*trace.notes, *notes)}
    more = [note for note in graph.notes if note.code not in known]
    return InspectDocument(
        traces=counted,
        summary=_summary(trace, seen.card, seen, account, found),
        account=account,
        steps=_steps(seen),
        phases=phase_rows(seen),
        layers=layer_rows(seen),
        operators=top_rows(seen),
        memory=held,
        findings=found,
        ranks=ranks,
        notes=note_documents([*trace.notes, *notes, *more]),
    )


def _steps(seen: Seen) -> list[StepTimeDocument]:
    graph = seen.graph
    rows = zip(seen.window_rank, graph.step_numbers, graph.measured_step_s, graph.step_complete, step_kinds(seen), strict=True)
    return [StepTimeDocument(rank=int(r), number=int(n), seconds=float(s), complete=bool(c), kind=k) for r, n, s, c, k in rows]


def _summary(
    trace: Trace, card: NpuSpec | None, seen: Seen | None, account: AccountDocument | None, found: list[FindingDocument]
) -> SummaryDocument:
    devices = list(dict.fromkeys(name for rank in trace.ranks for name in rank.devices if name))
    world = next((rank.world_size for rank in trace.ranks if rank.world_size), None)
    step = None if seen is None else float(np.median(seen.graph.measured_step_s[kept_steps(seen.graph.step_complete)]))
    marked = len(trace.steps) > 0
    return SummaryDocument(
        headline=_headline(trace, card, step, account, found),
        devices=devices,
        card=card.name if card else None,
        ranks=len(trace.ranks),
        world_size=world,
        steps=len(seen.graph.step_numbers) if seen is not None and marked else 0,
        step_s=step,
        microbatches=None if seen is None else microbatch_count(seen),
    )


PARTS = ("compute", "exposed_communication", "exposed_copy", "host", "waiting", "idle")


def _headline(trace: Trace, card: NpuSpec | None, step: float | None, account: AccountDocument | None, found: list[FindingDocument]) -> str:
    """Say what a step is spent on, and what to look at first."""
    where = f" on {card.name}" if card else ""
    ranks = f" of {len(trace.ranks)} ranks" if len(trace.ranks) > 1 else ""
    if step is None or account is None or account.step_s <= 0:
        return f"{units.count(len(trace.events), 'event')}{ranks}{where}: nothing to account for"
    parts = account.model_dump()
    shares = sorted(((parts[f"{name}_s"] / account.step_s, name.replace("_", " ")) for name in PARTS), reverse=True)
    spent = ", ".join(f"{share:.0%} {name}" for share, name in shares if share >= 0.005)
    count = len(np.unique(trace.steps.number))
    what = f"{count} step{'s' if count > 1 else ''}{ranks}, median" if count else f"whole recording{ranks},"
    worst = next((one for one in found if one.cost_s > 0 or one.code.startswith("faster")), None)
    look = f"; look first at {worst.code} ({worst.share:.1%} of a step)" if worst is not None and worst.share >= 0.005 else ""
    return f"{what} {units.format(step, 's', 4)}{where}: {spent}{look}"
