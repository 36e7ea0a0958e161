"""Seconds of every operator on every card: a vendor's time, else the model, else a scaled measurement; with evidence and interval."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from workbench.cost import convolution, power, realities
from workbench.cost.choices import FREE, Choices
from workbench.cost.cost import Bound, Evidence, OpCost
from workbench.cost.errors import intervals
from workbench.cost.models import ON_MATRIX, dtype_columns, dtype_names
from workbench.cost.nothing import WHY, empty_rows, price
from workbench.cost.pack import WEIGHT_ONLY, Cards, pack
from workbench.cost.scale import scaled_measurement
from workbench.cost.vendor import VendorTimes
from workbench.cost.vendor_apply import state
from workbench.errors import Refused
from workbench.hardware.spec import NpuSpec
from workbench.operators.table import COLLECTIVES, OpTable


def estimate(
    table: OpTable,
    specs: Sequence[NpuSpec],
    *,
    source: NpuSpec | None = None,
    vendor: VendorTimes | None = None,
    anchored: bool = False,
    choices: Choices = FREE,
) -> OpCost:
    """Price every operator on every card.

    Parameters
    ----------
    table : OpTable
        U unique operators.
    specs : sequence of NpuSpec, length S
        Cards.
    source : NpuSpec, optional
        Card the measured times were recorded on: operators without a formula are scaled from it, and the interval of the
        others is widened to hold measured x model(card) / model(source), so that it shows where the model misses the recording.
    vendor : VendorTimes, optional
        Stated times; they take precedence.
    anchored : bool
        Price modelled operators as measured x model(card) / model(source); needs ``source``.
    choices : Choices
        What is fixed instead of chosen (a tiling, see `workbench.cost.tiles.check_tile`; an algorithm), and what is warm.

    Returns
    -------
    OpCost
        Collectives are left nan: a network prices them. Nothing else is nan but rows without formula, vendor time and measurement.

    Raises
    ------
    Refused
        ``anchored`` without a source card.
    """
    if anchored and source is None:
        raise Refused(
            "anchored", "measured x model(target) / model(source) needs the card the recording was made on", "name it with source"
        )
    cards = pack(specs, dtype_names(table))
    column = dtype_columns(table, cards)
    priced = price(table, cards, column, choices)
    collective, idle = table.among(COLLECTIVES), empty_rows(table)
    modelled = np.isfinite(priced.seconds).all(axis=1) & ~collective
    priced.seconds[~modelled] = np.nan
    least, most = realities.widened(*intervals(table, cards, column), table, cards)
    seconds, low, high = priced.seconds.copy(), priced.seconds * least, priced.seconds * most
    evidence = np.where(modelled, Evidence.MODEL, Evidence.SCALED).astype(np.int8)
    note_code, reasons = _substitutions(table, cards, column)
    _note_transforms(table, cards, column, priced.seconds, note_code, reasons)
    realities.describe(table, cards, note_code, reasons)
    _say(idle, WHY, note_code, reasons)
    own = pack([source], cards.dtypes) if source is not None else None
    if own is not None:
        recorded = table.measured_s[:, None] * priced.seconds / np.where(idle[:, None], 1.0, price(table, own, column).seconds)
        rows = modelled & np.isfinite(recorded).all(axis=1) & (table.measured_s > 0)
        if anchored:
            seconds[rows], evidence[rows] = recorded[rows], Evidence.ANCHORED
            low[rows], high[rows] = (seconds * least)[rows], (seconds * most)[rows]
        else:
            low[rows], high[rows] = np.minimum(low, recorded)[rows], np.maximum(high, recorded)[rows]
    rest = ~modelled & ~collective
    if rest.any():
        nominal, short, long, why = scaled_measurement(table.measured_s[rest], cards, own, column[rest])
        seconds[rest], low[rest], high[rest] = nominal, short, long
        _say(rest, why, note_code, reasons)
    if vendor is not None:
        state(table, vendor, cards, column, priced.seconds, (seconds, low, high), evidence, note_code, reasons, choices)
    bound = _bound(priced.resource, collective)
    bound[idle & modelled] = Bound.LAUNCH
    of = power.joules(cards)
    taken = np.where(modelled[:, None], power.energy(seconds, _dynamic(table, cards, column, priced.level, of), of), np.nan)
    out = (seconds, low, high, priced.resource, priced.level, bound, evidence, note_code)
    for array in (*out, taken, of.idle, priced.algorithm, priced.tile):
        array.setflags(write=False)
    return OpCost(*out, tuple(reasons), energy_j=taken, idle_w=of.idle, energy_why=of.why, algorithm=priced.algorithm, tile=priced.tile)


def _say(rows: np.ndarray, why: str, note_code: np.ndarray, reasons: list[str]) -> None:
    """Give some rows [U] a reason, where there are any."""
    if rows.any():
        note_code[rows] = len(reasons)
        reasons.append(why)


def _dynamic(table: OpTable, cards: Cards, column: np.ndarray, level: np.ndarray, of: power.Joules) -> np.ndarray:
    """Return the dynamic energy of every operator on every card at full clock, by the model's activity (see `power.dynamic`)."""
    return power.dynamic(table.flops, table.among(ON_MATRIX), column, cards, level, of)


def _substitutions(table: OpTable, cards: Cards, column: np.ndarray) -> tuple[np.ndarray, list[str]]:
    """Return note_code [U] and reasons for matrix operators that run as another dtype on some card."""
    codes, reasons = np.zeros(len(table), dtype=np.int32), [""]
    on_matrix = table.among(ON_MATRIX)
    for d, dtype in enumerate(cards.dtypes):
        for spec, names in zip(cards.specs, cards.runs_as, strict=True):
            if names[d] in ("", dtype) or dtype == "unknown" or (dtype in WEIGHT_ONLY and names[d] in ("fp16", "bf16")):
                continue
            rows = on_matrix & (column == d) & (codes == 0)
            if rows.any():
                codes[rows] = len(reasons)
                reasons.append(f"{spec.name} has no {dtype} matrix rate: priced as {names[d]}, without the casts")
    return codes, reasons


def _note_transforms(
    table: OpTable, cards: Cards, column: np.ndarray, seconds: np.ndarray, note_code: np.ndarray, reasons: list[str]
) -> None:
    """Say of convolutions faster than their stated FLOPs allow that a transform algorithm is why."""
    rows = table.among(convolution.PASSES)
    if not rows.any():
        return
    direct = table.flops[rows] / (2.0 * np.maximum(cards.mac_rate[:, column[rows]], 1.0))
    fast = np.zeros(len(table), dtype=bool)
    fast[rows] = (direct > seconds[rows].T).any(axis=0)
    if (fast & (note_code == 0)).any():
        note_code[fast & (note_code == 0)] = len(reasons)
        reasons.append(
            "priced as Winograd F(2x2, 3x3), which needs 2.25 times fewer products than the stated FLOPs of the direct algorithm"
        )


def _bound(resource: np.ndarray, collective: np.ndarray) -> np.ndarray:
    bound = np.argmax(resource, axis=2).astype(np.int8)
    bound[resource.max(axis=2) <= 0.0] = Bound.UNKNOWN
    bound[collective] = Bound.NETWORK
    return bound
