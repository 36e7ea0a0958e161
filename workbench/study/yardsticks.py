"""Predictions against the measured times of a table, beside both rooflines: `workbench estimate` where rows have times."""

from __future__ import annotations

import numpy as np

from workbench.cost.calibrate import accuracy
from workbench.cost.cost import OpCost
from workbench.cost.doubts import FEWEST_ROWS
from workbench.cost.fit import fit_scalars
from workbench.cost.predictors import NAIVE, roofline
from workbench.hardware.npu import NpuSpec
from workbench.operators.rows import take
from workbench.operators.table import Dtype, Kind, OpTable
from workbench.study.documents_operators import AccuracyDocument

ROOFLINE_START = np.array([0.7, 0.7, 5e-6])


def accuracy_documents(table: OpTable, cost: OpCost, spec: NpuSpec) -> list[AccuracyDocument]:
    """Return the errors of the measured rows, by kind and dtype.

    The naive roofline (peak, bandwidth, no overhead) always stands beside them. The calibrated roofline does where there are
    enough rows: its three scalars are fitted on *these very rows*, five-fold by shape, which the prediction never saw. It is
    thus an upper hand, on purpose: a prediction that beats it is worth more than a roofline could be made to be.

    Parameters
    ----------
    table : OpTable
        U operators, some with ``measured_s``.
    cost : OpCost
        Their prediction on one card.
    spec : NpuSpec
        The card.

    Returns
    -------
    list of AccuracyDocument
    """
    seconds = cost.seconds[:, 0]
    usable = np.isfinite(seconds) & (seconds > 0) & (table.measured_s > 0)
    out = []
    for kind, dtype in sorted(set(zip(table.kind[usable].tolist(), table.dtype[usable].tolist(), strict=True))):
        rows = usable & (table.kind == kind) & (table.dtype == dtype)
        part, measured = take(table, rows), table.measured_s[rows]
        inside = (measured >= cost.low_s[rows, 0]) & (measured <= cost.high_s[rows, 0])
        naive, fitted = roofline(spec, part)(NAIVE[None])[:, 0], None
        if len(part) >= FEWEST_ROWS:
            fitted = accuracy(fit_scalars(lambda some: roofline(spec, some), part, ROOFLINE_START).left_out_s, measured)["mape"]
        out.append(
            AccuracyDocument(
                kind=Kind(kind).name.lower(),
                dtype=Dtype(dtype).name.lower(),
                rows=len(part),
                inside=float(inside.mean()),
                naive_roofline=accuracy(naive, measured)["mape"],
                calibrated_roofline=fitted,
                **accuracy(seconds[rows], measured),
            )
        )
    return out
