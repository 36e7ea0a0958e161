"""Operators on a card, on several, or on every card of a space: labelled in, labelled out."""

from __future__ import annotations

import os
from collections.abc import Callable, Hashable, Iterator
from dataclasses import dataclass, field
from enum import IntEnum
from functools import partial
from typing import Any

import numpy as np
import xarray as xr

from workbench import units
from workbench.cost import estimate as pricing
from workbench.cost.choices import CHEAPEST, COLD, Choices, Copies
from workbench.cost.convolution import algorithm_names
from workbench.cost.cost import LEVELS, Bound, Evidence, OpCost, level_names
from workbench.cost.models import PRODUCTS, item_sizes
from workbench.cost.pack import resolve
from workbench.cost.tiles import Tile, check_tile, parse_tile
from workbench.cost.utilisation import Utilisation, utilisation
from workbench.cost.vendor import VendorTimes
from workbench.errors import Refused, WorkbenchError
from workbench.hardware.npu import NpuSpec
from workbench.operators.table import Dtype, Kind, OpTable
from workbench.study.card_space import CardSpace, card_space
from workbench.study.dataset import VALID, reason_of
from workbench.study.operators_csv import Operators, read_operators
from workbench.study.space import Constraints, check_size

BUDGET = "2 GB"
BLOCK_BYTES = 64e6
"""Most bytes [B] of operator costs alive at once."""
NUMBERS = 8 + len(LEVELS) + len(Bound)
"""Numbers kept of one operator in one cell."""


def estimate(
    operators: OpTable | Operators | str | os.PathLike[str],
    npu: object,
    axes: object = None,
    *,
    constraints: Constraints | None = None,
    vendor: VendorTimes | None = None,
    source: NpuSpec | None = None,
    anchored: bool = False,
    tile: Tile | str | None = None,
    unroll: int | None = None,
    double_buffer: bool | None = None,
    sparse: bool = False,
    algorithm: str = CHEAPEST,
    copies: Copies | float = COLD,
    budget: str | float = BUDGET,
) -> xr.Dataset:
    """Price operators on a card, on several cards or in every cell of a space of cards.

    Parameters
    ----------
    operators : OpTable, Operators or path
        U operators: of a recording, what `read_operators` or `list_operators` returns, or a file that `read_operators` reads.
    npu : NpuSpec, str or sequence of these
        Card, or cards (dimension ``npu``). A mapping or xarray space here stands for ``axes``.
    axes : mapping, Dataset or DataArray, optional
        Axes over the card, as `sweep` takes them (lists, `linspace`, `logspace`, `tied`, formulas); or an xarray space, of which
        every variable and coordinate that names a field of the card sets it (numbers in the unit of its attribute ``units``, else SI).
    constraints : mapping of text to function, optional
        As in `sweep`.
    vendor : VendorTimes, optional
        Stated times; they take precedence.
    source : NpuSpec, optional
        Card the measured times were recorded on.
    anchored : bool
        Price modelled operators as measured x model(card) / model(source).
    tile : Tile or str, optional
        Tiling of matrix products, e.g. ``"128x256x64"``; a card it does not fit makes the cell invalid.
    unroll, double_buffer : int, bool, optional
        Of a tile given as text: steps of K fetched together (default 1), and whether the next arrive while these are worked on
        (default True).
    sparse : bool
        Weights of the matrix products have two zeros in every four along K, which are left out.
    algorithm : {"cheapest", "direct", "implicit", "winograd", "winograd2", "winograd4", "fft"}
        Of convolutions, see `workbench.cost.convolution`.
    copies : Copies or float
        What is warm, see `workbench.cost.choices`; one number holds for operands and results.
    budget : str or float
        Most bytes [B] of the result; larger ones are refused before anything is made.

    Returns
    -------
    Dataset
        Dimensions: ``operator``, one an axis, ``level`` and ``resource``. Variables: seconds, low and high (80 % interval) [s], energy [J]
        (idle power while it runs included), utilisation (share of its unit's dense peak), bandwidth_share, algorithm (of convolutions),
        bytes by level [B], resource_seconds [s], bound, evidence; note by operator; valid and reason by cell (its words are
        ``reason_text``). Nothing is nan but invalid cells, operators that nothing prices (note says why), shares of what takes no time,
        and energies of cards that state none (notes of the dataset). Every cell equals the estimate of its card alone.

    Raises
    ------
    Refused, InvalidSpec, UnreadableInput
        Operators, cards or axes that cannot be read; a single card that does not hold.
    """
    if isinstance(operators, str | os.PathLike):
        operators = read_operators(operators)
    table = operators.table if isinstance(operators, Operators) else operators
    if not isinstance(table, OpTable):
        raise Refused("operators", f"a {type(table).__name__} is no table of operators", "pass what read_operators returns")
    space = card_space(npu, axes, constraints)
    limit = units.parse(budget, "B", "budget") if isinstance(budget, str) else budget
    check_size(dict(zip(space.dims, space.shape, strict=True)) or {"npu": 1}, len(table) * NUMBERS, limit, "numbers")
    warm = (float(copies), float(copies)) if isinstance(copies, int | float) else copies
    chosen = Choices(_tile(tile, unroll, double_buffer), algorithm, warm, sparse=sparse)
    found = _Found.empty(len(table), space.size)
    priced = partial(_costs, table, source=source, vendor=vendor, anchored=anchored, choices=chosen)
    for cells, specs in _blocks(space, found, table, chosen):
        _price(priced, found, cells, specs, single=not space.dims)
    notes = [str(note) for note in (*(operators.notes if isinstance(operators, Operators) else ()), *(vendor.notes if vendor else ()))]
    return _dataset(table, space, found, notes)


def _tile(tile: Tile | str | None, unroll: int | None, double_buffer: bool | None) -> Tile | None:
    if isinstance(tile, str):
        return parse_tile(tile, 1 if unroll is None else unroll, double_buffer is not False)
    if unroll is not None or double_buffer is not None:
        what = "they say how a tile given as text is worked on"
        raise Refused("unroll, double_buffer", what, 'give it with tile, e.g. tile="128x256x64"')
    return tile


@dataclass(eq=False)
class _Found:
    """Results of U operators in C cells."""

    times: np.ndarray  # float64 [6, U, C]: seconds, low, high [s], energy [J], shares of peak and of bandwidth
    level: np.ndarray  # float64 [U, C, L] [B]
    resource: np.ndarray  # float64 [U, C, R] [s]
    codes: np.ndarray  # int8 [3, U, C]: bound, evidence (-1: none), algorithm
    reason: np.ndarray  # int32 [C], index into reasons
    notes: list[dict[str, None]]  # [U], in order
    reasons: list[str] = field(default_factory=lambda: [VALID])
    energies: dict[str, None] = field(default_factory=dict)

    @classmethod
    def empty(cls, rows: int, cells: int) -> _Found:
        """Return results without any cell."""
        full = [np.full(shape, np.nan) for shape in ((6, rows, cells), (rows, cells, len(LEVELS)), (rows, cells, len(Bound)))]
        codes = np.full((3, rows, cells), -1, dtype=np.int8)
        return cls(full[0], full[1], full[2], codes, np.zeros(cells, dtype=np.int32), [{} for _ in range(rows)])

    def refuse(self, cell: int, fault: WorkbenchError) -> None:
        """Mark a cell invalid: it keeps a reason and no number."""
        text = reason_of(fault)
        if text not in self.reasons:
            self.reasons.append(text)
        self.reason[cell] = self.reasons.index(text)

    def take(self, cost: OpCost, used: Utilisation, cells: list[int]) -> None:
        """Keep the costs of some cells."""
        at: Any = slice(cells[0], cells[-1] + 1) if cells[-1] - cells[0] + 1 == len(cells) else cells
        modelled = (cost.evidence == Evidence.MODEL)[:, None] & np.isfinite(cost.seconds)
        share = np.where(modelled, used.memory, np.nan)
        for array, values in zip(self.times, (cost.seconds, cost.low_s, cost.high_s, cost.energy_j, used.compute, share), strict=True):
            array[:, at] = values
        more = cost.level_bytes.shape[2] - self.level.shape[2]
        if more > 0:  # a card with further levels between its cores and the shared one
            self.level = np.concatenate((self.level, np.zeros((*self.level.shape[:2], more))), axis=2)
        self.level[:, at], self.resource[:, at] = 0.0, cost.resource_s
        self.level[:, at, : cost.level_bytes.shape[2]] = cost.level_bytes
        self.codes[0][:, at] = cost.bound
        self.codes[1][:, at] = np.where(np.isfinite(cost.seconds), cost.evidence[:, None], -1)
        self.codes[2][:, at] = np.where(modelled, cost.algorithm, 0)
        for row in np.flatnonzero(cost.note_code):
            self.notes[row][cost.reasons[cost.note_code[row]]] = None
        self.energies |= dict.fromkeys(text for text in cost.energy_why if text)


def _costs(table: OpTable, specs: list[NpuSpec], *, choices: Choices, **more: Any) -> tuple[OpCost, Utilisation]:
    cost = pricing.estimate(table, specs, choices=choices, **more)
    return cost, utilisation(table, cost, specs, sparse=choices.sparse)


def _price(
    priced: Callable[[list[NpuSpec]], tuple[OpCost, Utilisation]], found: _Found, cells: list[int], specs: list[NpuSpec], single: bool
) -> None:
    """Price cells at once; where one of them is refused, in halves, so that it leaves the others as they are."""
    try:
        found.take(*priced(specs), cells)
    except WorkbenchError as fault:
        if single:
            raise
        if len(cells) == 1:
            found.refuse(cells[0], fault)
            return
        middle = len(cells) // 2
        _price(priced, found, cells[:middle], specs[:middle], single)
        _price(priced, found, cells[middle:], specs[middle:], single)


def _blocks(space: CardSpace, found: _Found, table: OpTable, chosen: Choices) -> Iterator[tuple[list[int], list[NpuSpec]]]:
    """Yield cells whose cards hold, with their cards: so many at once as memory allows, and never cards of different names together."""
    size = int(np.clip(BLOCK_BYTES / (8 * NUMBERS * max(len(table), 1)), 16, 4096))
    for first in range(0, space.size, size):
        made: dict[tuple[object, ...], NpuSpec] = {}
        groups: dict[str, tuple[list[int], list[NpuSpec]]] = {}
        for cell in range(first, min(first + size, space.size)):
            try:
                card = space.card(cell, made)
                _check_tile(card, table, chosen.tile)
            except WorkbenchError as fault:
                if not space.dims:
                    raise
                found.refuse(cell, fault)
                continue
            cells, cards = groups.setdefault(card.name, ([], []))
            cells.append(cell)
            cards.append(card)
        yield from groups.values()


def _check_tile(card: NpuSpec, table: OpTable, tile: Tile | None) -> None:
    if tile is None:
        return
    products = np.isin(table.kind, PRODUCTS)
    if not products.any():
        raise Refused("tile", "no row is a matrix product", "leave the tile out, or give GEMM rows")
    for code in np.unique(table.dtype[products]):
        size = float(item_sizes(table)[table.dtype == code][0])
        check_tile(card, resolve(card, Dtype(code).name.lower()), tile, (size, size))


def _variable(dims: tuple[str, ...], values: np.ndarray, attributes: dict[str, str] | None = None) -> xr.Variable:
    """Return a variable of values that need no conversion (xarray would look at every text)."""
    return xr.Variable(dims, values, attributes, fastpath=True)


def _dataset(table: OpTable, space: CardSpace, found: _Found, notes: list[str]) -> xr.Dataset:
    """Label results."""
    dims, shape = ("operator", *space.dims), (len(table), *space.shape)

    def laid(values: np.ndarray) -> np.ndarray:
        return values.reshape(*shape, *values.shape[2:])

    def words(codes: np.ndarray, kind: type[IntEnum]) -> np.ndarray:
        return np.array([*(member.name.lower() for member in kind), ""], dtype=object)[codes]

    algorithms = np.array([*algorithm_names(), ""], dtype=object)
    second, text = {"units": "s"}, np.array(["; ".join(note) for note in found.notes] or [], dtype=object)
    data: dict[Hashable, Any] = {
        "seconds": _variable(dims, laid(found.times[0]), {**second, "long_name": "time of one execution"}),
        "low": _variable(dims, laid(found.times[1]), {**second, "long_name": "lower end of the 80 % interval"}),
        "high": _variable(dims, laid(found.times[2]), {**second, "long_name": "upper end of the 80 % interval"}),
        "energy": _variable(dims, laid(found.times[3]), {"units": "J", "long_name": "energy of one execution"}),
        "utilisation": _variable(dims, laid(found.times[4]), {"units": "1", "long_name": "share of the dense peak of its unit"}),
        "bandwidth_share": _variable(dims, laid(found.times[5]), {"units": "1", "long_name": "share of the outermost bandwidth"}),
        "algorithm": _variable(dims, laid(algorithms[found.codes[2]]), {"long_name": "how a convolution runs"}),
        "bytes": _variable((*dims, "level"), laid(found.level), {"units": "B", "long_name": "traffic by memory level"}),
        "resource_seconds": _variable(
            (*dims, "resource"), laid(found.resource), {**second, "long_name": "busy time of each resource alone"}
        ),
        "bound": _variable(dims, laid(words(found.codes[0], Bound)), {"long_name": "resource that sets the time"}),
        "evidence": _variable(dims, laid(words(found.codes[1], Evidence)), {"long_name": "what the time rests on"}),
        "note": _variable(("operator",), text, {"long_name": "what was assumed in any cell"}),
        "valid": _variable(space.dims, (found.reason == 0).reshape(space.shape)),
        "reason": _variable(space.dims, found.reason.reshape(space.shape), {"long_name": "index into reason_text"}),
    }
    coords: dict[Hashable, Any] = {
        **space.coords,
        "operator": np.arange(len(table)),
        "name": _variable(("operator",), np.array(table.name, dtype=object)),
        "signature": _variable(("operator",), np.array(table.signature, dtype=object)),
        "kind": _variable(("operator",), words(table.kind, Kind)),
        "dtype": _variable(("operator",), words(table.dtype, Dtype)),
        "count": _variable(("operator",), table.count, {"units": "1"}),
        "flops": _variable(("operator",), table.flops, {"units": "FLOP"}),
        "measured": _variable(("operator",), table.measured_s, second),
        "level": np.array(level_names(found.level.shape[2]), dtype=object),
        "resource": words(np.arange(len(Bound)), Bound),
        "reason_text": _variable(("code",), np.array(found.reasons, dtype=object)),
    }
    base = {} if space.base is None else {"npu": space.base.name} | ({} if space.dims else {"npu_digest": space.base.digest})
    attributes = {"title": "NPU Workbench operator times", **base, "notes": "\n".join(dict.fromkeys([*notes, *found.energies]))}
    return xr.Dataset(data, coords, attributes)
