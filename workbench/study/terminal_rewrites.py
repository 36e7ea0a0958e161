"""A study of edits for a terminal."""

from __future__ import annotations

from collections.abc import Iterator

from rich.console import RenderableType
from rich.table import Table
from rich.text import Text

from workbench import units
from workbench.study.documents_rewrites import RewritesDocument, SavingDocument
from workbench.study.rewrites import NOTHING
from workbench.study.terminal_table import PhraseTable

MANY = 10
"""Fewer edits found are said to be all."""


def rewrites_text(document: RewritesDocument, top: int) -> Iterator[RenderableType]:
    """Yield the answer first: what all edits save together, which few give most of it, which cost; then each.

    Parameters
    ----------
    document : RewritesDocument
    top : int
        Most rows.
    """
    base, joint = document.base_step_s, document.joint_step_s
    card = f" on {document.npu}" if document.npu else ""
    saving = sum(one.joint for one in document.rewrites)
    if saving:
        few = "the first alone gives" if document.enough == 1 else f"the first {document.enough} give"
        first = f", {few} 80 % of it" if document.enough < saving else ""
        edits = units.count(saving, "edit")
        yield Text(f"{document.trace}{card}: {_time(base)} -> {_time(joint)} a step with {edits} ({1 - joint / base:.1%} saved{first})")
        kernels = "1 kernel" if document.joint_kernels == 1 else f"{document.joint_kernels:g} kernels"
        yield Text(f"off the device: {kernels} and {_device(document.joint_device_s)} of a step")
    else:
        yield Text(f"{document.trace}{card}: {_time(base)} a step; none of the edits tried saves anything")
    yield from _few(document)
    if document.overlapping:
        yield Text("steps overlap: a step counts from the end of the one before it")
    costly = [saving.rewrite for saving in document.rewrites if saving.own_s < 0]
    if costly:
        yield Text(f"costs more than it saves: {'; '.join(costly[:3])}")
    if document.rewrites:
        yield _table(document.rewrites[:top], base)
        if len(document.rewrites) > top:
            yield Text(f"{len(document.rewrites) - top} more (--top, --json)")
    for refused in document.refused:
        yield Text(f"refused: {refused.rewrite}: {refused.reason}")
    told = {(note.code, note.text) for saving in document.rewrites[:top] for note in saving.notes if note.code == "rewrite-assumed"}
    for _, text in sorted(told):
        yield Text(f"assumed: {text}")


def _few(document: RewritesDocument) -> Iterator[Text]:
    """Yield whether the list is all there is: fewer than `MANY` edits found, or more than were tried."""
    if document.invited is None:
        return
    tried = len(document.rewrites) + len(document.refused)
    if document.invited > tried:
        yield Text(
            f"the recording invites {units.count(document.invited, 'edit')}; {tried} {'was' if tried == 1 else 'were'} tried (--limit)"
        )
    elif document.invited < MANY:
        found = units.count(document.invited, "edit") if document.invited else "no edit"
        yield Text(f"the recording invites {found}, no more: others (drop, split, move, batch) are yours to name with --rewrite")


def _table(savings: list[SavingDocument], base: float) -> Table:
    table = PhraseTable(box=None, pad_edge=False)
    for name in ("edit", "places", "alone", "of step", "together", "kernels off", "device off", ""):
        table.add_column(name, justify="left" if name in ("edit", "") else "right", overflow="fold", no_wrap=name not in ("edit", ""))
    for saving in savings:
        together = _time(saving.joint_s) if saving.joint and saving.joint_s is not None else "-"
        alone = [_time(saving.own_s), f"{saving.own_s / base:+.1%}", together]
        table.add_row(saving.rewrite, str(saving.places), *alone, f"{saving.kernels:g}", _device(saving.device_s), saving.why)
    return table


def _device(seconds: float) -> str:
    return _time(seconds) if abs(seconds) >= NOTHING else "0 s"


def _time(seconds: float) -> str:
    sign = "-" if seconds < 0 else ""
    return sign + units.format(abs(seconds), "s", 3)
