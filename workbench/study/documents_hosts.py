"""Document of ``workbench hosts``."""

from __future__ import annotations

from pydantic import Field

from workbench.study.document import Document


class FigureDocument(Document):
    """A kind of host work on both machines."""

    kind: str
    first: float = Field(description="1 for work; seconds of a call")
    second: float = Field(description="over the first for work; seconds of a call")
    ratio: float = Field(description="second over first")
    spread: float = Field(description="relative uncertainty of the next program, 80 %")
    seconds: bool = Field(description="whether the figures are seconds of one call")


class ProgramDocument(Document):
    """One program recorded on both machines."""

    first: str
    second: str
    alike: float = Field(description="share of operators the two recordings have in common")
    ratio: dict[str, float] = Field(description="second over first by kind")


class HostsDocument(Document):
    """Output of ``workbench hosts --json``."""

    first: str
    second: str
    figures: list[FigureDocument]
    programs: list[ProgramDocument]
    out: list[str] = Field(description="files written")
