"""Ranks and links of a job as documents."""

from __future__ import annotations

from pydantic import Field

from workbench.study.document import Document, Maybe


class RankDocument(Document):
    """One rank: its clock, and its messages as recorded, split where all members are recorded."""

    rank: int
    path: str
    clock_reference: int = Field(description="rank whose clock it is compared with")
    clock_offset_s: float = Field(description="its clock less that of the reference")
    clock_uncertainty_s: Maybe = Field(description="median distance of the common ends from the fit; null without common ends")
    clock_drift: float = Field(description="seconds a second; 0 where the ends support none")
    common_ends: int
    messages: int
    matched: int
    recorded_s: float
    waiting_s: float = Field(description="until the last member arrived, over matched messages")
    transfer_s: float = Field(description="the rest of matched messages")
    caused_s: float = Field(description="what the others waited for it, being the last to arrive")
    caused_share: Maybe = Field(description="of all waiting; null where nobody waited")


class LinkDocument(Document):
    """A process group and kind of message, or a pair of ranks."""

    name: str
    kind: str
    ranks: int
    messages: int
    bytes: float = Field(description="sum over messages of the larger buffer of one rank")
    transfer_s: float = Field(description="sum over messages, from the last arrival to the last end")
    algorithm_bandwidth: Maybe = Field(description="bytes by transfer [B/s]")
    bus_bandwidth: Maybe = Field(description="the same by what a ring moves over each link [B/s] (nccl-tests, doc/PERFORMANCE.md)")
    slowest_number: int = Field(description="number within the group of the slowest large message (-1: not recorded)")
    slowest_bytes: float
    slowest_bandwidth: Maybe = Field(description="algorithm bandwidth [B/s]")
    slowest_at_s: float = Field(description="when it began, on the common clock, since the first event")


class RanksDocument(Document):
    """What the ranks of a job have to do with each other."""

    ranks: list[RankDocument]
    links: list[LinkDocument] = Field(description="the slowest first, by bus bandwidth")
