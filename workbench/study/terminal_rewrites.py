"""A study of edits for a terminal."""

from __future__ import annotations

from collections.abc import Iterator

from rich.console import RenderableType
from rich.table import Table
from rich.text import Text

from workbench import units
from workbench.study.documents_rewrites import RewritesDocument, SavingDocument


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
    count = sum(saving.joint for saving in document.rewrites)
    if count:
        few = f", the first {document.enough} give 80 % of it" if document.enough < count else ""
        yield Text(
            f"{document.trace}{card}: {_time(base)} -> {_time(joint)} a step with {count} edits ({1 - joint / base:+.1%} saved{few})"
        )
    else:
        yield Text(f"{document.trace}{card}: {_time(base)} a step; none of the edits tried saves anything")
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


def _table(savings: list[SavingDocument], base: float) -> Table:
    table = Table(box=None, pad_edge=False)
    for name in ("edit", "places", "alone", "of step", "together", ""):
        table.add_column(name, justify="left" if name in ("edit", "") else "right", overflow="fold", no_wrap=name not in ("edit", ""))
    for saving in savings:
        together = _time(saving.joint_s) if saving.joint and saving.joint_s is not None else "-"
        table.add_row(saving.rewrite, str(saving.places), _time(saving.own_s), f"{saving.own_s / base:+.1%}", together, saving.why)
    return table


def _time(seconds: float) -> str:
    sign = "-" if seconds < 0 else ""
    return sign + units.format(abs(seconds), "s", 3)
