"""What of a stated rate is sustained: by a level of memory, and by the matrix unit. One place for all models.

A card says it itself (``memory.LEVEL.efficiency``, or a fit under ``calibration``). Where it does not, the way data takes decides:

* A cache behind a crossbar, in front of cores whose threads each ask for their own sectors: requests collide in slices and ports.
  `CROSSBAR` of the theoretical rate, and `CROSSBAR_WRITE` of the read rate for writes where one rate is stated for both.
* Whole tiles moved by copy engines that a compiler schedules (scratchpads, and caches that only such engines use): `STREAMED`.

Arrays alike: tensor cores of a GPU wait for warps that are scheduled as they run and for barriers among them (`SCHEDULED`); cubes
and systolic arrays execute a fixed program and lose only what the models price apart, filling, waves and uneven tiles (`PROGRAMMED`).
"""

from __future__ import annotations

from workbench.errors import Note
from workbench.hardware.spec import NpuSpec

CROSSBAR = 0.6
"""Sustained over theoretical bandwidth of a GPU's L2; chosen on A100, H200 and L40S bf16 products."""
CROSSBAR_WRITE = 0.5
"""Write over read bandwidth of a GPU's L2 that states one number; chosen on the same products."""
STREAMED = 0.85
"""Sustained share of a level that copy engines stream from. A judgement: the share that streams have of outer memory (`STREAM`)."""
SCHEDULED = 0.80
"""Sustained share of the peak of a GPU without a fit; fits of this model on A100, H200 and V100 gave 0.85-0.89, on the power-limited
L40S and T4 0.44-0.57."""
PROGRAMMED = 0.90
"""The same of cubes and systolic arrays. Best products of Gaudi 2: 0.97 in bf16, 0.96 in fp8, filling of the array included
(stas00/ml-engineering, accelerator benchmarks); attention on Ascend 910C: 0.87, hand-overs to the vector cores included (Liao et al.,
AMLA, arXiv 2509.25224); Trainium: "90%+ is considered good in practice" for the busy share of its array (AWS Neuron, NKI Performance
Optimizations). No fit of this model stands behind it."""
STREAM = 0.85
"""Sustained share of the outermost bandwidth of operators that stream, on a card without a fit; elementwise rows of A100, V100, P100
and T4 gave 0.78-0.95. Why not all: row activation, refresh and bus turnaround of DRAM (Jacob et al., Memory Systems, 2007)."""
OUTER = 0.80
"""The same under products, whose fits gave 0.66-0.90 (A100, H200, L40S, V100, P100 and T4): they read in tiles, and in bursts."""


def behind_crossbar(spec: NpuSpec, level: str) -> bool:
    """Whether a level is a hardware cache in front of cores of threads (dot-product arrays fed by warps)."""
    return spec.matrix.dataflow == "dot" and spec.memory[level].type == "cache"


def bandwidth(spec: NpuSpec, level: str, write: bool = False) -> float:
    """Return the bandwidth that one instance of a level inside the outermost sustains [B/s]; infinite where none is stated.

    Parameters
    ----------
    spec : NpuSpec
        Card.
    level : str
        Name of the level.
    write : bool
        Written to instead of read.
    """
    memory = spec.memory[level]
    share = memory.efficiency or (CROSSBAR if behind_crossbar(spec, level) else STREAMED)
    if write and memory.write_bandwidth is None and behind_crossbar(spec, level):
        share *= CROSSBAR_WRITE
    return spec.bandwidth(level, write) * share


def outer_share(spec: NpuSpec) -> float:
    """Return the share of the outermost bandwidth that products sustain on a card without a fit; what a card states is that of streams."""
    return OUTER * (spec.memory[list(spec.memory)[-1]].efficiency or STREAM) / STREAM


def compute_share(spec: NpuSpec) -> float:
    """Return the share of the matrix peak that is sustained on a card without a fit."""
    return SCHEDULED if spec.matrix.dataflow == "dot" else PROGRAMMED


def assumed(spec: NpuSpec) -> tuple[Note, ...]:
    """Say which sustained shares of a card are assumed: nobody stated them, and no fit of its products stands behind the default."""
    if spec.calibration:
        return ()
    inner = [name for name in list(spec.memory)[:-1] if spec.memory[name].scope != "core" and spec.memory[name].efficiency is None]
    shares = [f"{name} {CROSSBAR if behind_crossbar(spec, name) else STREAMED:g}" for name in inner if spec.memory[name].bandwidth]
    text = f"sustained shares taken from other cards of its kind: {', '.join([f'matrix unit {compute_share(spec):g}', *shares])}"
    return (Note("assumed-efficiency", spec.name, 1 + len(shares), text, "state memory.LEVEL.efficiency, or calibrate"),)
