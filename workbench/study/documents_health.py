"""Findings of the health checks as documents."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from workbench.study.document import Document

Certainty = Literal["certain", "likely", "possible"]


class FindingDocument(Document):
    """One thing an engineer would look into."""

    code: str = Field(description="stable name of the check")
    what: str = Field(description="one sentence")
    where: str = Field(description="operators, calls, steps, streams or ranks")
    count: int
    cost_s: float = Field(description="of a step, mean over the recording [s]: what the finding costs at most, 0 where it is no loss")
    share: float = Field(description="cost_s of the mean step [1]")
    fix: str = Field(description="what to do about it")
    certainty: Certainty = Field(description="certain: recorded; likely: follows from records; possible: one of several explanations")
