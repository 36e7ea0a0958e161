"""Memory of a recording as a document."""

from __future__ import annotations

from pydantic import Field

from workbench.study.document import Document


class HeldDocument(Document):
    """A storage that lives at the peak."""

    bytes: int
    made_by: str = Field(description="operator that allocated it, or mentioned it first")
    resident: bool = Field(description="older than the recording: a parameter, a state, an input")


class MemoryDocument(Document):
    """Memory of one device of one rank: a lower bound from the storages that operators mention."""

    rank: int
    device: str
    peak_bytes: int = Field(description="most that lives at once")
    peak_at_s: float = Field(description="since the first event")
    resident_bytes: int = Field(description="of storages older than the recording")
    allocated_bytes: int = Field(description="allocated over the whole recording")
    storages: int
    in_place: int = Field(description="writes in place")
    views: int
    held: list[HeldDocument] = Field(description="at the peak, the largest first")
    curve: list[tuple[float, int]] = Field(description="time [s] since the first event, bytes that live from then on; at most 200 points")
