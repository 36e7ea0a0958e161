"""What every document of ``--json`` is made of: strict JSON, no unknown keys, null where there is no number."""

from __future__ import annotations

import math
from typing import Annotated

from pydantic import BaseModel, BeforeValidator, ConfigDict

from workbench.errors import Note


def finite(value: object) -> object:
    """Return None for what JSON has no number for."""
    return None if isinstance(value, float) and not math.isfinite(value) else value


Maybe = Annotated[float | None, BeforeValidator(finite)]
"""A number, or null where there is none."""


class Document(BaseModel):
    """Base of all documents: no unknown keys, no NaN."""

    model_config = ConfigDict(extra="forbid", allow_inf_nan=False)


class NoteDocument(Document):
    """Something tolerated on the way to a result."""

    code: str
    where: str
    count: int
    text: str
    fix: str


def note_documents(notes: tuple[Note, ...] | list[Note]) -> list[NoteDocument]:
    """Return notes as documents."""
    return [NoteDocument(code=n.code, where=n.where, count=n.count, text=n.text, fix=n.fix) for n in notes]


def to_json(document: Document) -> str:
    """Return strict JSON text."""
    return document.model_dump_json(indent=2)
