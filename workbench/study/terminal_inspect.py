"""A recording as a person's summary in a terminal 100 columns wide: the answer first, the rest on demand."""

from __future__ import annotations

import statistics
from collections.abc import Iterator

from rich.console import RenderableType
from rich.table import Table
from rich.text import Text

from workbench import units
from workbench.study.document import NoteDocument
from workbench.study.documents_health import FindingDocument
from workbench.study.documents_inspect import AccountDocument, InspectDocument, StepTimeDocument
from workbench.study.inspect import PARTS
from workbench.study.terminal import notes_text, percent, seconds, short, table_of
from workbench.study.terminal_facts import file_facts, ranks_text

WORTH = 1e-3
"""Findings that cost a smaller share of the step are counted, not shown, unless they say that something is wrong [1]."""
ALWAYS = ("faster-than", "aliased", "read-", "overlapping", "overflow", "negative", "clock", "stale", "uninitialised")
"""Beginnings of the codes of findings that are shown whatever they cost."""
MOST_STEPS = 6
LINE, WIDE = 84, 100


def inspect_text(document: InspectDocument, most: int = 5, everything: bool = False) -> Iterator[RenderableType]:
    """Yield the summary of a recording; with ``everything`` all rows, and the facts of every file.

    Parameters
    ----------
    document : InspectDocument
    most : int
        Rows of a table.
    everything : bool
    """
    paths = list(document.traces)
    yield Text(", ".join(paths[:3]) + (f" and {len(paths) - 3} more" if len(paths) > 3 else ""), style="bold")
    yield Text(document.summary.headline, style="bold green")
    yield Text(_where(document), style="dim")
    if document.account is not None and document.account.step_s > 0:
        yield _account(document.account)
        if document.steps:
            yield Text(_steps(document.steps))
    if document.phases:
        yield _phases(document)
    yield from _memory(document, everything)
    rows = len(document.findings) if everything else most
    yield from _findings(document.findings, rows, everything)
    if document.operators:
        yield _operators(document, len(document.operators) if everything else most, everything)
    if document.ranks is not None:
        yield from ranks_text(document.ranks, len(document.ranks.links) if everything else most)
    if everything:
        for path, facts in document.traces.items():
            yield from file_facts(path, facts)
    yield from _notes(document.notes, everything)
    if not everything:
        yield Text("--all: every row, what to do about it, and the counts and sums of every file; --json: for programs", style="dim")


def _where(document: InspectDocument) -> str:
    found = document.summary
    devices = ", ".join(found.devices) or "device not named"
    known = f" ({found.card})" if found.card else ""
    world = f" of {found.world_size}" if found.world_size else ""
    counted = list(document.traces.values())
    kernels, copies = sum(f.kernels for f in counted), sum(f.memcpy + f.memset for f in counted)
    device = f"{units.count(kernels, 'kernel')}, {units.count(copies, 'copy or set', 'copies and sets')}"
    work = device if kernels + copies else "no device work"
    events = units.count(sum(f.complete_events for f in counted), "event")
    return f"{devices}{known}; {units.count(found.ranks, 'rank')}{world}; {events}, {work}"


def _account(account: AccountDocument) -> Table:
    table = table_of("where the mean step goes", *(name.replace("_", " ") for name in PARTS), "step", "device busy")
    parts = account.model_dump()
    times = [parts[f"{name}_s"] for name in PARTS]
    table.add_row(*(seconds(value) for value in times), seconds(account.step_s), seconds(account.device_busy_s))
    table.add_row(*(percent(value / account.step_s) for value in (*times, account.step_s, account.device_busy_s)))
    return table


def _steps(steps: list[StepTimeDocument]) -> str:
    """Return the distribution of the steps in a line, odd ones by name."""
    complete = sorted((step for step in steps if step.complete), key=lambda step: step.seconds)
    if len(steps) == 1:
        return "one step"
    ranks = len({step.rank for step in steps}) > 1
    odd = [step for step in steps if step.kind != "typical"]

    def named(step: StepTimeDocument) -> str:
        return f"step {step.number}" + (f" of rank {step.rank}" if ranks else "")

    text = units.count(len(steps), "step")
    if complete:
        middle = statistics.median(step.seconds for step in complete)
        text += f": {seconds(complete[0].seconds)} ({named(complete[0])}) to {seconds(complete[-1].seconds)} ({named(complete[-1])})"
        text += f", median {seconds(middle)}"
    listed = ", ".join(f"{named(step)} {step.kind}, {seconds(step.seconds)}" for step in odd[:MOST_STEPS])
    more = f" and {len(odd) - MOST_STEPS} more" if len(odd) > MOST_STEPS else ""
    return text + (f"; {listed}{more}" if odd else "; none stands out")


def _count(count: float) -> str:
    """Return how often an operator runs in a step; in fewer than all of them a fraction."""
    return f"{count:,.0f}".replace(",", " ") if count >= 10 or count == int(count) else f"{count:.2g}"


def _phases(document: InspectDocument) -> Table:
    title = "phases of the mean step (times summed over streams)"
    if document.summary.microbatches and document.summary.microbatches > 1:
        title += f"; {document.summary.microbatches} microbatches"
    table = table_of(title, "phase", "time", "share", "compute", "messages", "copies", "pieces", "proven")
    for row in document.phases:
        times = (seconds(value) if value > 0 else "-" for value in (row.compute_s, row.communication_s, row.copy_s))
        proven = "-" if row.phase == "unknown" else percent(row.proven)
        table.add_row(row.phase, seconds(row.seconds), percent(row.share), *times, f"{row.pieces:.4g}", proven)
    for layer in document.layers[:3]:
        name = f"  {layer.layers} x {layer.family}" if layer.basis == "module" else f"  {layer.layers} alike ({layer.family})"
        table.add_row(name, seconds(layer.seconds), percent(layer.share), "", "", "", "", f"by {layer.basis}")
    table.columns[0].justify, table.columns[0].no_wrap = "left", True
    return table


def _memory(document: InspectDocument, everything: bool) -> Iterator[Text]:
    """Yield the memory of each device in a line; of several the one that holds most, unless everything is asked for."""
    found = sorted(document.memory, key=lambda one: (one.basis, -one.peak_bytes, one.rank, one.device))
    for one in found if everything else found[:1]:
        first = [(units.format(row.bytes, "B", 3), "held by" if row.resident else "made in", row.made_by) for row in one.held[:2]]
        peak, old, new = (units.format(value, "B", 4) for value in (one.peak_bytes, one.resident_bytes, one.allocated_bytes))
        others = f", the most of {len(found)}" if len(found) > 1 and not everything else ""
        kept = f" of {units.format(one.reserved_peak_bytes, 'B', 4)} reserved" if one.reserved_peak_bytes else ""
        least = "" if one.basis == "allocator" else ", at least"
        text = f"memory of {one.device} (rank {one.rank}{others}){least}: peak {peak}{kept}, {old} older than the recording"
        yield Text(f"{text}; {new} allocated in all; {', '.join(map(' '.join, first))}")


def _findings(findings: list[FindingDocument], most: int, everything: bool) -> Iterator[RenderableType]:
    worth = [one for one in findings if everything or one.share >= WORTH or (one.code.startswith(ALWAYS) and one.certainty != "possible")]
    if not worth:
        yield Text("nothing suspicious" + (f" ({units.count(len(findings), 'finding')} of no cost: --all)" if findings else ""))
        return
    title = f"what looks wrong or costs time ({min(most, len(worth))} of {units.count(len(findings), 'finding')})"
    table = table_of(title, "of a step", "what", wide="what")
    for one in worth[:most]:
        text = Text(f"{one.code} ({one.certainty}): ", style="bold")
        text.append(one.what, style="not bold")
        text.append(f"\n{one.where if everything else _line(one.where)}", style="dim not bold")
        if everything:
            text.append(f"\n-> {one.fix}", style="not bold")
        table.add_row(percent(one.share) if one.cost_s > 0 else "-", text)
    yield table


def _line(text: str, most: int = LINE) -> str:
    """Return text cut to a line of the table, behind its last whole word."""
    if len(text) <= most:
        return text
    kept = text[: most - 3]
    whole = kept.rpartition(" ")[0]
    return f"{whole if len(whole) > most // 2 else kept}..."


def _notes(notes: list[NoteDocument], everything: bool) -> Iterator[RenderableType]:
    """Yield the notes, each on one line unless everything is asked for."""
    if everything or not notes:
        yield from notes_text(notes)
        return
    yield Text("notes", style="bold")
    for code in dict.fromkeys(note.code for note in notes):
        same = [note for note in notes if note.code == code]
        yield Text(_line(f"- {code} ({sum(note.count for note in same)}x): {same[0].text}", WIDE))


def _operators(document: InspectDocument, most: int, everything: bool) -> Table:
    shown = document.operators[:most]
    columns = ("share", "a step", "times", "of roof", "stage", "operator")
    table = table_of(f"largest operators ({len(shown)} of {len(document.operators)})", *columns, wide="operator")
    for row in shown:
        cells = (percent(row.share), seconds(row.seconds), _count(row.count), percent(row.of_roof), row.stage)
        table.add_row(*cells, Text(short(row.signature), no_wrap=not everything, overflow="ellipsis"))
    return table
