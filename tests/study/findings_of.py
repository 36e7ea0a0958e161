"""Findings of a recording written by hand, by code."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from tests.graph.made import event, write
from workbench.hardware.npu import load_npu
from workbench.study.documents_health import FindingDocument
from workbench.study.health import findings
from workbench.study.seen import Seen
from workbench.study.workload import Workload


def found(folder: Path, events: list[dict[str, Any]], card: str | None = None) -> dict[str, FindingDocument]:
    seen = Seen(Workload(write(folder, events)), load_npu(card) if card else None)
    return {one.code: one for one in findings(seen)}


def step(number: int, start: float, length: float) -> dict[str, Any]:
    return event("user_annotation", f"ProfilerStep#{number}", start, length)
