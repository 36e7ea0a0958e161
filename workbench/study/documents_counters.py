"""The document of ``workbench counters --json``: hardware counters beside the model."""

from __future__ import annotations

from pydantic import Field

from workbench.study.document import Document, Maybe, NoteDocument

Busy = dict[str, Maybe]


class CounterDocument(Document):
    """One kernel: what its counters and what the model say of it; null where one of them says nothing."""

    line: int = Field(description="line of the file")
    name: str
    kind: str | None
    dtype: str | None
    signature: str | None
    measured_s: Maybe
    model_s: Maybe
    error: Maybe = Field(description="model / measured - 1")
    counters: Busy = Field(description="busy fraction of the measured time by unit")
    model: Busy | None = Field(description="busy fraction of the model's time by unit")
    counter_bound: str | None = Field(description="busiest unit; waiting: none of those counted is busy")
    model_bound: str | None
    agree: bool | None = Field(description="null where the counters do not cover what the model says")
    difference: Maybe = Field(description="largest difference of a busy fraction, of the units both know")
    sentence: str
    rate: Busy = Field(description="achieved bytes a second by level [B/s]")
    flops_rate: Maybe = Field(description="achieved operations a second [FLOP/s]: counted, else those of the shape")
    flops_counted: Maybe
    flops: Maybe = Field(description="of the shape")


class CounterKindDocument(Document):
    """All kernels of a kind, weighted by their measured time."""

    kind: str
    rows: int
    measured_s: float
    model_s: Maybe = Field(description="of the rows the model prices")
    share: float = Field(description="of all measured time")
    counters: Busy
    model: Busy
    agree_share: Maybe = Field(description="share of the judged time in which both name the same bound; null: nothing could be judged")
    judged_share: float = Field(description="share of the kind's time that could be judged")
    difference: Maybe = Field(description="mean difference weighted by time")


class CountersDocument(Document):
    """Output of ``workbench counters --json``; ``disagreements`` index ``rows``, the most time first."""

    npu: str
    digest: str = Field(description="of the card")
    file: str
    file_digest: str
    tool: str = Field(description="ascend or nsight")
    units: list[str] = Field(description="units that are counted")
    rows: list[CounterDocument]
    kinds: list[CounterKindDocument]
    disagreements: list[int]
    agree_share: Maybe = Field(description="share of the judged time in which both name the same bound")
    judged_share: float = Field(description="share of the measured time that could be judged")
    notes: list[NoteDocument]
