"""Two recordings side by side: what got slower, and by how much of the step."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

import numpy as np
import xarray as xr

from workbench import units
from workbench.errors import Note, Refused
from workbench.study.alignment import Pair, align
from workbench.study.compare_notes import notes_on
from workbench.study.compare_ranks import compared_ranks, rank_pairs, ranks_in
from workbench.study.compare_summary import summary
from workbench.study.compare_table import to_dataset
from workbench.study.documents_compare import (
    CategoryDocument,
    ComparisonDocument,
    DifferenceDocument,
    HostDocument,
    KernelDocument,
    OperatorPairDocument,
    OperatorSideDocument,
    SideDocument,
)
from workbench.study.one_step import ACCOUNT, CHAIN, COUNTED, UNIONS, OneStep, Row, pick_step, step_times_of, take_apart
from workbench.study.report import note_documents
from workbench.study.steps import period
from workbench.study.workload import Workload
from workbench.trace.trace import Trace

VENDOR = re.compile(r"^(cuda|cu|hip|mtia|musa|acl(rt)?)(?=[A-Z])")
"""How runtimes begin the names of their calls: two vendors' calls are laid side by side without it."""
LAUNCHES = "launch calls"


def compare_traces(a: Trace | Workload, b: Trace | Workload, step: str | int = "median", rank: int | None = None) -> xr.Dataset:
    """Compare one step of two recordings: before and after a change, or card A and card B.

    Parameters
    ----------
    a, b : Trace or Workload
        What `open_trace` returns.
    step : "median" or int
        The complete step nearest to the median, or the step of this number in both.
    rank : int, optional
        Whose step is compared; else, of the ranks both have, the one whose change is nearest to the median of all ranks' changes.

    Returns
    -------
    Dataset
        Dimension ``operator`` (largest effect on the step first) with label, kind, aligned_by, a_count, b_count, a_s, b_s and delta_s
        (time in the step [s], hidden or not; 0 where a side has none), effect_s (change on the chain of work that ends the step [s]);
        dimension ``part`` with a_part_s, b_part_s, delta_part_s, which add up to the step [s]; dimension ``link`` with a_chain_s,
        b_chain_s, delta_chain_s, the chain by what it is, lags included, which add up to the step as well; dimension ``category`` with
        a_number, b_number, a_total_s, b_total_s; dimension ``rank`` with a_rank_s, b_rank_s, the median steps of ranks both have;
        scalars a_step_s, b_step_s, delta_step_s; attributes ``summary`` and ``notes``.

    Raises
    ------
    Refused
        A step or rank that is not there, or a recording that holds nothing to replay.
    """
    return to_dataset(comparison(a, b, step, rank))


def comparison(a: Trace | Workload, b: Trace | Workload, step: str | int = "median", rank: int | None = None) -> ComparisonDocument:
    """Return the comparison of `compare_traces` as the document of ``workbench compare --json``."""
    loads = _workload(a), _workload(b)
    ranks = rank_pairs(*loads)
    chosen = compared_ranks(*loads, ranks, rank)
    first, second = (take_apart(load, pick_step(load, step, one)) for load, one in zip(loads, chosen, strict=True))
    sides = _side(loads[0], first), _side(loads[1], second)
    other_card = sides[0].devices[:1] != sides[1].devices[:1]
    pairs = align(first.rows, second.rows, other_card)
    documents = [_pair(pair, first.step_s) for pair in pairs]
    operators = sorted(documents, key=lambda row: (-_weight(row.effect_share), -abs(row.delta_s), row.label, row.aligned_by))
    chain = _differences(CHAIN, first.chain_s, second.chain_s)
    aligned = _aligned(pairs)
    return ComparisonDocument(
        summary=summary(first.step_s, second.step_s, operators, chain),
        a=sides[0],
        b=sides[1],
        delta_s=second.step_s - first.step_s,
        ratio=_over(second.step_s, first.step_s),
        ranks=ranks,
        account=_differences(ACCOUNT, first.account, second.account),
        device=_differences(UNIONS, first.account, second.account),
        chain=chain,
        categories=[_category(name, first.counts[name], second.counts[name]) for name in COUNTED],
        operators=operators,
        host=_host(first, second),
        aligned=aligned,
        notes=note_documents([*notes_on(*sides, pairs, aligned, rank is None), *_own_notes(loads)]),
    )


def _workload(given: Trace | Workload) -> Workload:
    load = Workload(given) if isinstance(given, Trace) else given
    if not isinstance(load, Workload):
        raise Refused("compare_traces", f"a {type(given).__name__} is not a recording", "pass what open_trace returns")
    if not (load.graph.measured_step_s > 0).any():
        raise Refused(load.path, "the recording holds no host or device work", "record a window with at least one operator")
    return load


def _side(load: Workload, one: OneStep) -> SideDocument:
    times = step_times_of(load, one.rank)
    return SideDocument(
        path=load.path,
        devices=list(dict.fromkeys(name for rank in load.trace.ranks for name in rank.devices)),
        ranks=ranks_in(load),
        rank=one.rank,
        step=one.number,
        step_s=one.step_s,
        steps=len(times),
        median_s=float(np.median(times)),
        low_s=float(times.min()),
        high_s=float(times.max()),
        period_s=period(load.graph, load.measured_timeline),
        flops=sum(row.flops for row in one.rows),
    )


def _over(value: float, by: float) -> float | None:
    return value / by if by else None


def _weight(share: float | None) -> float:
    """Return the size of a share of the step to a part in a thousand: what is below it does not decide an order."""
    return round(abs(share or 0.0), 3)


def _differences(names: Sequence[str], a: dict[str, float], b: dict[str, float]) -> list[DifferenceDocument]:
    return [DifferenceDocument(name=name, a_s=a[name], b_s=b[name], delta_s=b[name] - a[name]) for name in names]


def _category(name: str, a: tuple[int, float], b: tuple[int, float]) -> CategoryDocument:
    return CategoryDocument(
        name=name, a_s=a[1], b_s=b[1], delta_s=b[1] - a[1], a_count=a[0], b_count=b[0], delta_count=b[0] - a[0]
    )  # fmt: skip


def _host(a: OneStep, b: OneStep) -> list[HostDocument]:
    """Return the host's activity by name, the largest effect on the step first; calls of two vendors by their common name."""
    found: dict[tuple[str, str], list[tuple[int, float, float]]] = {}
    names: dict[tuple[str, str], list[str]] = {}
    vendors = [{match[0] for _, name in side.host if (match := VENDOR.match(name))} for side in (a, b)]
    differ = bool(vendors[0] and vendors[1] and not vendors[0] & vendors[1])
    for at, side in enumerate((a, b)):
        for (part, name), values in side.host.items():
            key = part, _common(part, name) if differ else name
            sums = found.setdefault(key, [(0, 0.0, 0.0), (0, 0.0, 0.0)])
            count, seconds, chain = sums[at]
            sums[at] = count + values[0], seconds + values[1], chain + values[2]
            names.setdefault(key, []).append(name)
    out = []
    for key, (x, y) in found.items():
        label = " | ".join(dict.fromkeys(names[key]))
        out.append(HostDocument(**_category(label, x[:2], y[:2]).model_dump(), part=key[0], effect_s=y[2] - x[2]))
    return sorted(out, key=lambda row: (-abs(row.effect_s), -abs(row.delta_s), row.part, row.name))


def _common(part: str, name: str) -> str:
    """Return a call's name without its vendor's prefix; all ways to launch a kernel are one."""
    if name.startswith("after "):
        return f"after {VENDOR.sub('', name.removeprefix('after '))}"
    bare = VENDOR.sub("", name)
    return "launch of a kernel" if part == LAUNCHES and "LaunchKernel" in bare else bare


def _pair(pair: Pair, step_s: float) -> OperatorPairDocument:
    a, b = _one_side(pair.a), _one_side(pair.b)
    delta = (b.total_s if b else 0.0) - (a.total_s if a else 0.0)
    effect = (b.chain_s if b else 0.0) - (a.chain_s if a else 0.0)
    kind = (pair.a or pair.b)[0].kind
    names = sorted({row.name for row in (*pair.a, *pair.b)})
    return OperatorPairDocument(
        label=names[0] if len(names) == 1 else " | ".join(names) if len(names) == 2 else f"{kind} ({units.count(len(names), 'name')})",
        kind=kind,
        aligned_by=pair.by,
        a=a,
        b=b,
        delta_s=delta,
        share=_over(delta, step_s),
        effect_s=effect,
        effect_share=_over(effect, step_s),
    )


def _one_side(rows: tuple[Row, ...]) -> OperatorSideDocument | None:
    if not rows:
        return None
    kernels: dict[str, tuple[int, float]] = {}
    for row in rows:
        for name, (launches, seconds) in row.kernels.items():
            before = kernels.get(name, (0, 0.0))
            kernels[name] = before[0] + launches, before[1] + seconds
    count, total = sum(row.count for row in rows), sum(row.seconds for row in rows)
    longest = sorted(kernels.items(), key=lambda item: (-item[1][1], item[0]))
    return OperatorSideDocument(
        names=sorted({row.name for row in rows}),
        dtypes=sorted({row.dtype for row in rows}),
        shapes=list(dict.fromkeys(row.shapes for row in rows if row.shapes)),
        count=count,
        each_s=_over(total, count),
        total_s=total,
        chain_s=sum(row.chain_s for row in rows),
        flops=sum(row.flops for row in rows),
        kernels=[KernelDocument(name=name, launches=launches, seconds=seconds) for name, (launches, seconds) in longest],
    )


def _aligned(pairs: Iterable[Pair]) -> dict[str, float]:
    """Return the share of both sides' operator time by how it was aligned, the largest first."""
    out: dict[str, float] = {}
    for pair in pairs:
        out[pair.by] = out.get(pair.by, 0.0) + sum(row.seconds for row in (*pair.a, *pair.b))
    whole = sum(out.values())
    return {by: seconds / whole for by, seconds in sorted(out.items(), key=lambda item: -item[1])} if whole > 0 else {}


def _own_notes(loads: tuple[Workload, Workload]) -> list[Note]:
    """Return what was tolerated on either side."""
    return [
        Note(note.code, f"{side}: {note.where}", note.count, note.text, note.fix)
        for side, load in zip("AB", loads, strict=True)
        for note in dict.fromkeys((*load.trace.notes, *load.graph.notes))
    ]
