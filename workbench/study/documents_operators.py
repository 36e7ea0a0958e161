"""The documents of commands on files of operators: ``workbench estimate --json`` and ``workbench calibrate --json``."""

from __future__ import annotations

from pydantic import Field

from workbench.study.document import Document, Maybe, NoteDocument
from workbench.study.documents_vendor import LeftOutDocument, VendorDocument


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
    cycles: Maybe = Field(description="of the core clock (the sustained one where it is stated), launch included")
    bound: str | None
    next_bound: str | None
    margin: Maybe = Field(description="time of the bounding resource over that of the next one; null where nothing else counts")
    stack: dict[str, float] | None = Field(description="fractions of the model's time, adding up to 1; null where no model prices it")
    unit: str | None = Field(description="whose peak utilisation counts: matrix or vector")
    utilisation: Maybe = Field(
        description="operations a second over the dense peak of the dtype that ran; above 1 where a transform algorithm does fewer"
    )
    bandwidth_share: Maybe = Field(description="bytes a second over the stated bandwidth of the outermost memory")
    algorithm: str | None = Field(description="of a convolution a model prices; of two gradients both")
    tile: str | None = Field(description="of a matrix product: rows x columns of results a core works on at a time, and x parts of K")
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
    occupancy: float = Field(description="used_bytes / size_bytes")
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
    naive_roofline: float = Field(description="MAPE of peak, bandwidth and no overhead")
    calibrated_roofline: Maybe = Field(
        description="MAPE of a roofline whose three scalars are fitted on these very rows, five-fold by shape; null: too few rows"
    )


class BelowDocument(Document):
    """Products whose utilisation is below a limit: only these are listed."""

    limit: float
    rows: int
    products: int = Field(description="priced operators that are products (attention and convolutions too)")
    time_share: float = Field(description="of total_s")


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
    below: BelowDocument | None = Field(description="null where every row is listed")
    evidence_share: dict[str, float] = Field(description="of total_s")
    accuracy: list[AccuracyDocument]
    vendor_coverage: VendorDocument | None = Field(description="null without vendor times")
    left_out: LeftOutDocument | None = Field(description="null where every row gives an operator")
    notes: list[NoteDocument]


class FiguresDocument(Document):
    """Errors of one way to predict the same rows, as fractions."""

    mape: float
    median: float
    p90: float
    bias: float
    time_weighted: float


class KindFitDocument(Document):
    """How the joint scalars of a dtype predict one kind of operator, on rows left out of the fit."""

    kind: str
    rows: int
    low: Maybe = Field(description="80 % of left-out measured times lie between predicted x (1 + low) and ...; null: too few rows")
    high: Maybe = Field(description="... predicted x (1 + high)")
    inside: Maybe = Field(description="share of rows inside the interval that the other folds give")
    model: FiguresDocument
    alone: FiguresDocument = Field(description="with three scalars fitted on this kind alone")
    alone_compute: float
    alone_memory: float
    alone_launch_s: float
    calibrated_roofline: FiguresDocument = Field(description="three scalars, fitted jointly and left out the same way")
    naive_roofline: FiguresDocument
    skill: tuple[float, float, float] = Field(description="over the calibrated roofline, as of the dtype")


class FitDocument(Document):
    """The fit of one dtype: three scalars for all its kinds of operators, and errors on rows left out of the fit."""

    dtype: str
    rows: int
    sampled: int = Field(description="rows the fit looked at: a hashed sample of each kind; all rows are scored")
    folds: int
    compute: float = Field(description="sustained share of the peak")
    memory: float = Field(description="sustained share of the outermost bandwidth")
    launch_s: float = Field(description="as written to the card")
    fitted_launch_s: float = Field(description="as fitted; the card's own may be written in its place")
    error: float = Field(description="80 % of left-out rows lie within a factor 1 + error")
    model: FiguresDocument
    calibrated_roofline: FiguresDocument = Field(description="fitted and left out the same way")
    naive_roofline: FiguresDocument = Field(description="peak, bandwidth and no overhead: nothing fitted")
    skill: tuple[float, float, float] = Field(
        description="1 - MAPE of the model / MAPE of the calibrated roofline: 5 %, 50 %, 95 % of a bootstrap"
    )
    kinds: list[KindFitDocument]


class CalibrationDocument(Document):
    """Output of ``workbench calibrate --json``."""

    npu: str
    file: str
    file_digest: str
    out: str | None
    fits: list[FitDocument]
    notes: list[NoteDocument]
