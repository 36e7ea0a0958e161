"""Coverage of a vendor's table, part of the documents of ``estimate`` and ``predict``; what a table of operators leaves out."""

from __future__ import annotations

from pydantic import Field

from workbench.study.document import Document, Maybe


class EvidenceDocument(Document):
    """What part of the predicted time rests on one kind of evidence."""

    evidence: str
    operators: int = Field(description="unique operators")
    seconds: float
    share: float


class UncoveredDocument(Document):
    """Operators of one name and kind that no stated time covers."""

    name: str
    kind: str
    dtype: str
    operators: int
    seconds: float
    share: float
    evidence: str


class IncompleteDocument(Document):
    """A row of the table that prices nothing, the operators it may be about, and how far the total could move were it whole."""

    where: str
    label: str
    dtype: str
    dims: dict[str, int]
    seconds: Maybe
    why: str
    touches: int = Field(description="unique operators without a stated time that the row may be about")
    touched_s: float
    share: float = Field(description="of the predicted time")
    low_s: float = Field(description="change of the total, at least")
    high_s: float = Field(description="change of the total, at most")


class VendorDocument(Document):
    """How a vendor's table covers the operators; totals of times as often as each operator ran."""

    path: str
    rows: int = Field(description="stated times")
    used: int = Field(description="of them, those of an operator here")
    contract: dict[str, str] = Field(description="answers given")
    not_stated: list[str] = Field(description="questions of the contract nobody answered")
    total_s: float
    evidence: list[EvidenceDocument]
    uncovered: list[UncoveredDocument]
    incomplete: list[IncompleteDocument]
    touched_s: float = Field(description="predicted time of all operators that incomplete rows may be about")
    touched_share: float
    low_s: float = Field(description="total of the operators were the rows whole, at least")
    high_s: float = Field(description="... at most")
    step_low_s: Maybe = Field(description="step time at these ends; null where there is no step")
    step_high_s: Maybe


class LeftOutDocument(Document):
    """Rows of a table of operators that give none, and what they could add to the total."""

    rows: int
    without_shape: int
    unnamed: int = Field(description="no rule knows the operator, or it has no name")
    measured_s: float = Field(description="of those with a measured time")
    without_time: int
    share: Maybe = Field(description="of all measured time of the table; null where none is measured")
    low_s: Maybe = Field(description="what they would add: measured time x the 10 % quantile of predicted over measured of the other rows")
    high_s: Maybe = Field(description="... x the 90 % quantile; null where nothing is known of their time")
