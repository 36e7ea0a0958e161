"""The numbers of a comparison as a labelled dataset."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import xarray as xr

from workbench.study.document import Document
from workbench.study.documents_compare import ComparisonDocument

SECOND = {"units": "s"}


def to_dataset(document: ComparisonDocument) -> xr.Dataset:
    """Label the numbers of a comparison (see `workbench.study.compare_traces.compare_traces`)."""
    rows = document.operators

    def column(side: str, name: str) -> np.ndarray:
        return np.array([getattr(getattr(row, side), name) if getattr(row, side) else 0 for row in rows])

    def numbers(of: Sequence[Document], name: str) -> np.ndarray:
        return np.array([getattr(part, name) for part in of], dtype=float)

    data: dict[str, object] = {
        name: ("operator", np.array([getattr(row, name) for row in rows], dtype=object)) for name in ("label", "kind", "aligned_by")
    }
    for side in "ab":
        data[f"{side}_count"] = ("operator", column(side, "count").astype(int), {"units": "1"})
        data[f"{side}_s"] = ("operator", column(side, "total_s").astype(float), SECOND)
        data[f"{side}_number"] = ("category", numbers(document.categories, f"{side}_count").astype(int), {"units": "1"})
        data[f"{side}_total_s"] = ("category", numbers(document.categories, f"{side}_s"), SECOND)
        data[f"{side}_rank_s"] = ("rank", numbers(document.ranks, f"{side}_s"), SECOND)
        data[f"{side}_step_s"] = ((), getattr(document, side).step_s, SECOND)
    for name in ("delta_s", "effect_s"):
        data[name] = ("operator", numbers(rows, name), SECOND)
    for dim, word, parts in (("part", "part", document.account), ("link", "chain", document.chain)):
        for field in ("a", "b", "delta"):
            data[f"{field}_{word}_s"] = (dim, numbers(parts, f"{field}_s"), SECOND)
    data["delta_step_s"] = ((), document.delta_s, SECOND)
    coords = {
        "operator": np.arange(len(rows)),
        "part": [part.name for part in document.account],
        "link": [part.name for part in document.chain],
        "category": [row.name for row in document.categories],
        "rank": np.array([pair.rank for pair in document.ranks], dtype=int),
    }
    notes = "\n".join(f"{note.where}: {note.text}" for note in document.notes)
    return xr.Dataset(data, coords, {"summary": document.summary, "notes": notes})
