"""Operators of a file priced on one card: seconds with interval, cycle stack, bytes by level, evidence; and the error where measured."""

from __future__ import annotations

import csv
import os
from collections.abc import Mapping
from typing import Any

import numpy as np

from workbench.cost.choices import CHEAPEST, COLD, Choices, Copies
from workbench.cost.cost import LEVELS, Evidence, OpCost, level_names
from workbench.cost.estimate import estimate
from workbench.cost.interpolate import unmatched_notes
from workbench.cost.models import ON_MATRIX, PRODUCTS, item_sizes
from workbench.cost.pack import resolve
from workbench.cost.stack import FASTER, PARTS, stack
from workbench.cost.sustained import assumed
from workbench.cost.tiles import Tile, check_tile
from workbench.cost.utilisation import Utilisation, utilisation
from workbench.cost.vendor import VendorTimes
from workbench.cost.vendor_apply import doubt_notes
from workbench.errors import Note, Refused
from workbench.hardware.npu import NpuSpec
from workbench.operators.table import Dtype
from workbench.study.bulk import in_bulk
from workbench.study.documents_operators import BelowDocument, BufferDocument, EstimateDocument, TimeDocument
from workbench.study.left_out import left_out_document
from workbench.study.operator_rows import time_documents
from workbench.study.operators_csv import Operators
from workbench.study.report import note_documents
from workbench.study.vendor_coverage import vendor_document
from workbench.study.yardsticks import accuracy_documents


@in_bulk()
def price_operators(
    operators: Operators,
    spec: NpuSpec,
    *,
    tile: Tile | None = None,
    algorithm: str = CHEAPEST,
    copies: Copies = COLD,
    sparse: bool = False,
    vendor: VendorTimes | None = None,
    below: float | None = None,
) -> EstimateDocument:
    """Price every operator of a file on a card.

    Parameters
    ----------
    operators : Operators
        What `read_operators` returns.
    spec : NpuSpec
        Card.
    tile : Tile, optional
        Tiling of the matrix products instead of the best one.
    algorithm : {"cheapest", "direct", "implicit", "winograd", "winograd2", "winograd4", "fft"}
        Of convolutions, see `workbench.cost.convolution`.
    copies : Copies
        What is warm, see `workbench.cost.choices`.
    sparse : bool
        Weights of the matrix products have two zeros in every four along K, which are left out.
    vendor : VendorTimes, optional
        Stated times; they take precedence.
    below : float, optional
        List only products that use less than this share of their unit's dense peak; totals are of all rows.

    Returns
    -------
    EstimateDocument
        One row a row of the file, in its order.

    Raises
    ------
    InvalidSpec
        The tile does not fit the card.
    Refused
        A tile without matrix products, or sparse products on a card that states no such rate.
    """
    table = operators.table
    held = _buffers(operators, spec, tile)
    choices = Choices(tile, algorithm, copies, sparse=sparse)
    cost = estimate(table, [spec], vendor=vendor, choices=choices)
    found = stack(table, spec, choices)
    clock = spec.power.sustained_clock or spec.clock
    used = utilisation(table, cost, [spec], sparse=sparse)
    seconds = np.nan_to_num(cost.seconds[:, 0]) * table.count
    listed, few = _below(operators, used, seconds, below)
    rows = dict(zip(operators.row[listed].tolist(), time_documents(operators, cost, found, used, listed, clock), strict=True))
    for left in operators.left_out if few is None else ():
        rows[left.row] = _left_out(operators, left.row, left.name, left.why)
    total = float(seconds.sum())
    shares = {Evidence(code).name.lower(): float(seconds[cost.evidence == code].sum()) for code in np.unique(cost.evidence)}
    unpriced = int(np.isnan(cost.seconds[:, 0]).sum())
    notes = operators.notes + ((*vendor.notes, *unmatched_notes(vendor, table), *doubt_notes(cost, vendor.path)) if vendor else ())
    if unpriced:
        notes += (Note("not-priced", spec.name, unpriced, "no model of this kind or dtype on this card", "give vendor times"),)
    notes += _at_limit(cost, spec)
    if cost.energy_why[0]:
        notes += (Note("energy", spec.name, 1, cost.energy_why[0], "state power.energy, power.vector_energy and memory.<level>.energy"),)
    notes += assumed(spec) + _weak(spec)
    return EstimateDocument(
        npu=spec.name,
        digest=spec.digest,
        file=operators.sheet.path,
        file_digest=operators.sheet.digest,
        tile=None if tile is None else str(tile),
        buffers=held,
        operators=[rows[at] for at in sorted(rows)],
        total_s=total,
        **_energy(operators, cost),
        below=few,
        evidence_share={name: share / total for name, share in shares.items() if total > 0 and share > 0},
        accuracy=accuracy_documents(table, cost, spec),
        vendor_coverage=vendor_document(vendor, table, cost, seconds)[0] if vendor else None,
        left_out=left_out_document(operators, cost.seconds[:, 0]),
        notes=note_documents(notes),
    )


def _weak(spec: NpuSpec) -> tuple[Note, ...]:
    text = f"weak in the card's description: {'; '.join(spec.weak)}"
    return (Note("weak-numbers", spec.name, len(spec.weak), text),) if spec.weak else ()


def _below(operators: Operators, used: Utilisation, seconds: np.ndarray, limit: float | None) -> tuple[list[int], BelowDocument | None]:
    """Return which operators are listed, and how many products fall below a limit of utilisation."""
    if limit is None:
        return list(range(len(seconds))), None
    products = operators.table.among(ON_MATRIX) & np.isfinite(used.compute[:, 0])
    rows = np.flatnonzero(products & (used.compute[:, 0] < limit))
    total = float(seconds.sum())
    share = float(seconds[rows].sum()) / total if total > 0 else 0.0
    return rows.tolist(), BelowDocument(limit=limit, rows=len(rows), products=int(products.sum()), time_share=share)


def _left_out(operators: Operators, row: int, name: str, why: str) -> TimeDocument:
    empty: dict[str, Any] = dict.fromkeys(field for field in TimeDocument.model_fields if field not in ("line", "name", "note"))
    return TimeDocument(line=operators.sheet.line[row], name=name, note=why, **empty)


def _buffers(operators: Operators, spec: NpuSpec, tile: Tile | None) -> list[BufferDocument]:
    if tile is None:
        return []
    products = np.isin(operators.table.kind, PRODUCTS)
    if not products.any():
        raise Refused("tile", "no row is a matrix product", "leave --tile out, or give GEMM rows")
    out = []
    for code in np.unique(operators.table.dtype[products]):
        dtype = Dtype(code).name.lower()
        size = float(item_sizes(operators.table)[operators.table.dtype == code][0])
        for held in check_tile(spec, resolve(spec, dtype), tile, (size, size)):
            out.append(
                BufferDocument(
                    dtype=dtype,
                    level=held.level,
                    holds=held.holds,
                    used_bytes=held.used,
                    size_bytes=held.size,
                    occupancy=held.used / held.size,
                    copies=held.copies,
                )
            )
    return out


def _at_limit(cost: OpCost, spec: NpuSpec) -> tuple[Note, ...]:
    """Say how many operators the power limit holds back, and whether their times show it."""
    if spec.power.tdp is None:
        return ()
    held = int((cost.energy_j[:, 0] >= (1.0 - 1e-9) * spec.power.tdp * cost.seconds[:, 0]).sum())
    acts = bool(spec.power.energy or spec.power.vector_energy) and spec.power.sustained_clock is None
    text = "their clock is lowered" if acts else "by estimated energies; their times hold it only as far as the card's calibration does"
    return (Note("power-limit", spec.name, held, f"operators reach the power limit: {text}"),) if held else ()


def _energy(operators: Operators, cost: OpCost) -> dict[str, float | None]:
    """Return energy [J], mean power [W] and operations a joule of the rows whose energy is known."""
    table = operators.table
    known = np.isfinite(cost.energy_j[:, 0])
    joules, seconds, work = (float((array * table.count)[known].sum()) for array in (cost.energy_j[:, 0], cost.seconds[:, 0], table.flops))
    if not joules > 0:
        return dict.fromkeys(("energy_j", "power_w", "flops_per_joule"))
    return {"energy_j": joules, "power_w": joules / seconds, "flops_per_joule": work / joules}


def write_csv(document: EstimateDocument, path: str | os.PathLike[str]) -> None:
    """Write the operators of an estimate as CSV, one row each; empty cells where there is no number."""
    levels = level_names(max([len(LEVELS), *(len(row.bytes) for row in document.operators if row.bytes)]))
    groups: Mapping[str, tuple[str, tuple[str, ...]]] = {
        "stack": ("share_{}", PARTS), "without_s": ("without_{}_s", FASTER), "bytes": ("{}_bytes", levels)
    }  # fmt: skip
    header: list[str] = []
    for name in TimeDocument.model_fields:
        form, parts = groups.get(name, ("", ()))
        header += [form.format(part) for part in parts] if parts else [name]
    with open(path, "w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        writer.writerow(header)
        for row in document.operators:
            cells: list[object] = []
            for name, value in row.model_dump().items():
                if name in groups:
                    parts = groups[name][1]
                    cells += [(value or {}).get(part) for part in parts]
                else:
                    cells.append(value)
            writer.writerow(["" if cell is None else cell for cell in cells])
