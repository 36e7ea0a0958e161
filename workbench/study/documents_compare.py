"""The document of ``workbench compare --json``: one step of recording A beside one of recording B."""

from __future__ import annotations

import csv
import os

from pydantic import Field

from workbench.study.document import Document, Maybe, NoteDocument


class SideDocument(Document):
    """One of the two recordings."""

    path: str
    devices: list[str]
    ranks: list[int]
    rank: int = Field(description="whose step is compared")
    step: int = Field(description="number of the step compared; -1: no step marks, the whole recording")
    step_s: float = Field(description="time of that step: all parts add up to it")
    steps: int = Field(description="complete steps of that rank")
    median_s: float
    low_s: float = Field(description="shortest of these steps")
    high_s: float
    period_s: float = Field(description="time between the ends of successive steps")
    flops: float = Field(description="operations of the step's operators, as far as they are known")


class DifferenceDocument(Document):
    """One quantity on both sides [s]."""

    name: str
    a_s: float
    b_s: float
    delta_s: float = Field(description="b_s - a_s")


class RankPairDocument(Document):
    """Median step of one rank that both recordings have [s]."""

    rank: int
    a_s: float
    b_s: float
    delta_s: float


class CategoryDocument(DifferenceDocument):
    """How often, and how long all of it took; times may overlap."""

    a_count: int
    b_count: int
    delta_count: int


class HostDocument(CategoryDocument):
    """Host activity of one name: its own time, without what it encloses."""

    part: str = Field(description="part of the chain it belongs to")
    effect_s: float = Field(description="change on the chain that ends the step")


class KernelDocument(Document):
    """Device work of one name behind an operator."""

    name: str
    launches: int
    seconds: float


class OperatorSideDocument(Document):
    """An operator on one side; several signatures where calling order, name or kind align."""

    names: list[str]
    dtypes: list[str]
    shapes: list[str]
    count: int
    each_s: Maybe
    total_s: float
    chain_s: float = Field(description="of it on the chain of work that ends the step")
    flops: float
    kernels: list[KernelDocument] = Field(description="longest first")


class OperatorPairDocument(Document):
    """Operators of both sides that stand for the same work; null on the side that has none."""

    label: str
    kind: str
    aligned_by: str
    a: OperatorSideDocument | None
    b: OperatorSideDocument | None
    delta_s: float = Field(description="change of the operator's time in the step, hidden or not")
    share: Maybe = Field(description="delta_s over the step of A")
    effect_s: float = Field(description="change on the chain that ends the step; with the other parts of chain it adds up to the step's")
    effect_share: Maybe = Field(description="effect_s over the step of A")


class ComparisonDocument(Document):
    """Output of ``workbench compare --json``."""

    summary: str
    a: SideDocument
    b: SideDocument
    delta_s: float = Field(description="b.step_s - a.step_s")
    ratio: Maybe = Field(description="b.step_s / a.step_s")
    ranks: list[RankPairDocument] = Field(description="of the ranks both have; the one compared is typical, or was asked for")
    account: list[DifferenceDocument] = Field(description="where the step's time went; adds up to the step")
    device: list[DifferenceDocument] = Field(description="unions over streams, hidden or not: not part of the sum")
    chain: list[DifferenceDocument] = Field(description="the chain of work and lags that ends the step; adds up to the step")
    categories: list[CategoryDocument]
    operators: list[OperatorPairDocument] = Field(description="largest effect on the step first")
    host: list[HostDocument] = Field(description="largest effect on the step first; calls of two vendors' runtimes by their common name")
    aligned: dict[str, float] = Field(description="share of the operator time of both sides by how it was aligned")
    notes: list[NoteDocument]


def write_csv(document: ComparisonDocument, path: str | os.PathLike[str]) -> None:
    """Write the operators of a comparison as CSV, one row each; empty cells where a side has none."""
    fields = ("names", "dtypes", "shapes", "count", "each_s", "total_s", "chain_s", "kernels")
    own = ("label", "kind", "aligned_by", "delta_s", "share", "effect_s", "effect_share")
    with open(path, "w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        writer.writerow([*own, *(f"{side}_{field}" for side in "ab" for field in fields)])
        for row in document.operators:
            cells = [getattr(row, name) for name in own]
            cells += [_cell(getattr(side, field)) if side else "" for side in (row.a, row.b) for field in fields]
            writer.writerow(["" if cell is None else cell for cell in cells])


def _cell(value: object) -> object:
    if not isinstance(value, list):
        return value
    return "; ".join(f"{part.launches} x {part.name}" if isinstance(part, KernelDocument) else str(part) for part in value)
