"""Seconds of every operator on every card: a vendor's time, else the model, else a scaled measurement; with evidence and interval."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from workbench.cost import attention, convolution, matrix, vector
from workbench.cost.cost import Bound, Evidence, OpCost
from workbench.cost.errors import relative_error
from workbench.cost.interpolate import BEYOND, REACH, between
from workbench.cost.matrix import Priced, plus
from workbench.cost.pack import Cards, dtype_name, pack
from workbench.cost.scale import scaled_measurement
from workbench.cost.tiles import Tile, stepping
from workbench.cost.vendor import VendorTimes
from workbench.errors import Refused
from workbench.hardware.spec import NpuSpec
from workbench.operators.table import COLLECTIVES, DIMS, ITEMSIZE, Dtype, Kind, OpTable

PRODUCTS = (Kind.GEMM, Kind.BATCHED_GEMM)
ATTENTION = (Kind.ATTENTION_FORWARD, Kind.ATTENTION_BACKWARD)
ROWWISE = (Kind.SOFTMAX, Kind.NORM, Kind.REDUCTION, Kind.EMBEDDING, Kind.SORT)
STREAMS = (*ROWWISE, Kind.ELEMENTWISE, Kind.POOLING, Kind.COPY, Kind.SET, Kind.OPTIMIZER)
ON_MATRIX = (*PRODUCTS, *ATTENTION, *convolution.PASSES, Kind.RNN)


def estimate(
    table: OpTable,
    specs: Sequence[NpuSpec],
    *,
    source: NpuSpec | None = None,
    vendor: VendorTimes | None = None,
    anchored: bool = False,
    tile: Tile | None = None,
    algorithm: str = convolution.CHEAPEST,
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
    tile : Tile, optional
        Tiling of the matrix products instead of the best one, see `workbench.cost.tiles.check_tile`.
    algorithm : {"cheapest", "implicit", "winograd"}
        Of convolutions, see `workbench.cost.convolution.convolution`.

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
    priced = model(table, cards, column, tile, algorithm)
    kind = table.kind
    collective = np.isin(kind, COLLECTIVES)
    modelled = np.isfinite(priced.seconds).all(axis=1) & ~collective
    priced.seconds[~modelled] = np.nan
    error = relative_error(table, cards, column)
    seconds, low, high = priced.seconds.copy(), priced.seconds / (1.0 + error), priced.seconds * (1.0 + error)
    evidence = np.where(modelled, Evidence.MODEL, Evidence.SCALED).astype(np.int8)
    note_code, reasons = _substitutions(table, cards, column)
    _note_transforms(table, cards, column, priced.seconds, note_code, reasons)
    own = pack([source], cards.dtypes) if source is not None else None
    if own is not None:
        recorded = table.measured_s[:, None] * priced.seconds / model(table, own, column).seconds
        rows = modelled & np.isfinite(recorded).all(axis=1) & (table.measured_s > 0)
        if anchored:
            seconds[rows], evidence[rows] = recorded[rows], Evidence.SCALED
            low[rows], high[rows] = (seconds / (1.0 + error))[rows], (seconds * (1.0 + error))[rows]
        else:
            low[rows], high[rows] = np.minimum(low, recorded)[rows], np.maximum(high, recorded)[rows]
    rest = ~modelled & ~collective
    if rest.any():
        nominal, least, most, why = scaled_measurement(table.measured_s[rest], cards, own, column[rest])
        seconds[rest], low[rest], high[rest] = nominal, least, most
        note_code[rest] = len(reasons)
        reasons.append(why)
    if vendor is not None:
        _stated(table, vendor, (seconds, low, high), evidence, note_code, reasons)
    bound = _bound(priced.resource, evidence, collective)
    out = (seconds, low, high, priced.resource, priced.level, bound, evidence, note_code)
    for array in out:
        array.setflags(write=False)
    return OpCost(*out, reasons=tuple(reasons))


def _stated(
    table: OpTable,
    vendor: VendorTimes,
    arrays: tuple[np.ndarray, np.ndarray, np.ndarray],
    evidence: np.ndarray,
    note_code: np.ndarray,
    reasons: list[str],
) -> None:
    """Put a vendor's times in place of nominal, low and high seconds: stated, else interpolated, else (without a model) extrapolated."""
    stated = vendor.lookup(table)
    rows = ~np.isnan(stated)
    for array in arrays:
        array[rows] = stated[rows, None]
    evidence[rows], note_code[rows] = Evidence.VENDOR, 0
    rest = np.flatnonzero(~rows)
    found = between(vendor, table, rest)
    use = ~np.isnan(found.seconds) & (~found.beyond | (evidence[rest] != Evidence.MODEL))
    for array, factor in zip(arrays, (1.0, 1.0 / (1.0 + found.error), 1.0 + found.error), strict=True):
        array[rest[use]] = (found.seconds * factor)[use, None]
    for beyond, which, text in (
        (False, Evidence.INTERPOLATED, f"between the vendor's times of {REACH:g} times smaller to larger operators of its kind and dtype"),
        (True, Evidence.EXTRAPOLATED, f"beyond the vendor's times, by at most a factor {BEYOND:g} in work"),
    ):
        chosen = rest[use & (found.beyond == beyond)]
        if len(chosen):
            evidence[chosen], note_code[chosen] = which, len(reasons)
            reasons.append(text)


def dtype_names(table: OpTable) -> tuple[str, ...]:
    """Return the dtypes that occur in a table, by code."""
    return tuple(dtype_name(code) for code in sorted(set(table.dtype.tolist()))) or ("fp32",)


def dtype_columns(table: OpTable, cards: Cards) -> np.ndarray:
    """Return the index into ``cards.dtypes`` of every row, int64 [U]."""
    lookup = np.zeros(len(Dtype), dtype=np.int64)
    for index, name in enumerate(cards.dtypes):
        lookup[Dtype[name.upper()]] = index
    return lookup[table.dtype]


def item_sizes(table: OpTable) -> np.ndarray:
    """Return the bytes an element of every row, float64 [U] [B]."""
    return np.array([ITEMSIZE[Dtype(code)] for code in range(len(Dtype))])[table.dtype]


def model(table: OpTable, cards: Cards, column: np.ndarray, tile: Tile | None = None, algorithm: str = convolution.CHEAPEST) -> Priced:
    """Price rows by the analytical model of their kind; nan where there is none (unknown kind, or a dtype the card cannot run).

    Parameters
    ----------
    table : OpTable
        U operators.
    cards : Cards
        S packed cards.
    column : ndarray of int, shape (U,)
        Dtype columns.
    tile : Tile, optional
        Tiling of the matrix products.
    algorithm : {"cheapest", "implicit", "winograd"}
        Of convolutions.
    """
    out = matrix.empty(len(table), len(cards.specs))
    out.seconds[:] = np.nan
    size = item_sizes(table)
    kinds = set(table.kind.tolist())
    for group in (PRODUCTS, (Kind.ATTENTION_FORWARD,), (Kind.ATTENTION_BACKWARD,), (Kind.RNN,), *((kind,) for kind in convolution.PASSES)):
        if kinds.isdisjoint(group):
            continue
        rows = np.flatnonzero(np.isin(table.kind, group))
        _put(out, rows, _matrix_group(table, group[0], rows, size, column, cards, tile, algorithm))
    if not kinds.isdisjoint(STREAMS):
        rows = np.flatnonzero(np.isin(table.kind, STREAMS))
        _put(out, rows, _stream_group(table, rows, size, column, cards))
    unable = np.array([[not name for name in names] for names in cards.runs_as], dtype=bool).reshape(len(cards.specs), len(cards.dtypes))
    out.seconds[np.isin(table.kind, ON_MATRIX)[:, None] & unable[:, column].T] = np.nan
    return out


def _put(out: Priced, rows: np.ndarray, part: Priced) -> None:
    for name in ("seconds", "resource", "level", "detail"):
        getattr(out, name)[rows] = getattr(part, name)


def _matrix_group(
    table: OpTable,
    kind: Kind,
    rows: np.ndarray,
    size: np.ndarray,
    column: np.ndarray,
    cards: Cards,
    tile: Tile | None,
    algorithm: str,
) -> Priced:
    dims, sizes, columns = table.dims[rows], size[rows], column[rows]
    if kind in PRODUCTS:
        operand = np.repeat(sizes[:, None], 3, axis=1)
        operand[:, 2] = np.where(operand[:, 2] < 2.0, 2.0, operand[:, 2])  # 8-bit products write 16-bit results
        if tile is not None:
            fixed = (tile.tm, tile.tn, tile.split)
            return matrix.products(dims[:, :4], operand, columns, stepping(cards, tile), tile=fixed)[0]
        return matrix.products(dims[:, :4], operand, columns, cards)[0]
    if kind in ATTENTION:
        return attention.attention(dims, table.flops[rows], sizes, kind == Kind.ATTENTION_BACKWARD, columns, cards)
    if kind == Kind.RNN:
        return _rnn(dims, table.flops[rows], sizes, columns, cards)
    passes = convolution.PASSES[kind]
    flops = table.flops[rows] / len(passes)
    first, *rest = (convolution.convolution(dims, flops, which, sizes, columns, cards, algorithm) for which in passes)
    for other in rest:
        first = plus(first, other)
    return first


def _rnn(dims: np.ndarray, flops: np.ndarray, size: np.ndarray, column: np.ndarray, cards: Cards) -> Priced:
    """Price a recurrent layer: one product over all inputs, then one a time step (weights stay close, steps cannot overlap)."""
    hidden, batch, steps = np.maximum(dims[:, :3], 1).astype(np.float64).T
    gates = np.maximum(flops / (4.0 * hidden * hidden * batch * steps), 1.0)
    operand = np.repeat(size[:, None], 3, axis=1)
    one = np.ones_like(hidden)
    inputs, _ = matrix.products(np.stack((one, batch * steps, gates * hidden, hidden), axis=1), operand, column, cards)
    step, _ = matrix.products(np.stack((one, batch, gates * hidden, hidden), axis=1), operand, column, cards, copies=(1.0, 1.0))
    return plus(inputs, step, steps[:, None])


def _stream_group(table: OpTable, rows: np.ndarray, size: np.ndarray, column: np.ndarray, cards: Cards) -> Priced:
    kind, dims = table.kind[rows], table.dims[rows]
    two = np.isin(kind, ROWWISE)
    elements = np.where(two, dims[:, 0] * np.maximum(dims[:, 1], 1), dims[:, 0]).astype(np.float64)
    row_bytes = np.where(two, dims[:, 1], 0) * size[rows]
    read, written = table.bytes_read[rows], table.bytes_written[rows]
    out = vector.streams(kind, elements, row_bytes, table.flops[rows], read, written, column[rows], cards)
    across = (kind == Kind.COPY) & (dims[:, DIMS[Kind.COPY].index("direction")] > 0)
    if across.any():
        _put(out, np.flatnonzero(across), vector.host_copies(np.maximum(read, written)[across], column[rows][across], cards))
    return out


def _substitutions(table: OpTable, cards: Cards, column: np.ndarray) -> tuple[np.ndarray, list[str]]:
    """Return note_code [U] and reasons for matrix operators that run as another dtype on some card."""
    codes, reasons = np.zeros(len(table), dtype=np.int32), [""]
    on_matrix = np.isin(table.kind, ON_MATRIX)
    for d, dtype in enumerate(cards.dtypes):
        for spec, names in zip(cards.specs, cards.runs_as, strict=True):
            if names[d] in ("", dtype) or dtype == "unknown":
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
    rows = np.isin(table.kind, tuple(convolution.PASSES))
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


def _bound(resource: np.ndarray, evidence: np.ndarray, collective: np.ndarray) -> np.ndarray:
    bound = np.argmax(resource, axis=2).astype(np.int8)
    bound[resource.max(axis=2) <= 0.0] = Bound.UNKNOWN
    bound[collective] = Bound.NETWORK
    return bound
