"""The vector side of a packed card, and what of a card is special: separate cores, operand layout, operators that fall back."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from workbench.cost.sustained import bandwidth
from workbench.hardware.spec import NpuSpec

GROUP_LANES = 32.0  # lanes of a SIMT core that go through a program together (a warp)
GROUPS = 64  # such groups that a core keeps going, unless the card states its contexts
WORD = 16.0  # widest access of one lane [B]
SIMT_SECTOR, DMA_BURST = 32.0, 512.0
"""Bytes an access to outer memory moves at least: a 32-byte sector of a GPU; the burst below which a DMA engine wastes
bandwidth (Huawei, Ascend C best practices: transfers aligned to 512 bytes; TPU tiles of 8 x 128 words are longer still)."""

COLUMNS = 17  # numbers a card


@dataclass(frozen=True)
class Side:
    """Arrays [S] of S cards.

    ``simt``: lanes are threads with their own addresses (GPU), not one wide word fed by a DMA engine; ``lanes`` a core;
    ``groups`` of lanes it keeps going; ``near`` latency of the shared level, ``far`` that of the way from it to outer memory [s];
    ``flight`` bytes a core has on the way at once [B]; ``shared`` size of the shared level [B]; ``granule`` least bytes of an
    access outside [B]. ``exchange`` sustained bandwidth in either direction [B/s] and ``exchange_latency`` [s] of the level where
    separate matrix and vector cores meet, nan where they share a core. ``converts``: products want another layout of their
    operands, in blocks of ``block`` [S, 3] (m, n, k). ``fallback_*``: control processors; nan where operators do not fall back.
    """

    simt: np.ndarray
    lanes: np.ndarray
    groups: np.ndarray
    near: np.ndarray
    far: np.ndarray
    flight: np.ndarray
    shared: np.ndarray
    granule: np.ndarray
    exchange: np.ndarray
    exchange_latency: np.ndarray
    converts: np.ndarray
    block: np.ndarray
    fallback_rate: np.ndarray
    fallback_bandwidth: np.ndarray
    fallback_launch: np.ndarray


def vector_side(specs: Sequence[NpuSpec]) -> Side:
    """Pack the vector side of cards.

    Parameters
    ----------
    specs : sequence of NpuSpec, length S

    Returns
    -------
    Side
    """
    rows = [_row(spec) for spec in specs]
    columns = list(np.array(rows, dtype=np.float64).reshape(len(specs), COLUMNS).T)
    block = np.stack(columns[11:14], axis=1)
    return Side(*[columns[0] > 0, *columns[1:10], columns[10] > 0, block, *columns[14:]])


def _row(spec: NpuSpec) -> tuple[float, ...]:
    simt = spec.matrix.dataflow == "dot"
    groups = float(spec.vector.contexts or GROUPS)
    chip = [name for name in spec.memory if spec.memory[name].scope == "chip"]
    shared = spec.memory[chip[-2]] if len(chip) > 1 else None
    meet, back = spec.vector.exchange, spec.fallback
    return (
        float(simt), spec.vector.lanes, groups, shared.latency if shared else 0.0, spec.memory[chip[-1]].latency,
        groups * GROUP_LANES * WORD if simt else _staging(spec), shared.size if shared else 0.0, SIMT_SECTOR if simt else DMA_BURST,
        *((min(bandwidth(spec, meet), bandwidth(spec, meet, True)), spec.memory[meet].latency) if meet else (math.nan,) * 2),
        float(spec.matrix.layout is not None), *(spec.matrix.tile_quantum or (spec.matrix.rows, spec.matrix.cols, spec.matrix.depth)),
        *((back.rate, back.bandwidth, back.launch) if back and back.operators else (math.nan,) * 3),
    )  # fmt: skip


def _staging(spec: NpuSpec) -> float:
    """Return what a core can have on the way [B]: the vector unit's buffer, else the innermost level, as products their staging."""
    core = [name for name, level in spec.memory.items() if level.scope != "chip"]
    return spec.memory[spec.vector.buffer or (core[-1] if core else list(spec.memory)[-1])].size
