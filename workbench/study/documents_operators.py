"""The documents of commands on files of operators: ``workbench estimate --json`` and ``workbench calibrate --json``."""

from __future__ import annotations

from pydantic import Field

from workbench.study.document import Document, Maybe, NoteDocument


class TimeDocument(Document):
    """One operator on one card; null where nothing prices it (``note`` says why)."""

    line: int = Field(description="line of the file")
    name: str
    kind: str | None
    dtype: str | None
    signature: str | None
    seconds: Maybe
    low_s: Maybe = Field(description="80 % interval")
    high_s: Maybe
    bound: str | None
    next_bound: str | None
    margin: Maybe = Field(description="time of the bounding resource over that of the next one; null where nothing else counts")
    stack: dict[str, float] | None = Field(description="fractions of the model's time, adding up to 1; null where no model prices it")
    without_s: dict[str, Maybe] | None = Field(description="seconds with this part infinitely fast")
    bytes: dict[str, float] | None = Field(description="traffic by level [B]")
    flops: float | None
    energy_j: Maybe = Field(description="idle power while it runs included; null where its work or the card's energies are not known")
    power_w: Maybe = Field(description="energy over time")
    evidence: str | None
    measured_s: Maybe
    error: Maybe = Field(description="predicted / measured - 1")
    note: str


class BufferDocument(Document):
    """What a fixed tile keeps in a buffer of a core [B]."""

    dtype: str
    level: str
    holds: str
    used_bytes: float
    size_bytes: float
    copies: int = Field(description="2: double-buffered")


class AccuracyDocument(Document):
    """Errors of the measured rows of a kind and dtype, as fractions."""

    kind: str
    dtype: str
    rows: int
    mape: float
    median: float
    p90: float
    bias: float
    time_weighted: float
    inside: float = Field(description="share of rows whose measured time lies in the 80 % interval")


class EstimateDocument(Document):
    """Output of ``workbench estimate --json``."""

    npu: str
    digest: str = Field(description="of the card")
    file: str
    file_digest: str
    tile: str | None
    buffers: list[BufferDocument]
    operators: list[TimeDocument]
    total_s: float = Field(description="of the priced rows, each as often as its count")
    energy_j: Maybe = Field(description="of the rows whose energy is known, each as often as its count; null where none is")
    power_w: Maybe = Field(description="their mean power")
    flops_per_joule: Maybe = Field(description="their operations over their energy: performance per watt")
    evidence_share: dict[str, float] = Field(description="of total_s")
    accuracy: list[AccuracyDocument]
    notes: list[NoteDocument]


class FiguresDocument(Document):
    """Errors of one way to predict the same rows, as fractions."""

    mape: float
    median: float
    p90: float
    bias: float
    time_weighted: float


class FitDocument(Document):
    """The fit of one dtype: three scalars, and errors on rows left out of the fit."""

    dtype: str
    rows: int
    folds: int
    compute: float = Field(description="sustained share of the peak")
    memory: float = Field(description="sustained share of the outermost bandwidth")
    launch_s: float
    error: float = Field(description="80 % of left-out rows lie within a factor 1 + error")
    model: FiguresDocument
    calibrated_roofline: FiguresDocument = Field(description="fitted and left out the same way")
    naive_roofline: FiguresDocument = Field(description="peak, bandwidth and no overhead: nothing fitted")
    skill: tuple[float, float, float] = Field(
        description="1 - MAPE of the model / MAPE of the calibrated roofline: 5 %, 50 %, 95 % of a bootstrap"
    )


class CalibrationDocument(Document):
    """Output of ``workbench calibrate --json``."""

    npu: str
    file: str
    file_digest: str
    out: str | None
    fits: list[FitDocument]
    notes: list[NoteDocument]
