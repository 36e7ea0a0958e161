"""The document of ``workbench collective --json``: collectives of a cluster over size."""

from __future__ import annotations

from pydantic import Field

from workbench.study.document import Document, Maybe, NoteDocument


class CollectiveDocument(Document):
    """One message of one group."""

    line: int | None = Field(description="line of the file; null where sizes were asked for on the command line")
    collective: str
    cards: int = Field(description="members of the group")
    bytes: float = Field(description="whole message of one member [B]")
    seconds: float
    algorithm: str
    protocol: str
    algorithm_bandwidth: float = Field(description="bytes over seconds [B/s]")
    bus_bandwidth: float = Field(description="what a link of a ring would carry, as nccl-tests counts it [B/s]")
    link_load: dict[str, float] = Field(description="share of the busiest link of every tier that is used, at most 1")
    busiest: str = Field(description="tier whose busiest link carries most")
    compressed_s: Maybe = Field(description="the same all-reduce compressed; null where not asked for, or no all-reduce")
    measured_s: Maybe
    error: Maybe = Field(description="seconds over measured - 1")


class RangeDocument(Document):
    """Sizes for which one algorithm and protocol is the fastest of a group's."""

    collective: str
    cards: int
    from_bytes: float
    to_bytes: Maybe = Field(description="null: all larger ones")
    algorithm: str
    protocol: str


class CompressionDocument(Document):
    """Sizes of which compressing an all-reduce takes less time."""

    cards: int
    from_bytes: Maybe = Field(description="null: it never pays")
    to_bytes: Maybe = Field(description="null: all larger ones, or it never pays")


class FabricFitDocument(Document):
    """Scalars of a cluster fitted to the measured messages; errors are of messages left out of the fit."""

    fitted: dict[str, float] = Field(description="by field of the cluster's description")
    rows: int
    before: float = Field(description="median relative error without the fit")
    median: float
    mean: float
    bias: float


class CollectivesDocument(Document):
    """Output of ``workbench collective --json``."""

    cluster: str
    digest: str
    cards: int = Field(description="of the cluster; switches do not count")
    library: str
    rows: list[CollectiveDocument]
    ranges: list[RangeDocument]
    compression: list[CompressionDocument] = Field(description="once a group of an all-reduce; empty where not asked for")
    fit: FabricFitDocument | None
    notes: list[NoteDocument]
