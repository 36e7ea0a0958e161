"""The documents behind every ``--json``: strict JSON, one pydantic model each, their schema published by name."""

from __future__ import annotations

from typing import Any

from pydantic import Field

from workbench.errors import Refused
from workbench.study.document import Document, Maybe, NoteDocument, finite, to_json
from workbench.study.documents_cache import CacheDocument
from workbench.study.documents_collective import CollectivesDocument
from workbench.study.documents_compare import ComparisonDocument
from workbench.study.documents_counters import CountersDocument
from workbench.study.documents_hosts import HostsDocument
from workbench.study.documents_inspect import AccountDocument, Facts, InspectDocument
from workbench.study.documents_models import ModelsDocument
from workbench.study.documents_operators import CalibrationDocument, EstimateDocument
from workbench.study.documents_plan import PlansDocument
from workbench.study.documents_rewrites import RewritesDocument
from workbench.study.documents_scale import ScaleDocument
from workbench.study.documents_vendor import VendorDocument

__all__ = ["AccountDocument", "Document", "Facts", "InspectDocument", "Maybe", "NoteDocument", "finite", "to_json"]


class StepDocument(Document):
    """One step."""

    number: int
    measured_s: float
    predicted_s: float
    complete: bool


class AccountsDocument(Document):
    """Where the step's time goes."""

    measured: AccountDocument
    predicted: AccountDocument


class CoverageDocument(Document):
    """Recorded operator time priced by a vendor time or the model."""

    total_s: float
    shaped_s: float = Field(description="of operators whose shapes were recorded")
    priced_s: float = Field(description="the part of shaped_s priced by vendor or model")
    priced_share: Maybe = Field(description="priced_s / shaped_s; null when no shape was recorded")


class UnpricedDocument(Document):
    """Operators of one name that neither a vendor time nor the model prices."""

    name: str
    measured_s: float
    has_shapes: bool


class OperatorDocument(Document):
    """One unique operator; times of one execution and in total over the recording."""

    name: str
    signature: str
    kind: str
    dtype: str
    stage: str = Field(description="forward, backward, optimizer, input or unknown; with its share where others have a part")
    count: int
    measured_s: Maybe
    predicted_s: Maybe
    low_s: Maybe
    high_s: Maybe
    measured_total_s: float
    predicted_total_s: float
    share: float = Field(description="of the predicted operator time")
    energy_j: Maybe
    bound: str
    evidence: str
    why: str


class LagDocument(Document):
    """One unexplained lag."""

    seconds: float
    where: str
    before: str
    after: str
    kind: str
    critical: bool
    cause: str


class DistributionDocument(Document):
    """How the steps that count scatter; outliers are steps far from the median, of which the first ones are called warm-up."""

    counted: int
    measured_s: tuple[float, float, float] = Field(description="shortest, median, longest")
    predicted_s: tuple[float, float, float]
    warm_up: list[int] = Field(description="numbers of the first steps, as long as they are much longer than the median; they count")
    outliers: list[int] = Field(description="numbers of other steps far from the median; they count, as the median allows")


class RegionDocument(Document):
    """A stretch in which the device waits for the host to launch, one piece of work after another."""

    begin_s: float = Field(description="since the recording began, as predicted")
    end_s: float
    idle_s: float = Field(description="time the device was idle in it")
    launches: int
    step: int
    first: str = Field(description="the first work launched in it")


class LaunchBoundDocument(Document):
    """Share of a step in which the device waits for the host to launch, mean of the steps that count."""

    measured: float
    predicted: float
    longest: list[RegionDocument] = Field(description="of the prediction, at most five")


class EnergyDocument(Document):
    """Energy of a step, mean of the steps that count; null where the card's energies are not known."""

    joules: Maybe
    watts: Maybe = Field(description="mean power over the step")
    flops_per_joule: Maybe = Field(description="operations of the step's operators over its energy: performance per watt")
    assumed: float = Field(description="share of device time of unknown activity, taken to draw as much as the rest")
    why: str = Field(description="what of the card's energies is estimated or missing; empty: all are stated")


class PredictionDocument(Document):
    """The prediction for one trace."""

    step_time_s: float
    measured_step_s: float
    interval_s: tuple[float, float] = Field(description="80 % interval of step_time_s")
    speed_up: Maybe = Field(description="measured_step_s / step_time_s")
    period_s: float = Field(description="time between the ends of successive steps: what a long job pays for each")
    measured_period_s: float
    npu: str | None
    source: str | None
    vendor: bool = Field(description="vendor times were given")
    host: str | None = Field(description="the machine around the card; null: the recording's, of unknown speed on another card")
    source_host: str | None = Field(description="the machine the recording was made on; null: not recognised")
    host_factor: float
    unprofiled_step_s: Maybe = Field(description="step without the profiler as stated; all times are then of the unprofiled job")
    profiler_event_s: float = Field(description="what the profiler cost a host event, taken off the host's time; 0: nothing is taken off")
    anchored: bool
    scale: list[tuple[str, float]] = Field(description="factors the user put on operators, by name pattern")
    rewrites: list[str] = Field(description="edits of the recording, as --rewrite takes them")
    digest: str
    steps: list[StepDocument]
    distribution: DistributionDocument
    launch_bound: LaunchBoundDocument
    account: AccountsDocument
    energy: EnergyDocument
    evidence_share: dict[str, float]
    bound_share: dict[str, float]
    coverage: CoverageDocument | None = Field(description="null when nothing is priced: no card and no vendor times")
    unpriced: list[UnpricedDocument]
    vendor_coverage: VendorDocument | None = Field(description="null without vendor times")
    operators: list[OperatorDocument]
    unexplained_share: float = Field(description="share of the predicted critical path that rests on lags no record explains")
    lags: list[LagDocument]
    notes: list[NoteDocument]


class PredictDocument(Document):
    """Output of ``workbench predict --json``."""

    traces: dict[str, PredictionDocument]
    notes: list[NoteDocument]


class AxisDocument(Document):
    """Coordinate of a sweep."""

    dim: list[str]
    units: str
    values: list[Any]


class SweepDocument(Document):
    """Output of ``workbench sweep --json``; arrays in the C order of ``dims``, null where a cell is invalid."""

    dims: list[str]
    shape: list[int]
    axes: dict[str, AxisDocument]
    base_step_time_s: float
    step_time_s: list[Maybe]
    step_time_low_s: list[Maybe]
    step_time_high_s: list[Maybe]
    speed_up: list[Maybe]
    energy_j: list[Maybe] = Field(description="of a step")
    flops_per_joule: list[Maybe]
    valid: list[bool]
    invalid: dict[str, int] = Field(description="number of cells by reason")
    out: str | None
    notes: list[str]


class CheckDocument(Document):
    """Output of ``workbench check --json``."""

    path: str
    kind: str = Field(description="npu, vendor or trace")
    ok: bool
    name: str | None
    summary: str
    error: str | None
    notes: list[NoteDocument]


SCHEMAS: dict[str, type[Document]] = {
    "inspect": InspectDocument,
    "predict": PredictDocument,
    "sweep": SweepDocument,
    "check": CheckDocument,
    "estimate": EstimateDocument,
    "calibrate": CalibrationDocument,
    "counters": CountersDocument,
    "cache": CacheDocument,
    "collective": CollectivesDocument,
    "compare": ComparisonDocument,
    "hosts": HostsDocument,
    "models": ModelsDocument,
    "plan": PlansDocument,
    "rewrites": RewritesDocument,
    "scale": ScaleDocument,
}


def schema(name: str) -> dict[str, Any]:
    """Return the published JSON schema of a ``--json`` output.

    Raises
    ------
    Refused
        When there is no such output.
    """
    if name not in SCHEMAS:
        raise Refused(name, "no such document", f"use one of {', '.join(SCHEMAS)}")
    return {"$schema": "https://json-schema.org/draft/2020-12/schema", **SCHEMAS[name].model_json_schema()}
