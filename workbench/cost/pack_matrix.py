"""The matrix side of a packed card: its levels by the part they play, the columns of `kernels`, and what is too small to work."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from workbench import units
from workbench.cost import kernels, sustained
from workbench.errors import InvalidSpec
from workbench.hardware.spec import NpuSpec

SHARED_USABLE = 1.0  # part of the shared level that holds operands: what fits an L40S (96 MiB) in whole is found warm, as measured
SUMS_SHARE = 0.5  # of a GPU's registers: fragments, addresses and the next step take the rest (255 registers a thread, at most 128 sums)
STEP_CYCLES = 370.0  # cycles of a software-pipelined step that a GPU's warps issue themselves; chosen on A100 and L40S bf16 products
STEP_CYCLES_ASYNCHRONOUS = 180.0  # the same where copies and products run on their own; chosen on H200 bf16 products
BLOCK = 16.0  # registers a side that the vector unit multiplies in
UNLIMITED = kernels.UNBOUND


def levels(spec: NpuSpec) -> tuple[str | None, str | None, str]:
    """Return the names of the staging level of a core, the shared level (None: the outermost serves cores directly) and the outermost."""
    names = list(spec.memory)
    chip = [name for name in names if spec.memory[name].scope == "chip"]
    local = [name for name in names if spec.memory[name].scope == "core" and name != spec.vector.buffer]
    staging = spec.matrix.staging or (local[-1] if local else None)
    return staging, (chip[-2] if len(chip) > 1 else None), names[-1]


def middle_levels(spec: NpuSpec) -> tuple[str, ...]:
    """Return the names of the levels between the cores and the shared level, from the core outward (level 2 of a die, of a cluster).

    Raises
    ------
    InvalidSpec
        Such a level without a shared level outside it.
    """
    _, shared, outer = levels(spec)
    found = tuple(name for name, memory in spec.memory.items() if memory.scope != "core" and name not in (shared, outer))
    if found and shared is None:
        raise InvalidSpec(
            f"{spec.name}: memory.{found[0]}",
            f"a level of a cluster, but none of the chip inside {outer}",
            "add the level that clusters share",
        )
    return found


def room(spec: NpuSpec, level: str | None, halve: bool = True) -> float:
    """Return the bytes of a level that one buffer may take [B]: half of it where it is double-buffered; no limit without a level."""
    if level is None:
        return UNLIMITED
    memory = spec.memory[level]
    return memory.size / 2.0 if halve and memory.double_buffer else memory.size


def columns(specs: Sequence[NpuSpec]) -> int:
    """Return how many columns of `kernels` cards take side by side: those of the one with the most levels between."""
    return kernels.SIZE + kernels.MIDDLE_SIZE * max([0, *(len(middle_levels(spec)) - 1 for spec in specs)])


def common_columns(spec: NpuSpec, size: int) -> np.ndarray:
    """Return the ``size`` columns of `kernels` that do not depend on the dtype, float64."""
    staging, shared, outer = levels(spec)
    matrix, card = spec.matrix, np.zeros(size)
    flow = {"os": kernels.OS, "ws": kernels.WS, "is": kernels.IS}.get(matrix.dataflow, kernels.CUBE)
    quantum = matrix.tile_quantum or (matrix.rows, matrix.cols, matrix.depth)
    middles = middle_levels(spec)
    latency = sum(spec.memory[name].latency for name in (*middles, *((shared,) if shared else ())))
    card[:21] = (
        spec.cores, spec.power.sustained_clock or spec.clock, 0.0, matrix.rows, matrix.cols, matrix.arrays_per_core, flow, *quantum,
        sums_room(spec, staging),
        room(spec, staging, False), room(spec, matrix.operand_a), room(spec, matrix.operand_b),
        min(spec.bandwidth(staging), UNLIMITED) if staging else UNLIMITED, spec.memory[shared].multicast if shared else 1.0,
        step_cycles(spec), latency, spec.memory[outer].latency,
        shared_rate(spec), shared_rate(spec, write=True),
    )  # fmt: skip
    card[kernels.RATE_MEMORY] = spec.bandwidth(outer)
    card[kernels.SHARED] = spec.memory[shared].size * SHARED_USABLE if shared else 0.0
    card[kernels.SPLIT] = spec.runtime.split_k
    card[kernels.STATIC] = spec.runtime.partition == "static"
    card[kernels.DEPTH] = matrix.depth
    card[kernels.REACH] = spec.memory[outer].reach or 0.0
    card[kernels.DOUBLING] = of_warps(spec)
    for column, level in (
        (kernels.PORT_A, matrix.operand_a), (kernels.PORT_B, matrix.operand_b), (kernels.PORT_SUM, matrix.accumulator),
    ):  # fmt: skip
        own = level is not None and level != staging  # in the staging level they pass the port
        card[column] = min(spec.bandwidth(level), UNLIMITED) if own and level else UNLIMITED
    for at, name in enumerate(middles):
        memory, first = spec.memory[name], kernels.MIDDLE + at * kernels.MIDDLE_SIZE
        described = memory.size * SHARED_USABLE, instances(spec, name), between_rate(spec, name), memory.multicast
        card[first : first + kernels.MIDDLE_SIZE] = described
    return card


def sums_room(spec: NpuSpec, staging: str | None) -> float:
    """Return the bytes that the sums of a tile may take [B]: of registers, which nothing fills from behind, the share warps have left."""
    level = spec.matrix.accumulator or staging
    return room(spec, level, halve=False) * SUMS_SHARE if of_warps(spec) else room(spec, level)


def of_warps(spec: NpuSpec) -> bool:
    """Whether tiles are worked on by warps: dot-product units whose sums lie in the registers of the vector unit.

    A power of two of warps holds a power of two (or thrice one) of quanta each way, in a part of the registers.
    """
    return spec.matrix.dataflow == "dot" and spec.vector.buffer is not None and spec.matrix.accumulator == spec.vector.buffer


def step_cycles(spec: NpuSpec) -> float:
    """Return the cycles between two steps of a core's pipeline [cycles]: stated as ``runtime.issue``, on a GPU else typical of its kind.

    Warps that copy operands, wait at a barrier and issue every product themselves take longer than a copy engine and a matrix unit
    that run on their own (Hopper's TMA and warp-group products).
    """
    if spec.matrix.dataflow != "dot" or spec.runtime.issue > 0.0:
        return spec.runtime.issue
    return STEP_CYCLES if of_warps(spec) and not spec.matrix.asynchronous else STEP_CYCLES_ASYNCHRONOUS


def between_rate(spec: NpuSpec, level: str) -> float:
    """Return the sustained bandwidth of all instances of a level between the cores and the shared one [B/s]."""
    return min(sustained.bandwidth(spec, level) * instances(spec, level), UNLIMITED)


def instances(spec: NpuSpec, level: str) -> int:
    """Return how many instances of a level outside the cores there are."""
    memory = spec.memory[level]
    return -(-spec.cores // (memory.cores or spec.cores)) if memory.scope == "cluster" else 1


def through_rate(spec: NpuSpec) -> float:
    """Return the sustained rate of what passes every level outside the cores but the outermost once [B/s]."""
    return min(shared_rate(spec), *(between_rate(spec, level) for level in middle_levels(spec)), UNLIMITED)


def shared_rate(spec: NpuSpec, write: bool = False) -> float:
    """Return the sustained bandwidth of the shared level [B/s], of the outermost where there is none."""
    _, shared, outer = levels(spec)
    if shared is None:
        return spec.bandwidth(outer, write)
    return min(sustained.bandwidth(spec, shared, write), UNLIMITED)


def dtype_columns(spec: NpuSpec, name: str, common: np.ndarray, scalars: tuple[float, float, float, float]) -> np.ndarray:
    """Return all columns of a dtype that products run as (``name``), float64; ``scalars`` as `pack.calibration`."""
    card: np.ndarray = common.copy()
    card[kernels.ETA_COMPUTE], card[kernels.ETA_MEMORY], card[kernels.LAUNCH] = scalars[:3]
    rate = spec.matrix.rate.get(name)
    if rate is not None:
        card[kernels.MACS] = spec.matrix.macs_per_cycle * rate
    else:  # multiply-adds on the vector unit, in blocks of registers
        card[kernels.MACS] = spec.vector.lanes * spec.vector.rate.get(name, 1.0)
        card[kernels.IS_VECTOR], card[kernels.FLOW] = 1.0, kernels.CUBE
        card[[kernels.QM, kernels.QN, kernels.QK]] = BLOCK, BLOCK, 1.0
        card[[kernels.ROWS, kernels.COLS, kernels.DEPTH]] = BLOCK, BLOCK, 1.0
        card[[kernels.BUFFER_A, kernels.BUFFER_B, kernels.PORT_A, kernels.PORT_B, kernels.PORT_SUM]] = UNLIMITED
    card[kernels.STEP_WIDTH] = max(kernels.STEP_K, card[kernels.QK])
    return card


def check_smallest(spec: NpuSpec, name: str, size: float, card: np.ndarray) -> None:
    """Refuse a card that has no room for one tile of its smallest size.

    Parameters
    ----------
    spec : NpuSpec
        Card.
    name : str
        What the product runs as.
    size : float
        Bytes an element [B].
    card : ndarray
        Its columns.

    Raises
    ------
    InvalidSpec
        Naming the level that is too small, and by how much.
    """
    staging, matrix = levels(spec)[0], spec.matrix
    tm, tn, tk = (float(card[at]) for at in (kernels.QM, kernels.QN, kernels.QK))
    held = (
        (matrix.accumulator or staging, "the sums", tm * tn * max(4.0, size), card[kernels.ACCUMULATOR]),
        (staging, "two steps of A and B", 2.0 * (tm + tn) * tk * size, card[kernels.STAGING]),
        (matrix.operand_a, "a step of A", tm * tk * size, card[kernels.BUFFER_A]),
        (matrix.operand_b, "a step of B", tn * tk * size, card[kernels.BUFFER_B]),
    )
    for level, what, need, has in held:
        if level is not None and need > has:
            raise InvalidSpec(
                f"{spec.name}: memory.{level}.size",
                f"{what} of the smallest {name} tile ({tm:g}x{tn:g}x{tk:g}) need {units.format(need, 'B', 4)}, "
                f"{level} has {units.format(float(has), 'B', 4)} for them",
                f"make {level} larger, or the tile quantum smaller",
            )
