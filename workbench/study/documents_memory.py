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
    """Memory of one device of one rank."""

    rank: int
    device: str
    basis: str = Field(
        description="allocator: its own records (profile_memory); storages: what operators of the execution trace mention, a lower bound"
    )
    peak_bytes: int = Field(description="most that lives at once")
    peak_at_s: float = Field(description="since the first event")
    reserved_peak_bytes: int | None = Field(description="most the allocator kept of the card, used or not; null where not recorded")
    resident_bytes: int = Field(description="of storages older than the recording")
    allocated_bytes: int = Field(description="allocated over the whole recording")
    storages: int = Field(description="storages, or allocations")
    in_place: int | None = Field(description="writes in place; null from the allocator")
    views: int | None
    held: list[HeldDocument] = Field(description="at the peak, the largest first")
    curve: list[tuple[float, int]] = Field(description="time [s] since the first event, bytes that live from then on; at most 200 points")
