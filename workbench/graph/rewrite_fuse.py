"""Fuse: a chain of kernels becomes one. FLOPs add, bytes of intermediates vanish, one launch is left."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from workbench.errors import Refused
from workbench.graph.rewrite import Rewritten, Tally, finished
from workbench.graph.rewrite_attention import attention_of
from workbench.graph.rewrite_chain import PRODUCTS, Chains, Link, anchor, one_anchor
from workbench.graph.rewrite_draft import Draft
from workbench.graph.rewrite_host import Host
from workbench.graph.rewrite_rows import Made, NewRow, Rows, row_of
from workbench.graph.rewrite_view import View
from workbench.operators.table import Dtype, Kind

ASSUMED = "by order and shapes alone, each is taken to read what the one before it writes, and nothing else to (add an execution trace)"
KEPT = "the intermediate is written all the same: its gradient, or a sum around a norm, may read it"
BESIDE = "what the tail of a product reads beside its result (a residual) is taken to arrive while it multiplies"
ATTENTION = "attention"


@dataclass(frozen=True)
class Fuse:
    """Make one kernel of every chain that fits a pattern.

    Parameters
    ----------
    pattern : str
        Neighbours on a stream, ``>`` between them; each an operator's or kernel's name (``*`` is a wildcard), a kind (``gemm``), or
        the name of a module or operator around it; ``+`` at its end: one or more. ``"attention"``: softmax(Q K^T) V.
    keep : bool
        Write the intermediates as well, where something else reads them.
    """

    pattern: str
    keep: bool = False

    @property
    def text(self) -> str:
        """The edit as a person types it."""
        return f"fuse:{self.pattern}" + (",keep" if self.keep else "")

    def apply(self, of: Rewritten) -> Rewritten:
        """Return the recording with its chains fused."""
        tally, rows, draft, view = Tally(self.text), Rows(of.table, of.made), Draft(of.graph), of.view
        host, chains = Host(view), Chains(view)
        if self.pattern == ATTENTION:
            for units, row in attention_of(view, chains, rows, tally):
                fuse_units(draft, host, view, units, _product(view, units), rows.add(row))
                tally.done += 1
            return finished(of, draft, rows, tally)
        for units in occurrences(view, self.pattern):
            links = [chains.link(unit) for unit in units[:-1]]
            kinds = [int(chains.kind[unit]) for unit in units]
            bad = next((link for link in links if not link.legal and not (self.keep and link.nbytes)), None)
            if bad is not None:
                tally.refuse(*bad.reason)
            elif not one_anchor(kinds):
                tally.refuse("two of its members are no elementwise maps", "fuse a shorter chain")
            else:
                self._fuse(draft, host, rows, view, units, links)
                tally.done += 1
                tally.assumed[ASSUMED] += not all(link.known for link in links)
                tally.assumed[BESIDE] += _reads_beside(view, units, links)
                tally.assumed[KEPT] += any(link.kept for link in links) and not self.keep
        tally.assumed = +tally.assumed
        return finished(of, draft, rows, tally)

    def _fuse(self, draft: Draft, host: Host, rows: Rows, view: View, units: Sequence[int], links: Sequence[Link]) -> None:
        kept = [self.keep or link.kept for link in links]
        lead = units[anchor([int(view.table.kind[view.row[unit]]) for unit in units])]
        row = rows.add(fused_row(rows, view, units, links, kept, int(view.row[lead])))
        fuse_units(draft, host, view, units, lead, row)


def _reads_beside(view: View, units: Sequence[int], links: Sequence[Link]) -> bool:
    """Whether the maps after a product read more than what it writes."""
    rows = [int(view.row[unit]) for unit in units]
    tail = float(view.table.bytes_read[rows[1:]].sum()) - sum(link.nbytes for link in links)
    return Kind(view.table.kind[rows[0]]) in PRODUCTS and tail > 0


def _product(view: View, units: Sequence[int]) -> int:
    return max(units, key=lambda unit: float(view.seconds[unit]))


def fuse_units(draft: Draft, host: Host, view: View, units: Sequence[int], lead: int, row: int) -> None:
    """Leave one unit of a chain, which takes over the others' work.

    Parameters
    ----------
    draft : Draft
        Changed.
    host : Host
    view : View
    units : sequence of int
        The chain.
    lead : int
        The one that stays.
    row : int
        Its new row of the table.
    """
    nodes = view.nodes(lead)
    own, whole = float(view.seconds[lead]), float(view.seconds[list(units)].sum())
    draft.column["measured_s"][nodes] *= whole / own if own > 0 else 0.0
    if own <= 0:
        draft.column["measured_s"][nodes] = whole / len(nodes)
    draft.column["op"][nodes] = row
    host.remove(draft, [unit for unit in units if unit != lead])


def fused_row(rows: Rows, view: View, units: Sequence[int], links: Sequence[Link], kept: Sequence[bool], lead: int) -> NewRow:
    """Return the row of a fused chain.

    Parameters
    ----------
    rows : Rows
    view : View
    units : sequence of int
        The chain.
    links : sequence of Link
        Intermediates, one fewer than units.
    kept : sequence of bool
        Which of them are written all the same.
    lead : int
        Row of the member that gives kind, type and dimensions.
    """
    table, members = view.table, [int(view.row[unit]) for unit in units]
    gone = np.array([link.nbytes for link in links])
    read = float(table.bytes_read[members].sum() - gone.sum())
    written = float(table.bytes_written[members].sum() - gone[~np.array(kept)].sum())
    name = " + ".join(table.name[row] for row in members)
    dtype = Dtype(table.dtype[lead])
    shapes = table.signature[lead].removeprefix(f"{table.name[lead]}|{dtype.name.lower()}|")
    mark = " kept" if any(kept) else ""
    made = Made(rows.parts(members), rows.ratio(members) * _ratio(view, members, read, written, lead))
    changes = {"name": name, "signature": f"{name}|{dtype.name.lower()}|{shapes}{mark}", "flops": float(table.flops[members].sum())}
    return row_of(table, lead, made, **changes, bytes_read=max(read, 0.0), bytes_written=max(written, 0.0))


def _ratio(view: View, members: Sequence[int], read: float, written: float, lead: int) -> float:
    """Return what is left of the members' time without a model: that of products, and of the rest in proportion to its bytes."""
    table = view.table
    moved, seconds = (table.bytes_read + table.bytes_written)[list(members)], table.measured_s[list(members)]
    product = np.isin(table.kind[list(members)], PRODUCTS)
    if Kind(table.kind[lead]) in PRODUCTS:
        others = moved[~product].sum()
        left = max(read + written - moved[product].sum(), 0.0) / others if others > 0 else 1.0
        time = seconds[product].sum() + seconds[~product].sum() * min(left, 1.0)
    else:
        time = seconds.sum() * (read + written) / moved.sum() if moved.sum() > 0 else seconds.sum()
    return float(time / seconds.sum()) if seconds.sum() > 0 else 1.0


def occurrences(view: View, pattern: str) -> Iterator[list[int]]:
    """Yield the places where neighbours on a stream match a pattern, none twice.

    Raises
    ------
    Refused
        The pattern names fewer than two neighbours, or something the recording does not hold.
    """
    parts = [part.strip() for part in pattern.split(">")]
    if not all(part.rstrip("+") for part in parts) or (len(parts) == 1 and not parts[0].endswith("+")):
        raise Refused(f"fuse:{pattern}", "not a chain", 'write e.g. "aten::addmm > aten::gelu" or "gemm > elementwise+"')
    hits = [view.matches(part.removesuffix("+").strip()) for part in parts]
    many = [part.endswith("+") for part in parts]
    for part, hit in zip(parts, hits, strict=True):
        if not hit.any():
            known = ", ".join(dict.fromkeys(name[:60] for name in view.table.name[:40]))
            raise Refused(part, "no operator or kernel of the recording has that name", f"use * as a wildcard; it has {known[:300]}")
    at = 0
    while at < len(view):
        units = _match(view, hits, many, at)
        if units:
            yield units
        at = units[-1] + 1 if units else at + 1


def _match(view: View, hits: Sequence[np.ndarray], many: Sequence[bool], start: int) -> list[int]:
    at, out = start, []
    for place, (hit, more) in enumerate(zip(hits, many, strict=True)):
        taken = 0
        while at < len(view) and hit[at] and (at == start or view.resource[at] == view.resource[start]) and (more or not taken):
            if taken and place + 1 < len(hits) and hits[place + 1][at] and not hit[min(at + 1, len(view) - 1)]:
                break  # the last one belongs to the next part
            out.append(at)
            taken += 1
            at += 1
        if not taken:
            return []
    return out if len(out) > 1 else []
