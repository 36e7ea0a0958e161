"""The accuracy report: every measured operator of a catalogued card, priced through the public door, beside the calibrated roofline."""

from __future__ import annotations

import datetime
import hashlib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from workbench.cost.calibrate import accuracy, fit, fold, tile_model
from workbench.cost.cost import Bound, OpCost
from workbench.cost.estimate import estimate
from workbench.cost.models import PRODUCTS
from workbench.hardware.npu import load_npu
from workbench.hardware.spec import NpuSpec
from workbench.operators.table import DIMS, Dtype, Kind, OpTable
from workbench.study.calibration import products_of
from workbench.study.operators_csv import Operators, read_operators

FILES = ("gemm", "attention", "vector", "conv", "rnn")
CARDS = {
    "A100-SXM4-80GB": "a100-sxm4-80gb", "A100-PCIE-40GB": "a100-pcie-40gb", "H200-SXM": "h200-sxm", "L40S": "l40s", "T4": "t4",
    "V100-PCIE-32GB": "v100-pcie-32gb", "V100": "v100-sxm2-32gb", "P100-PCIE-16GB": "p100-pcie-16gb",
}  # fmt: skip
COPIES = {"aiconfigurator": 6.0}  # working sets a harness cycles through; the others repeat one
FEWEST = 40
DRAWS = 1000
HEAD = """# Accuracy of operator times

Written by `python3 run.py accuracy` on {date}; digest of the measurements {digest}.

source: this project's predictions against public measurements (LLMCompass, DeepBench, NeuSight, vidur, aiconfigurator, ml-engineering)

Scored on the half of the shapes that a hash of (operator, dtype, shape) holds back; errors in percent.

- **Model**: `estimate` with the card as shipped and cold operands, nothing fitted here. The scalars of some cards were fitted on rows
  of these tables (`calibration` in `data/npu/`) and some constants of the model were chosen on them: there it is partly in-sample.
  Harnesses add overheads of 2 to 40 us that no card has: they show as negative bias of small operators.
- **Fitted**: scalars fitted on the other half: three of products, with operands as warm as the harness leaves them; two of other
  kinds (overhead, one efficiency).
- **Roofline**: three scalars fitted on the other half. **Skill**: 1 - MAPE fitted / MAPE roofline, 90 % bootstrap.
- **In**: measured times inside the model's 80 % interval.
- Two library versions on one card differ by 6.7 to 13.8 % (mean): rows of several versions cannot be met more closely than that.

| device, harness, kind, dtype | rows | model MAPE | median | P90 | bias | by time | fitted | roofline | skill | in |
|---|---|---|---|---|---|---|---|---|---|---|"""


@dataclass(frozen=True)
class Line:
    """Errors of one device, harness, kind and dtype on the held half of its shapes."""

    series: str
    rows: int
    shipped: dict[str, float]
    fitted: dict[str, float]  # with scalars fitted on the other half: three of products, two of other kinds
    roofline: dict[str, float]
    skill: tuple[float, float]
    inside: float


def lines(shared: Path) -> Iterator[Line]:
    """Yield the lines of the report, by file and device."""
    for name in FILES:
        operators = read_operators(shared / "measured" / "compute" / f"{name}.csv")
        header = [column.lower() for column in operators.sheet.header]
        cells = [operators.sheet.rows[row] for row in operators.row]
        device = np.array([row[header.index("device")] for row in cells])
        source = np.array([row[header.index("source")].split(" ")[0] for row in cells])
        stated = np.array([row[header.index("dtype")] for row in cells])
        kinds, names = operators.table.kind, np.array(operators.table.name)
        kinds = np.array([name if "attention" in name else Kind(kind).name.lower() for name, kind in zip(names, kinds, strict=True)])
        for of, by, kind, dtype in sorted(set(zip(device.tolist(), source.tolist(), kinds.tolist(), stated.tolist(), strict=True))):
            rows = np.flatnonzero((device == of) & (source == by) & (kinds == kind) & (stated == dtype))
            if of in CARDS and len(rows) >= FEWEST:
                yield line(operators, rows, f"{of} {by} {kind} {dtype}", load_npu(CARDS[of]), by)


def line(operators: Operators, rows: np.ndarray, series: str, spec: NpuSpec, source: str) -> Line:
    """Score one series."""
    table = operators.table
    names = [(table.name[row], tuple(table.dims[row, : len(DIMS[Kind(table.kind[row])])].tolist())) for row in rows]
    dtype = Dtype(table.dtype[rows[0]]).name.lower()
    held = np.array([fold(name, dtype, dims) == 1 for name, dims in names])
    cost = estimate(table, [spec])
    scored, rest = rows[held], rows[~held]
    measured, shipped = table.measured_s[scored], cost.seconds[scored, 0]
    roof = roofline(table, spec, rest, scored, dtype)
    if table.kind[rows[0]] in PRODUCTS:
        copies = COPIES.get(source, 1.0)
        one, two = products_of(operators, rest, copies), products_of(operators, scored, copies)
        fitted = tile_model(spec, dtype, two)(fit(tile_model(spec, dtype, one), one.measured_s))
    else:
        fitted = rescaled(cost, table, rest, scored)
    draws = np.random.default_rng(0).integers(0, len(scored), (DRAWS, len(scored)))
    ours, theirs = (np.abs(times / measured - 1)[draws].mean(axis=1) for times in (fitted, roof))
    low, high = np.quantile(1 - ours / theirs, [0.05, 0.95])
    inside = (measured >= cost.low_s[scored, 0]) & (measured <= cost.high_s[scored, 0])
    return Line(
        series,
        len(scored),
        accuracy(shipped, measured),
        accuracy(fitted, measured),
        accuracy(roof, measured),
        (low, high),
        float(inside.mean()),
    )


def rescaled(cost: OpCost, table: OpTable, rest: np.ndarray, scored: np.ndarray) -> np.ndarray:
    """Return the model's seconds with two scalars fitted on the rest: the overhead, and one efficiency of all else."""
    body = np.maximum(cost.seconds[:, 0] - cost.resource_s[:, 0, Bound.LAUNCH], 1e-9)

    def times(rows: np.ndarray, scalars: np.ndarray) -> np.ndarray:
        return scalars[2] + body[rows] * (0.6 / scalars[1])

    return times(scored, fit(lambda scalars: times(rest, scalars), table.measured_s[rest]))


def roofline(table: OpTable, spec: NpuSpec, rest: np.ndarray, scored: np.ndarray, dtype: str) -> np.ndarray:
    """Return the calibrated roofline's seconds: t0 + max(FLOPs / (a peak), bytes / (b bandwidth)), fitted on the rest."""
    compute = table.flops / spec.peak_flops(dtype)
    memory = (table.bytes_read + table.bytes_written) / spec.bandwidth(list(spec.memory)[-1])

    def times(rows: np.ndarray, scalars: np.ndarray) -> np.ndarray:
        return scalars[2] + np.maximum(compute[rows] / scalars[0], memory[rows] / scalars[1])

    return times(scored, fit(lambda scalars: times(rest, scalars), table.measured_s[rest]))


def markdown(found: list[Line], shared: Path) -> str:
    """Return the report."""
    content = b"".join((shared / "measured" / "compute" / f"{name}.csv").read_bytes() for name in FILES)
    digest = hashlib.sha256(content).hexdigest()[:16]
    head = HEAD.format(date=datetime.date.today().isoformat(), digest=digest)
    return "\n".join([head, *map(_row, found)]) + "\n"


def _row(of: Line) -> str:
    figures = " | ".join(f"{100 * of.shipped[name]:.1f}" for name in ("mape", "median", "p90", "bias", "time_weighted"))
    fitted, roof = f"{100 * of.fitted['mape']:.1f}", f"{100 * of.roofline['mape']:.1f}"
    skill = f"{of.skill[0]:.2f} .. {of.skill[1]:.2f}"
    return f"| {of.series} | {of.rows} | {figures} | {fitted} | {roof} | {skill} | {100 * of.inside:.0f} |"
