"""Times of operators as functions of a card's three scalars: the model through the public path, and rooflines as yardsticks."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np

from workbench.cost.choices import Choices
from workbench.cost.harness import Harness, host_work, observed
from workbench.cost.models import ON_MATRIX, dtype_columns, dtype_names, model
from workbench.cost.pack import pack, resolve
from workbench.hardware.parts import Calibration
from workbench.hardware.spec import NpuSpec
from workbench.operators.table import OpTable

Predictor = Callable[[np.ndarray], np.ndarray]
"""Scalars (compute share, memory share, launch [s]) of P trials, [P, 3], to seconds [U, P] [s]."""
NAIVE = np.array([1.0, 1.0, 0.0])
"""Peak, bandwidth, no overhead."""
PLAIN = Harness()
"""Operands cold, the card's own time: what an estimate is of."""


def with_scalars(spec: NpuSpec, dtype: str, scalars: np.ndarray) -> NpuSpec:
    """Return a card whose scalars of one dtype are replaced by trial values (no error is known of them)."""
    compute, memory, launch = (float(value) for value in scalars)
    return replace(spec, calibration={**spec.calibration, dtype: Calibration(compute, memory, launch, 0.0, "trial")})


def modelled(spec: NpuSpec, dtype: str, table: OpTable, harness: Harness = PLAIN) -> Predictor:
    """Return what a harness shows of the model's seconds, through `models.model` as any estimate, as a function of three scalars.

    Parameters
    ----------
    spec : NpuSpec
        Card.
    dtype : str
        Dtype whose scalars vary; rows of others (which the card may run as it) are priced as the card states.
    table : OpTable
        U operators.
    harness : Harness
        What it leaves warm, and its clock: where it times the host, the third scalar is the host's time of a call and the
        kernel overhead is the card's own.
    """
    names, choices = dtype_names(table), Choices(copies=harness.copies, attention=harness.attention)
    relative = np.array([host_work(name) for name in table.name])[:, None] if harness.times_host else 1.0

    def predict(points: np.ndarray) -> np.ndarray:
        own = points.copy()
        if harness.times_host:
            own[:, 2] = spec.runtime.launch_overhead
        cards = pack([with_scalars(spec, dtype, point) for point in own], names)
        seconds = model(table, cards, dtype_columns(table, cards), choices).seconds
        return observed(seconds, points[:, 2], harness.clock, relative)

    return predict


def roofline(spec: NpuSpec, table: OpTable) -> Predictor:
    """Return the roofline's seconds as a function of its own three scalars.

    ``t = launch + max(FLOPs / (compute x peak), compulsory bytes / (memory x bandwidth))`` after Williams et al., Roofline
    (CACM 2009); the peak is that of the unit which works on the kind: matrix or vector.

    Parameters
    ----------
    spec : NpuSpec
        Card.
    table : OpTable
        U operators.
    """
    names = dtype_names(table)
    cards = pack([spec], names)
    column = dtype_columns(table, cards)
    peak = np.where(np.isin(table.kind, ON_MATRIX), 2.0 * cards.mac_rate[0, column], cards.vector_rate[0, column])
    compute = table.flops / np.maximum(peak, 1.0)
    memory = (table.bytes_read + table.bytes_written) / spec.bandwidth(list(spec.memory)[-1])

    def predict(points: np.ndarray) -> np.ndarray:
        return points[:, 2] + np.maximum(compute[:, None] / points[:, 0], memory[:, None] / points[:, 1])

    return predict


def runs_as(spec: NpuSpec, dtype: str) -> str:
    """Return the dtype whose scalars price a dtype on a card, as `pack` chooses it."""
    return resolve(spec, dtype) or dtype
