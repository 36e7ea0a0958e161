"""Document of ``workbench rewrites --json``."""

from __future__ import annotations

from pydantic import Field

from workbench.errors import Note
from workbench.study.document import Document, Maybe, NoteDocument
from workbench.study.rewrites import RewriteStudy


class SavingDocument(Document):
    """What one edit saves of the step; negative: it costs."""

    rewrite: str = Field(description="as --rewrite takes it")
    places: int = Field(description="where in the recording it applies")
    own_s: float = Field(description="saving alone [s]")
    joint_s: Maybe = Field(description="saving after those before it [s]; null where it cannot be applied after them")
    kernels: float = Field(description="pieces of device work of a step it removes, alone; negative: it adds some")
    device_s: float = Field(description="device time of a step it saves, alone [s]: not all of it shortens the step")
    joint: bool = Field(description="part of the joint step")
    why: str = Field(description="why it is not part of it; empty where it is")
    notes: list[NoteDocument]


class RefusedDocument(Document):
    """An edit that is right nowhere in the recording."""

    rewrite: str
    reason: str


class RewritesDocument(Document):
    """Output of ``workbench rewrites --json``."""

    trace: str
    npu: str | None
    source: str | None
    measured_step_s: float
    base_step_s: float = Field(description="predicted without edits [s]")
    joint_step_s: float = Field(description="predicted with all edits that save [s]")
    joint_kernels: float = Field(description="pieces of device work of a step that all edits that save remove")
    joint_device_s: float = Field(description="device time of a step that all edits that save save [s]")
    invited: int | None = Field(description="edits the recording invites, of which the first --limit were tried; null: not looked for")
    overlapping: bool = Field(description="steps overlap: a step counts from the end of the one before it")
    enough: int = Field(description="how many of the first give 80 % of the joint saving; 0: none saves")
    rewrites: list[SavingDocument]
    refused: list[RefusedDocument]
    notes: list[NoteDocument]


def rewrites_document(path: str, study: RewriteStudy) -> RewritesDocument:
    """Return the document of a study of edits."""
    scenario = study.base.scenario
    kernels, device_s = study.taken_off
    return RewritesDocument(
        trace=path,
        npu=scenario.npu.name if scenario.npu else None,
        source=scenario.source.name if scenario.source else None,
        measured_step_s=study.base.measured_step_s,
        base_step_s=study.base_step_s,
        joint_step_s=study.joint_step_s,
        joint_kernels=kernels,
        joint_device_s=device_s,
        invited=study.invited,
        overlapping=study.by_period,
        enough=study.enough,
        rewrites=[
            SavingDocument(
                rewrite=saving.edit.text,
                places=saving.places,
                own_s=saving.own_s,
                joint_s=saving.joint_s,
                kernels=saving.kernels,
                device_s=saving.device_s,
                joint=not saving.why,
                why=saving.why,
                notes=_notes(saving.notes),
            )
            for saving in study.savings
        ],
        refused=[RefusedDocument(rewrite=text, reason=reason) for text, reason in study.refused],
        notes=_notes(study.base.notes),
    )


def _notes(notes: tuple[Note, ...]) -> list[NoteDocument]:
    return [NoteDocument(code=n.code, where=n.where, count=n.count, text=n.text, fix=n.fix) for n in notes]
