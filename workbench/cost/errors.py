"""How wrong a predicted time may be: relative errors behind the 80 % intervals."""

from __future__ import annotations

import math

import numpy as np

from workbench.cost.pack import Cards, calibration
from workbench.operators.table import DIMS, Kind, OpTable

KIND_ERROR: dict[Kind, float] = {
    Kind.GEMM: 0.41,  # median over five public series (0.21-0.53) of the 80 % quantile with the defaults of `pack`, nothing fitted
    Kind.BATCHED_GEMM: 0.45,
    Kind.CONV_FORWARD: 0.60,
    Kind.CONV_BACKWARD_DATA: 1.00,
    Kind.CONV_BACKWARD_WEIGHT: 1.00,
    Kind.CONV_BACKWARD: 1.00,
    Kind.ATTENTION_FORWARD: 0.35,
    Kind.ATTENTION_BACKWARD: 0.50,
    Kind.RNN: 1.00,
    Kind.SORT: 1.00,
    Kind.EMBEDDING: 0.60,
}
"""Error assumed of a kind without a fit. All but GEMM are judgement, informed by in-sample misses; their coverage is not checked."""
STREAM_ERROR = 0.30
INVENTED = 1.25  # a card nobody measured: the assumed error, widened by judgement
CALIBRATED_KINDS = (Kind.GEMM, Kind.BATCHED_GEMM)


def relative_error(table: OpTable, cards: Cards, column: np.ndarray) -> np.ndarray:
    """Return the error of every operator on every card.

    Parameters
    ----------
    table : OpTable
        U operators.
    cards : Cards
        S cards.
    column : ndarray of int, shape (U,)
        Dtype columns.

    Returns
    -------
    ndarray, shape (U, S)
        e, for the interval [t / (1 + e), t (1 + e)] meant to hold 80 % of measured times; cross-validated only where the
        card states a fit of its own.
    """
    by_kind = np.array([KIND_ERROR.get(Kind(code), STREAM_ERROR) for code in range(len(DIMS))])[table.kind]
    out = np.repeat(by_kind[:, None], len(cards.specs), axis=1)
    matrix = np.isin(table.kind, CALIBRATED_KINDS)
    for s, (spec, names) in enumerate(zip(cards.specs, cards.runs_as, strict=True)):
        if spec.confidence == "invented":
            out[:, s] *= INVENTED
            continue
        fitted = np.array([calibration(spec, name or dtype)[3] for name, dtype in zip(names, cards.dtypes, strict=True)])[column]
        rows = matrix & np.array([not math.isnan(value) for value in fitted], dtype=bool)
        out[rows, s] = fitted[rows]
    return out
