"""Power: joules of operators, the clock a power limit leaves, and energies scaled from published ones where a card states none.

An operator takes ``E = idle t + operations x J/FLOP + sum over levels of bytes x J/B``, the dynamic part at most ``(TDP - idle) t``: a
card holds its limit by lowering clock and voltage (`workbench.cost.kernels_power.clock_share`).

What a card states (``power.energy``, ``power.vector_energy``, ``memory.<level>.energy``) is used as it is. Where it names only its
process, published energies are scaled to it: good for a factor of two, never used to lower a clock, and named in `Joules.why`.

Sources: arithmetic at 7 nm (and 45 nm: Horowitz, ISSCC 2014) from Jouppi et al., Ten Lessons From Three Generations Shaped Google's
TPUv4i (ISCA 2021), table 2; what surrounds it, and bytes by level, as measured on whole GPUs by Antepara et al., Benchmark-driven
Models for Energy Analysis and Attribution of GPU-Accelerated Supercomputing (SC 2025), table 3. A device's own energy is a third of
what a byte of HBM takes there (3.9 pJ/bit, O'Connor et al., MICRO 2017): the rest is the controller and the way to it.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from workbench.cost import kernels, kernels_power
from workbench.cost.cost import LEVELS, level_names
from workbench.cost.matrix import Priced
from workbench.cost.pack import Cards
from workbench.cost.pack_matrix import levels, middle_levels
from workbench.hardware.spec import NpuSpec

PJ = 1e-12
MULTIPLY_ADD = {
    "int4": 0.05, "int8": 0.10, "fp8": 0.25, "int16": 0.30, "bf16": 0.59, "fp16": 0.72, "tf32": 0.72, "int32": 1.51, "fp32": 1.69,
    "fp64": 6.80,
}  # fmt: skip
"""Of a multiplication and the addition of its product at 7 nm [pJ]: TPUv4i, table 2 (int8 0.07 + 0.03, bf16 0.21 + 0.38, fp16 0.34 + 0.38,
int32 1.48 + 0.03, fp32 1.31 + 0.38); int4, fp8, int16, tf32 and fp64 are assumed from the width of their products."""
NODE_POWER = math.log(2.6) / math.log(45.0 / 7.0)  # energies fall 2.6-fold (geometric mean of the table) from 45 to 7 nm
AROUND_MATRIX = 0.70 / 0.36  # operands, instructions, clock tree: fp16 products of A100 (7 nm) take 0.70 pJ/FLOP, bare ones 0.36
AROUND_VECTOR = 28.5 / 3.4  # lanes fetch every operand: fp64 of A100's vector unit takes 28.5 pJ/FLOP, bare 3.4
BYTE = {"local": 12.7, "cluster": 25.0, "shared": 37.7, "memory": 104.9}
"""Of a byte that a level gives or takes, above the level inside it, control included [pJ]: 1.59, 4.71 and 13.11 pJ/bit of A100. Process
hardly matters: Hopper (4 nm) 1.45, 4.87 and 11.68; HBM of MI250X and MI300A 13.6 and 14.7 pJ/bit. ``cluster`` is assumed between."""
IDLE = 0.15  # of the TDP where idle power is not stated: A100 54 of 400 W (Antepara et al.), H100 72 of 700 W (arXiv 2605.23918)
FLOOR = 0.65  # lowest over nominal voltage: flat below, linear above (Guerreiro et al., HPCA 2018)


@dataclass(frozen=True)
class Joules:
    """What work takes on S cards; nan where nothing is known.

    ``operation`` [S, 2 D] [J/FLOP]: of products by dtype of ``Cards.dtypes`` (vector unit where they run there), then of vector
    operations; ``byte`` [S, Cards.levels] [J/B]; ``idle`` and ``watts`` (limit less idle; infinite without one) [S] [W]; ``acts``
    [S, 2 D]: whether the limit lowers the clock, which takes a stated energy. ``why`` [S] says what is estimated or missing.
    """

    operation: np.ndarray
    byte: np.ndarray
    idle: np.ndarray
    watts: np.ndarray
    acts: np.ndarray
    why: tuple[str, ...]


def joules(cards: Cards) -> Joules:
    """Return the energies of packed cards; cards whose power and energies are the same share the work."""
    size = len(cards.specs)
    out = Joules(
        np.empty((size, 2 * len(cards.dtypes))), np.empty((size, cards.levels)), np.empty(size), np.empty(size),
        np.zeros((size, 2 * len(cards.dtypes)), dtype=bool), (),
    )  # fmt: skip
    known: dict[tuple[object, ...], int] = {}
    why: list[str] = []
    for s, spec in enumerate(cards.specs):
        memory = tuple((level, part.energy, part.bandwidth is None, part.scope) for level, part in spec.memory.items())
        matrix = (spec.matrix.staging, spec.matrix.operand_a, spec.matrix.operand_b, spec.matrix.accumulator, *spec.matrix.rate)
        key = (spec.name, id(spec.power), id(spec.vector), cards.runs_as[s], matrix, memory)
        first = known.setdefault(key, s)
        if first != s:
            for array in (out.operation, out.byte, out.idle, out.watts, out.acts):
                array[s] = array[first]
            why.append(why[first])
            continue
        out.operation[s], out.acts[s] = _operations(spec, cards.dtypes, cards.runs_as[s])
        out.byte[s] = _bytes(spec, cards.levels)
        out.idle[s] = idle = idle_watts(spec)
        out.watts[s] = math.inf if spec.power.tdp is None else spec.power.tdp - idle
        why.append(estimated(spec))
    return Joules(out.operation, out.byte, out.idle, out.watts, out.acts, tuple(why))


def node(spec: NpuSpec) -> float:
    """Return the energy of a card's process relative to 7 nm: ``(nm / 7)^0.51``; nan where the card does not name it."""
    process = spec.power.process
    return math.nan if process is None else float((float(process.split()[0]) / 7.0) ** NODE_POWER)


def idle_watts(spec: NpuSpec) -> float:
    """Return what a card draws whatever runs [W]: stated, else `IDLE` of the TDP, else nan."""
    if spec.power.idle is not None:
        return spec.power.idle
    return math.nan if spec.power.tdp is None else IDLE * spec.power.tdp


def operation_joules(spec: NpuSpec, dtype: str, unit: str = "matrix") -> float:
    """Return the energy of an operation [J/FLOP]: stated, else scaled from the nearest stated dtype, else from the process, else nan.

    Parameters
    ----------
    spec : NpuSpec
        Card.
    dtype : str
        Dtype that runs.
    unit : {"matrix", "vector"}
    """
    stated = spec.power.energy if unit == "matrix" else spec.power.vector_energy
    if dtype in stated:
        return stated[dtype]
    bare = MULTIPLY_ADD.get(dtype, MULTIPLY_ADD["fp32"])
    if stated:
        near = min(stated, key=lambda name: abs(math.log(MULTIPLY_ADD[name] / bare)))
        return stated[near] * bare / MULTIPLY_ADD[near]
    return bare / 2.0 * PJ * (AROUND_MATRIX if unit == "matrix" else AROUND_VECTOR) * node(spec)


def estimated(spec: NpuSpec) -> str:
    """Return what of a card's energies is estimated or missing, in words; empty where all are stated."""
    power = spec.power
    operations = bool(power.energy) and bool(power.vector_energy)
    if not operations and power.process is None:
        return f"no energy of {spec.name}: it states neither power.energy and power.vector_energy nor power.process to scale published ones"
    if math.isnan(idle_watts(spec)):
        return f"no energy of {spec.name}: neither its idle power nor its TDP is stated"
    levels_stated = all(level.energy is not None for level in spec.memory.values() if level.bandwidth is not None)
    parts = ((f"operations (published ones scaled to {power.process})", operations), ("bytes (as measured on A100)", levels_stated))
    missing = [text for text, stated in (*parts, ("idle power", power.idle is not None)) if not stated]
    return f"energy of {spec.name} is estimated: {', '.join(missing)}; within about a factor of 2" if missing else ""


def sustained_clock(spec: NpuSpec, dtype: str) -> float:
    """Return the clock a power limit leaves while a matrix unit is full [Hz]: stated, else from TDP and stated energies, else the clock.

    At the share x of the clock, products take ``x peak E v(x)^2`` and idle power; see `workbench.cost.kernels_power.clock_share`.
    """
    if spec.power.sustained_clock is not None or spec.power.tdp is None or not spec.power.energy:
        return spec.power.sustained_clock or spec.clock
    watts = spec.power.tdp - idle_watts(spec)
    drawn = spec.unit_peak("matrix", dtype) * operation_joules(spec, dtype)
    return spec.clock * float(kernels_power.clock_share(drawn, 0.0, 1.0, 0.0, 0.0, watts, FLOOR))


def dynamic(work: np.ndarray, on_matrix: np.ndarray, column: np.ndarray, cards: Cards, level: np.ndarray, of: Joules) -> np.ndarray:
    """Return the dynamic energy of operators at full clock.

    Parameters
    ----------
    work : ndarray, shape (U,)
        Operations [FLOP].
    on_matrix : ndarray of bool, shape (U,)
        Whether they are products.
    column : ndarray of int, shape (U,)
        Index into ``cards.dtypes``.
    cards : Cards
        S cards.
    level : ndarray, shape (U, S, Cards.levels)
        Bytes by level [B].
    of : Joules
        Energies of the cards.

    Returns
    -------
    ndarray, shape (2, U, S)
        Of what hangs on the core's voltage, and of the outermost memory [J].
    """
    out = np.empty((2, *level.shape[:2]))
    kernels_power.dynamic_joules(work, _columns(on_matrix, column, cards), of.operation, level, of.byte, out[0], out[1])
    return out


def throttled(priced: Priced, work: np.ndarray, on_matrix: np.ndarray, column: np.ndarray, cards: Cards, of: Joules | None = None) -> None:
    """Lengthen, in place, the times of operators whose power would exceed a card's limit; only where the card states energies.

    ``calibration.<dtype>.compute`` is the share of the peak sustained at full clock: a fit made with energies stated runs through
    here too, so that what the limit explains is not fitted again. A stated ``sustained_clock`` replaces the limit.

    Parameters
    ----------
    priced : Priced
        U operators on S cards at full clock; seconds and resources change.
    work, on_matrix, column, cards
        As in `dynamic`.
    of : Joules, optional
        Energies of the cards, where they are known already.
    """
    if not any(spec.power.energy or spec.power.vector_energy for spec in cards.specs):
        return
    of = joules(cards) if of is None else of
    core, other = dynamic(work, on_matrix, column, cards, priced.level, of)
    overhead = priced.detail[..., 0] + priced.detail[..., 1]
    kernels_power.throttle(
        core, other, _columns(on_matrix, column, cards), of.acts, of.watts, FLOOR, priced.seconds, priced.resource, overhead
    )


def energy(seconds: np.ndarray, parts: np.ndarray, of: Joules) -> np.ndarray:
    """Return the energy of operators [J], float64 [U, S].

    Parameters
    ----------
    seconds : ndarray, shape (U, S)
        Their times, whatever they rest on [s].
    parts : ndarray, shape (2, U, S)
        Dynamic energy, see `dynamic` [J].
    of : Joules
        Energies of the cards.
    """
    out = np.empty(seconds.shape)
    kernels_power.energy(np.ascontiguousarray(seconds), parts[0], parts[1], of.idle, of.watts, out)
    return out


def _columns(on_matrix: np.ndarray, column: np.ndarray, cards: Cards) -> np.ndarray:
    return np.where(on_matrix, column, column + len(cards.dtypes))


def _operations(spec: NpuSpec, dtypes: Sequence[str], runs_as: Sequence[str]) -> tuple[np.ndarray, np.ndarray]:
    """Return J/FLOP and whether a limit acts, of products and of vector operations by dtype [2 D]."""
    units = ["matrix" if name in spec.matrix.rate else "vector" for name in runs_as]
    made = [operation_joules(spec, name or dtype, unit) for name, dtype, unit in zip(runs_as, dtypes, units, strict=True)]
    made += [operation_joules(spec, dtype, "vector") for dtype in dtypes]
    limit = spec.power.tdp is not None and spec.power.sustained_clock is None
    acts = [
        limit and bool(spec.power.energy if unit == "matrix" else spec.power.vector_energy) for unit in (*units, *["vector"] * len(dtypes))
    ]
    return np.array(made), np.array(acts, dtype=bool)


def _bytes(spec: NpuSpec, width: int) -> np.ndarray:
    """Return J/B by `level_names`; feeds of the array and the vector unit's buffer count with the operation unless stated."""
    staging, shared, outer = levels(spec)
    matrix = spec.matrix
    names = {
        "local": staging, "shared": shared, "memory": outer, "operand_a": matrix.operand_a, "operand_b": matrix.operand_b,
        "accumulator": matrix.accumulator, "vector": spec.vector.buffer,
    }  # fmt: skip
    names |= dict(zip((LEVELS[kernels.FIRST_MIDDLE], *level_names(width)[kernels.MORE_MIDDLES :]), middle_levels(spec), strict=False))
    out = np.zeros(width)
    for slot, role in enumerate(level_names(width)):
        level = spec.memory.get(names.get(role) or "")
        stated = level.energy if level is not None else None
        if stated is not None:
            out[slot] = stated
        elif level is not None and role in BYTE:
            out[slot] = BYTE[role] * PJ
    return out
