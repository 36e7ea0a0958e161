"""Labelled axes over a scenario -> a labelled parameter space. Every cell is a full replay of the shared graph."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field, replace

import numpy as np
import xarray as xr

from workbench import units
from workbench.cost.cost import Bound, Evidence
from workbench.errors import Note, Refused, WorkbenchError
from workbench.hardware.npu import NpuSpec
from workbench.replay.account import account
from workbench.replay.replay import replay, step_times
from workbench.study.compare import ACCOUNT
from workbench.study.dataset import Cells, to_dataset
from workbench.study.energy import energy_of_steps
from workbench.study.predict import predict
from workbench.study.price import Pricing, at_bounds, price, price_recorded
from workbench.study.recorded_on import with_source
from workbench.study.scenario import Scenario
from workbench.study.space import Axes, Constraints, Space, check_size, lay_out, sizes
from workbench.study.steps import kept_steps
from workbench.study.workload import Workload

BUDGET = "2 GB"
BLOCK_BYTES = 64e6
"""Most bytes [B] of operator costs alive at once."""
REPORTS = 20
"""Reports of progress a sweep gives at least, where it has enough cells."""
COST_BYTES = 8 * (4 + len(Bound) + 3)  # of one operator in one cell


def sweep(
    scenario: Scenario,
    axes: Axes,
    *,
    constraints: Constraints | None = None,
    budget: str | float = BUDGET,
    progress: bool | Callable[[int, int], None] = True,
    accounts: bool = False,
) -> xr.Dataset:
    """Predict the step in every cell of a parameter space.

    Parameters
    ----------
    scenario : Scenario
        The base; ``speed_up`` is relative to its own prediction (to the recording when it has no card).
    axes : mapping
        Dotted path (``npu.memory.hbm.bandwidth``, ``npu.cores``, ``host_factor``, ``npu``, ``workload`` ...) to a list,
        `linspace`, `logspace` or a formula of other fields; or any name to a `tied` group of paths.
    constraints : mapping of text to function, optional
        Cells in which a function of fields (see `tied`) returns false are invalid with the text as reason.
    budget : str or float
        Most bytes [B] of operator times (cells x operators x 8); larger spaces are refused before anything is made.
    progress : bool or callable
        Show a bar on a terminal; a function is called with the cells done and their number, at the begin and after every block.
    accounts : bool
        Also account for every cell's time (one timeline a cell: slower).

    Returns
    -------
    Dataset
        Dimensions: one an axis, plus ``bound``, ``evidence`` and ``step`` (``part`` with ``accounts``). Variables:
        step_time, step_time_low and step_time_high (80 % interval), step_times by step [s], throughput [1/s],
        energy of a step [J] and flops_per_joule (nan where the card's energies are not known), speed_up [1], bound_share and
        evidence_share of operator time [1], valid, reason (a code; its words are ``reason_text``). Values of invalid cells are nan.
        A cell equals ``predict(scenario.with_(changes))``.

    Raises
    ------
    Refused
        Unknown fields, spaces above the budget, recordings without work.
    """
    limit = units.parse(budget, "B", "budget") if isinstance(budget, str) else budget
    counts = sizes(axes)
    scenario = with_source(scenario)
    check_size(counts, _operators(scenario, axes), limit)
    space = lay_out(scenario, axes, constraints)
    base_step_s = predict(scenario).step_time_s
    cells = Cells.empty(space.shape, _steps(scenario, space), len(ACCOUNT) if accounts else 0)
    first: list[Note] | None = None
    for block in _track(list(_blocks(cells.size, _operators(scenario, axes))), progress):
        for group in _groups(space, cells, block):
            _price_group(group, cells, accounts)
            first = _notes(group, cells) if first is None else first
    return to_dataset(space, cells, base_step_s, [*_fixed_by_vendor(scenario, space), *(first or [])])


def _fixed_by_vendor(scenario: Scenario, space: Space) -> list[Note]:
    """Say that operators a vendor priced do not move along axes of the card."""
    moved = [column.path for axis in space.axes for column in axis.columns if column.path.startswith("npu")]
    if scenario.vendor is None or not moved:
        return []
    text = f"operators the vendor's table prices keep its times in every cell: {', '.join(moved)} moves only the others"
    return [Note("vendor-fixed", scenario.vendor.path, 1, text, "sweep without the table to see what the card's figures do")]


@dataclass(eq=False)
class _Group:
    """Cells of one block that share everything but card fields and host factor."""

    scenario: Scenario
    cells: list[int] = field(default_factory=list)
    specs: list[NpuSpec | None] = field(default_factory=list)  # None: as recorded
    hosts: list[float] = field(default_factory=list)


def _operators(scenario: Scenario, axes: Axes) -> int:
    given = axes.get("workload")
    loads = [load for load in given if isinstance(load, Workload)] if isinstance(given, list | tuple) else []
    return max(len(load.table) for load in [scenario.workload, *loads])


def _steps(scenario: Scenario, space: Space) -> np.ndarray:
    """Return the step numbers, int64 [S]; none where recordings are an axis."""
    swept = any(column.path == "workload" for axis in space.axes for column in axis.columns)
    return np.empty(0, dtype=np.int64) if swept else scenario.workload.graph.step_numbers


def _blocks(cells: int, operators: int) -> Iterator[range]:
    size = int(np.clip(BLOCK_BYTES / (COST_BYTES * max(operators, 1)), 16, 1024))
    return (range(first, min(first + size, cells)) for first in range(0, cells, size))


def _track(blocks: list[range], progress: bool | Callable[[int, int], None]) -> Iterable[range]:
    if callable(progress):
        return _reported(blocks, progress)
    if not progress or len(blocks) < 2:
        return blocks
    from rich.console import Console
    from rich.progress import track

    console = Console(stderr=True)
    return track(blocks, description="sweep", console=console, transient=True, disable=not console.is_terminal)


def _reported(blocks: list[range], report: Callable[[int, int], None]) -> Iterator[range]:
    """Yield the blocks, in parts of them where there are few, and say after each how many cells are done."""
    whole = blocks[-1].stop if blocks else 0
    size = max(16, whole // REPORTS)
    report(0, whole)
    for block in blocks:
        for first in range(block.start, block.stop, size):
            part = range(first, min(first + size, block.stop))
            yield part
            report(part.stop, whole)


def _groups(space: Space, cells: Cells, block: range) -> list[_Group]:
    """Make the scenario of every cell; a cell whose card contradicts itself becomes invalid with the reason."""
    groups: dict[tuple[object, ...], _Group] = {}
    cards: dict[tuple[object, ...], NpuSpec] = {}
    for cell in block:
        try:
            made = _changed(space.scenario, space.changes(cell), cards)
        except WorkbenchError as fault:
            cells.refuse(cell, fault)
            continue
        key = (id(made.workload), id(made.source), id(made.vendor), made.anchored, made.npu.name if made.npu else None)
        group = groups.setdefault(key, _Group(made))
        group.cells.append(cell)
        group.specs.append(made.npu)
        group.hosts.append(made.host_factor)
    return list(groups.values())


def _changed(scenario: Scenario, changes: dict[str, object], cards: dict[tuple[object, ...], NpuSpec]) -> Scenario:
    """Return the scenario of one cell; fields of one card change together, and equal cards are made once (``cards``)."""
    whole = {path: value for path, value in changes.items() if "." not in path}
    made = replace(scenario, **whole)  # type: ignore[arg-type]
    fields = {path.removeprefix("npu."): value for path, value in changes.items() if "." in path}
    if not fields:
        return made
    if made.npu is None:
        raise Refused("npu", "no card to predict for", "choose a card")
    key = (id(made.npu), repr(list(fields.values())))
    if key not in cards:
        cards[key] = made.npu.with_si(fields)
    return replace(made, npu=cards[key])


def _price_group(group: _Group, cells: Cells, accounts: bool) -> None:
    """Price and replay the cells of a group at once; where pricing refuses, cell by cell."""
    try:
        pricing = _price_unique(group)
    except WorkbenchError as fault:
        if len(group.cells) == 1:
            cells.refuse(group.cells[0], fault)
            return
        for cell, spec, host in zip(group.cells, group.specs, group.hosts, strict=True):
            _price_group(_Group(group.scenario, [cell], [spec], [host]), cells, accounts)
        return
    _fill(group, pricing, cells)
    if accounts:
        _fill_accounts(group, pricing, cells)


def _price_unique(group: _Group) -> Pricing:
    """Price every different card once; cells that differ in the host factor only share it."""
    unique = {id(spec): spec for spec in group.specs}
    cards = [spec for spec in unique.values() if spec is not None]
    if len(cards) == len(group.specs):
        return price(group.scenario, cards, np.array(group.hosts))
    pricing = price(group.scenario, cards) if cards else price_recorded(group.scenario)
    column = {key: at for at, key in enumerate(unique)}
    at = [column[id(spec)] for spec in group.specs]
    return pricing.at_cells(at, np.array(group.hosts))


def _fill(group: _Group, pricing: Pricing, cells: Cells) -> None:
    """Write step times, interval and shares of the group's cells."""
    graph = group.scenario.workload.graph
    kept = kept_steps(graph.step_complete)
    where, count = np.array(group.cells), len(group.cells)
    ends = np.concatenate([at_bounds(pricing, cell) for cell in range(count)], axis=1)
    times = step_times(graph, pricing.weight, np.ascontiguousarray(np.concatenate([pricing.value, ends], axis=1)), pricing.row)
    medians = np.median(times[:, kept], axis=1)
    step, outer = medians[:count], medians[count:].reshape(count, 2)
    cells.step_time[where] = step
    cells.low[where] = np.minimum(outer[:, 0], step)
    cells.high[where] = np.maximum(outer[:, 1], step)
    if cells.step_times.shape[1]:
        cells.step_times[where] = times[:count]
    totals = pricing.operator_totals()
    for bound in Bound:
        cells.bound_share[where, bound] = np.where(pricing.cost.bound == bound, totals, 0.0).sum(axis=0)
    for evidence in Evidence:
        cells.evidence_share[where, evidence] = totals[pricing.cost.evidence == evidence].sum(axis=0)
    whole = np.where(totals.sum(axis=0) > 0, totals.sum(axis=0), np.nan)[:, None]
    cells.bound_share[where] /= whole
    cells.evidence_share[where] /= whole
    energy = energy_of_steps(group.scenario, pricing, step, group.specs)
    cells.energy[where], cells.flops_per_joule[where] = energy.joules, energy.flops_per_joule
    for cell in where[~np.isfinite(step)]:
        cells.refuse(int(cell), Refused("step time", "not finite", "check the card's figures"))


def _fill_accounts(group: _Group, pricing: Pricing, cells: Cells) -> None:
    graph = group.scenario.workload.graph
    kept = kept_steps(graph.step_complete)
    for at, cell in enumerate(group.cells):
        parts = account(graph, replay(graph, pricing.node_seconds(at)), on_card=True)
        mean = parts.mean(kept)
        cells.parts[cell] = [mean[name] for name in ACCOUNT]


def _notes(group: _Group, cells: Cells) -> list[Note] | None:
    """Return the notes of the first cell of a group that could be priced, None where none could."""
    at = next((at for at, cell in enumerate(group.cells) if not cells.reason[cell]), None)
    return None if at is None else list(predict(replace(group.scenario, npu=group.specs[at], host_factor=group.hosts[at])).notes)
