"""Output of ``workbench inspect --json``: facts as recorded, and what a person wants to know of them."""

from __future__ import annotations

from pydantic import ConfigDict, Field

from workbench.study.document import Document, Maybe, NoteDocument
from workbench.study.documents_health import FindingDocument
from workbench.study.documents_memory import MemoryDocument
from workbench.study.documents_ranks import RanksDocument


class Facts(Document):
    """Counts and sums of one trace as recorded, in integer nanoseconds; nothing is cleaned or clipped."""

    model_config = ConfigDict(extra="allow", allow_inf_nan=False)

    events: int
    complete_events: int
    cats: dict[str, int] = Field(description="complete events by category")
    flows: dict[str, int]
    span_ns: int | None = Field(description="first start to last end, the Trace record left out")
    neg_dur: int
    zero_dur: int
    x_without_dur: int
    profiler_steps: list[tuple[int, int]] = Field(description="step number, duration [ns]")
    gpu_events: int
    kernels: int
    memcpy: int
    memset: int
    comm_kernels: int
    per_stream: dict[str, dict[str, int]] = Field(description="by device/stream")
    total_gpu_dur_ns: int
    total_kernel_dur_ns: int
    gpu_span_ns: int
    busy_ns: int = Field(description="union over streams of kernels, copies and sets")
    idle_ns: int
    compute_ns: int = Field(description="union of kernels that are no communication by name")
    comm_ns: int = Field(description="union of communication kernels by name; *_by_args: by arguments first")
    mem_ns: int
    comm_overlap_compute_ns: int
    exposed_comm_ns: int
    gpu_with_correlation: int
    gpu_matched_to_runtime: int
    distinct_gpu_correlations: int
    runtime_dup_correlations: int
    max_gpu_events_per_correlation: int
    launch_before_kernel_violations: int
    same_stream_overlaps: int
    max_same_stream_overlap_ns: int
    rank: int | None
    world_size: int | None
    base_time_ns: int | None
    displayTimeUnit: str | None


class AccountDocument(Document):
    """Mean account of the steps that count [s]; the first six add up to ``step_s``."""

    compute_s: float
    exposed_communication_s: float
    exposed_copy_s: float
    host_s: float
    waiting_s: float
    idle_s: float
    step_s: float
    communication_s: float
    device_busy_s: float


class StepTimeDocument(Document):
    """One recorded step."""

    rank: int
    number: int
    seconds: float
    complete: bool
    kind: str = Field(description="typical, warm-up, outlier or incomplete")


class TopDocument(Document):
    """Device work (or host work, where no device is recorded) of one unique operator, mean of a step."""

    name: str
    signature: str
    kind: str
    dtype: str
    stage: str = Field(description="phase that takes most of its time, with its share where it is not all")
    count: float = Field(description="executions in a step")
    seconds: float = Field(description="in a step")
    share: float = Field(description="of all operator time")
    of_roof: Maybe = Field(description="time the card's roofs allow over recorded time; null without card or formula")


class PhaseDocument(Document):
    """Device time (host time, where no device is recorded) of one phase of the mean step."""

    phase: str
    seconds: float = Field(description="sum over streams")
    share: float = Field(description="of all such time")
    compute_s: float
    communication_s: float
    copy_s: float
    pieces: float = Field(description="kernels, copies and sets in a step")
    proven: float = Field(description="share of it that autograd, an annotation or a module's frame proves; the rest is likely")


class LayerDocument(Document):
    """Layers of one kind; times of the mean step."""

    family: str = Field(description="class of the module, or a letter where only repetition tells")
    layers: int
    basis: str = Field(description="module or repetition")
    seconds: float
    share: float
    forward_s: float
    backward_s: float
    slowest: str = Field(description="layer that takes longest, and by how much of the median")


class SummaryDocument(Document):
    """The recording in one line."""

    headline: str
    devices: list[str]
    card: str | None = Field(description="of the catalogue, where recognised or named")
    ranks: int
    world_size: int | None
    steps: int
    step_s: Maybe = Field(description="median of the complete steps")
    microbatches: int | None = Field(description="backward passes a step; null where none are recorded")


class InspectDocument(Document):
    """Output of ``workbench inspect --json``."""

    traces: dict[str, Facts]
    summary: SummaryDocument
    account: AccountDocument | None = Field(description="of the mean step; null where there is nothing to account for")
    steps: list[StepTimeDocument]
    phases: list[PhaseDocument]
    layers: list[LayerDocument]
    operators: list[TopDocument] = Field(description="all, the largest first")
    memory: list[MemoryDocument] = Field(description="by device; empty without execution traces, which name the storages")
    findings: list[FindingDocument] = Field(description="first what may be wrong, then by cost")
    ranks: RanksDocument | None = Field(default=None, description="of several ranks: who waits for whom, and how fast the links are")
    notes: list[NoteDocument]
