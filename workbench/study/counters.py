"""Hardware counters beside the model: which unit each says is busy, where they disagree most, weighted by time.

A unit's busy fraction is of the kernel's time: the counters' of the measured, the model's of its own. ``transfer`` (Ascend's MTE2, MTE3
and FIXPIPE) moves between a core and all that lies outside, so the model's counterpart is the slower of shared level and memory.
"""

from __future__ import annotations

import csv
import os
import re
from collections.abc import Mapping
from dataclasses import replace

import numpy as np

from workbench import units
from workbench.cost.choices import FREE, Choices
from workbench.cost.cost import Bound, OpCost
from workbench.cost.estimate import estimate
from workbench.errors import Note, Refused
from workbench.hardware.npu import NpuSpec
from workbench.operators.counters import LEVELS, UNITS, Counters, is_counter
from workbench.operators.described import MATRIX_KINDS
from workbench.operators.profiles import from_profile, is_profile
from workbench.operators.table import Kind
from workbench.operators.words import word
from workbench.study.documents_counters import CounterDocument, CounterKindDocument, CountersDocument
from workbench.study.operators_csv import Operators, operators_of
from workbench.study.report import note_documents
from workbench.study.verdict import COMPARED, WAITING, verdict

_BOUNDS = {"matrix": Bound.MATRIX, "vector": Bound.VECTOR, "local": Bound.LOCAL, "shared": Bound.SHARED, "memory": Bound.MEMORY}
WORK = 1.5  # counted over stated FLOPs that is worth a note


def compare_counters(counters: Counters, spec: NpuSpec, operators: Operators | None = None, choices: Choices = FREE) -> CountersDocument:
    """Put the counters of a profile beside the model of a card.

    Parameters
    ----------
    counters : Counters
        What `workbench.operators.counters.read_counters` returns.
    spec : NpuSpec
        The card they were recorded on.
    operators : Operators, optional
        The operators of the kernels, where the profile has no shapes (Nsight Compute): matched by a column ``kernel`` that holds
        kernel names or what they begin with, else in the order of the launches.
    choices : Choices
        What is fixed of how operators run, and what is warm.

    Returns
    -------
    CountersDocument

    Raises
    ------
    Refused
        No kernel at all, or operators that cannot be matched with the kernels.
    """
    if not len(counters.seconds):
        raise Refused(counters.sheet.path, "a header, but no kernel", "export the counters again, with the rows")
    place, found, notes = _placed(counters, operators)
    cost = estimate(found.table, [spec], choices=choices) if found is not None else None
    names = _names(counters)
    rows = [_row(counters, at, names[at], place.get(at), found, cost) for at in range(len(counters.seconds))]
    judged = [(row, row.measured_s or 0.0) for row in rows if row.agree is not None]
    total, weight = sum(row.measured_s or 0.0 for row in rows), sum(seconds for _, seconds in judged)
    order = sorted(
        (at for at, row in enumerate(rows) if row.agree is False),
        key=lambda at: -(rows[at].measured_s or 0.0) * (rows[at].difference or 0.0),
    )
    known = np.isfinite(counters.busy).any(axis=0)
    notes += _work_notes(rows, counters)
    if spec.weak:
        notes.append(Note("weak-numbers", spec.name, len(spec.weak), f"weak in the card's description: {'; '.join(spec.weak)}"))
    return CountersDocument(
        npu=spec.name,
        digest=spec.digest,
        file=counters.sheet.path,
        file_digest=counters.sheet.digest,
        tool=counters.tool,
        units=[unit for unit, present in zip(UNITS, known, strict=True) if present],
        rows=rows,
        kinds=_kinds(rows, total),
        disagreements=order,
        agree_share=sum(seconds for row, seconds in judged if row.agree) / weight if weight > 0 else None,
        judged_share=weight / total if total > 0 else 0.0,
        notes=note_documents(notes),
    )


def _placed(counters: Counters, given: Operators | None) -> tuple[Mapping[int, int], Operators | None, list[Note]]:
    """Return the operator of every kernel (row of the sheet to row of the table), and the operators."""
    notes = [*counters.sheet.notes, *counters.notes]
    if given is not None:
        place = _matched(counters, given)
        left = len(counters.seconds) - len(place)
        if left:
            text = "kernels that no row of the operators names are shown without the model"
            notes.append(Note("kernels-unmatched", counters.sheet.path, left, text, "name them in a column kernel"))
        return place, given, [*notes, *given.notes]
    try:
        sheet = from_profile(replace(counters.sheet, notes=()))
        if not is_profile(counters.sheet):
            sheet = replace(
                sheet, header=tuple(f"counter {at}" if is_counter(name, counters.tool) else name for at, name in enumerate(sheet.header))
            )
        found = operators_of(sheet)
    except Refused:
        text = "no kernel has shapes: counters are shown without the model"
        notes.append(Note("counters-without-shapes", counters.sheet.path, len(counters.seconds), text, "give their operators with --ops"))
        return {}, None, notes
    notes += [note for note in found.notes if note.code != "columns-not-used"]
    return {int(row): u for u, row in enumerate(found.row)}, found, notes


def _matched(counters: Counters, given: Operators) -> Mapping[int, int]:
    names = _names(counters)
    lower = [name.lower() for name in given.sheet.header]
    if "kernel" in lower:
        at = lower.index("kernel")
        wanted = [(given.sheet.rows[int(row)][at].strip(), u) for u, row in enumerate(given.row)]
        found = {}
        for row, name in enumerate(names):
            hits = [(len(text), -u) for text, u in wanted if text and (name == text or name.startswith(text) or text in name)]
            if hits:
                found[row] = -max(hits)[1]
        return found
    if len(given.sheet.rows) == len(names):
        return {int(row): u for u, row in enumerate(given.row)}
    what = f"{units.count(len(given.sheet.rows), 'operator')} cannot be matched with {units.count(len(names), 'kernel')} by their order"
    raise Refused(given.sheet.path, what, "give one row a kernel, or a column kernel with the kernels' names")


def _names(counters: Counters) -> list[str]:
    lower = [name.lower() for name in counters.sheet.header]
    at = next((lower.index(name) for name in ("kernel name", "name", "op name", "type", "op type") if name in lower), None)
    return [row[at] if at is not None else f"row {line}" for row, line in zip(counters.sheet.rows, counters.sheet.line, strict=True)]


def _row(counters: Counters, at: int, name: str, u: int | None, found: Operators | None, cost: OpCost | None) -> CounterDocument:
    kind = Kind(found.table.kind[u]) if u is not None and found is not None else _kind(counters, at)
    busy = _counted(counters, at, kind)
    measured = float(counters.seconds[at])
    model_s, model, bound = _modelled(cost, u)
    flops = float(found.table.flops[u]) if u is not None and found is not None else float("nan")
    counted = float(counters.flops[at])
    top, agree, difference, sentence = verdict(busy, model, bound)
    work = counted if counted > 0 else flops
    return CounterDocument(
        line=counters.sheet.line[at],
        name=name,
        kind=kind.name.lower() if kind != Kind.UNKNOWN else None,
        dtype=found.table.signature[u].split("|")[1] if u is not None and found is not None else None,
        signature=found.table.signature[u] if u is not None and found is not None else None,
        measured_s=measured,
        model_s=model_s,
        error=model_s / measured - 1.0 if measured > 0 else None,
        counters=busy,
        model=model or None,
        counter_bound=top,
        model_bound=bound,
        agree=agree,
        difference=difference,
        sentence=sentence,
        rate=dict(zip(LEVELS, counters.rate[at].tolist(), strict=True)),
        flops_rate=work / measured if measured > 0 else None,
        flops_counted=counted,
        flops=flops,
    )


def _kind(counters: Counters, at: int) -> Kind:
    lower = [name.lower() for name in counters.sheet.header]
    columns = [lower.index(name) for name in ("op type", "type", "kernel name", "op name", "name") if name in lower]
    found = next((known for known in (word(counters.sheet.rows[at][column]) for column in columns) if known is not None), None)
    return found.kind if found is not None else Kind.UNKNOWN


def _counted(counters: Counters, at: int, kind: Kind) -> dict[str, float | None]:
    """Return the busy fractions; one of "compute" alone is the matrix or the vector unit's, as the kind says."""
    busy = {unit: float(value) for unit, value in zip(UNITS, counters.busy[at], strict=True) if np.isfinite(value)}
    if "compute" in busy:
        whole = busy.pop("compute")
        if not {"matrix", "vector"} & set(busy):
            busy["matrix" if kind in MATRIX_KINDS else "vector"] = whole
    return dict(busy)


def _modelled(cost: OpCost | None, u: int | None) -> tuple[float, dict[str, float | None], str | None]:
    """Return the model's seconds [s], busy fractions and bound; nan, {} and None without a model."""
    seconds = float(cost.seconds[u, 0]) if cost is not None and u is not None else float("nan")
    if cost is None or u is None or not seconds > 0 or cost.bound[u, 0] == Bound.UNKNOWN:
        return float("nan"), {}, None
    busy: dict[str, float | None] = {name: min(float(cost.resource_s[u, 0, bound]) / seconds, 1.0) for name, bound in _BOUNDS.items()}
    busy["transfer"] = max(busy["shared"] or 0.0, busy["memory"] or 0.0)
    bound = Bound(cost.bound[u, 0])
    return seconds, busy, WAITING if bound in (Bound.LAUNCH, Bound.LATENCY, Bound.NETWORK) else bound.name.lower()


def _kinds(rows: list[CounterDocument], total: float) -> list[CounterKindDocument]:
    out = []
    for kind in dict.fromkeys(row.kind or "unknown" for row in rows):
        own = [row for row in rows if (row.kind or "unknown") == kind and (row.measured_s or 0.0) > 0]
        judged = [row for row in own if row.agree is not None]
        whole, weight = sum(row.measured_s or 0.0 for row in own), sum(row.measured_s or 0.0 for row in judged)
        priced = [row.model_s for row in own if row.model_s is not None]
        out.append(
            CounterKindDocument(
                kind=kind,
                rows=len(own),
                measured_s=whole,
                model_s=sum(priced) if priced else None,
                share=whole / total if total > 0 else 0.0,
                counters={unit: _mean([(row.counters.get(unit), row.measured_s) for row in own]) for unit in _present(own, "counters")},
                model={unit: _mean([((row.model or {}).get(unit), row.measured_s) for row in own]) for unit in COMPARED},
                agree_share=sum(row.measured_s or 0.0 for row in judged if row.agree) / weight if weight > 0 else None,
                judged_share=weight / whole if whole > 0 else 0.0,
                difference=_mean([(row.difference, row.measured_s) for row in own]),
            )
        )
    return sorted(out, key=lambda found: -found.measured_s)


def _present(rows: list[CounterDocument], field: str) -> list[str]:
    return [unit for unit in UNITS if any(unit in (getattr(row, field) or {}) for row in rows)]


def _mean(pairs: list[tuple[float | None, float | None]]) -> float | None:
    """Return the mean of values weighted by seconds, of the pairs that have both."""
    known = [(value, weight) for value, weight in pairs if value is not None and weight]
    whole = sum(weight for _, weight in known)
    return sum(value * weight for value, weight in known) / whole if whole > 0 else None


def _work_notes(rows: list[CounterDocument], counters: Counters) -> list[Note]:
    """Kernels whose counted operations are far from those of their shape: another algorithm, padding, or the wrong shape."""
    kinds = {kind.name.lower() for kind in MATRIX_KINDS}
    far = [
        row for row in rows if row.kind in kinds and row.flops_counted and row.flops and not 1 / WORK < row.flops_counted / row.flops < WORK
    ]
    out = []
    if far:
        row = max(far, key=lambda found: found.measured_s or 0.0)
        ratio = (row.flops_counted or 0.0) / (row.flops or 1.0)
        text = f"counted operations are not those of the shape, {row.name} {ratio:.3g} times: another algorithm, padding, or another shape"
        out.append(Note("counted-work-differs", counters.sheet.path, len(far), text, "compare flops_counted with flops (--json)"))
    silent = sum(not row.counters for row in rows)
    if silent:
        out.append(Note("nothing-counted", counters.sheet.path, silent, "rows without counters (messages, copies, host work)"))
    return out


def write_counters(document: CountersDocument, path: str | os.PathLike[str]) -> None:
    """Write the kernels as CSV, one row each; empty cells where there is no number."""
    with open(path, "w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        plain = [name for name in CounterDocument.model_fields if name not in ("counters", "model", "rate")]
        heads = (
            [f"counted_{unit}" for unit in document.units] + [f"model_{unit}" for unit in COMPARED] + [f"{level}_Bps" for level in LEVELS]
        )
        writer.writerow([*plain, *heads])
        for row in document.rows:
            values = [getattr(row, name) for name in plain]
            values += [row.counters.get(unit) for unit in document.units]
            values += [(row.model or {}).get(unit) for unit in COMPARED] + [row.rate.get(level) for level in LEVELS]
            writer.writerow(["" if value is None else re.sub(r"[\r\n]+", " ", str(value)) for value in values])
