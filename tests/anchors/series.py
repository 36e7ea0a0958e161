"""Public measurements by device, harness and dtype: rows as operators, the card they ran on, what the harness shows of it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import yaml

from workbench.cost.errors import groups_of
from workbench.cost.fit import hashes
from workbench.cost.harness import Harness
from workbench.cost.predictors import Predictor, modelled, runs_as
from workbench.hardware.npu import load_npu
from workbench.hardware.spec import NpuSpec
from workbench.operators.rows import join, take
from workbench.operators.table import DIMS, MAX_DIMS, Dtype, Kind, OpTable
from workbench.study.operators_csv import read_operators

FILES = ("gemm", "attention", "vector", "conv", "rnn")
FEWEST = 40


@cache
def knowledge() -> Mapping[str, Any]:
    """Return what is known of the harnesses and devices of the tables."""
    return yaml.safe_load(Path(__file__).with_name("harnesses.yaml").read_text(encoding="utf-8"))


def harness(name: str) -> Harness:
    """Return copies and clock of a public harness."""
    of = knowledge()["harnesses"][name]
    attention = of.get("attention")
    own = (float(attention[0]), float(attention[1])) if attention else None
    return Harness((float(of["copies"][0]), float(of["copies"][1])), of["clock"], own)


@dataclass(frozen=True)
class Series:
    """Rows of one device, harness and (stated) dtype. ``version`` [U] names the library version of each row."""

    device: str
    source: str
    dtype: str
    table: OpTable
    version: np.ndarray

    @property
    def name(self) -> str:
        return f"{self.device} {self.source} {self.dtype}"

    @property
    def spec(self) -> NpuSpec:
        return load_npu(knowledge()["cards"][self.device])

    @property
    def harness(self) -> Harness:
        return harness(self.source)

    @property
    def runs(self) -> str:
        """The dtype whose scalars price the rows."""
        return runs_as(self.spec, Dtype(self.table.dtype[0]).name.lower())

    @property
    def group(self) -> np.ndarray:
        return groups_of(self.table)

    @property
    def held(self) -> np.ndarray:
        """Rows of the scored half, by a hash of operator, dtype and shape [U]."""
        return hashes(self.table)[:, 0] % 2 == 1

    def take(self, rows: np.ndarray) -> Series:
        """Return some rows (mask or indices)."""
        return replace(self, table=take(self.table, rows), version=self.version[rows])

    def make(self, spec: NpuSpec | None = None) -> Callable[[OpTable], Predictor]:
        """Return the predictor of rows of this series: the model as the harness shows it, quantise kernels included."""
        card, shown, runs = spec or self.spec, self.harness, self.runs
        extra = self.dtype in knowledge()["harnesses"][self.source]["quantise"]

        def predictor(rows: OpTable) -> Predictor:
            one = modelled(card, runs, rows, shown)
            products = np.isin(rows.kind, (Kind.GEMM, Kind.BATCHED_GEMM))
            if not extra or not products.any():
                return one
            two, there = modelled(card, runs, quantise(take(rows, products)), shown), np.flatnonzero(products)

            def both(points: np.ndarray) -> np.ndarray:
                seconds = one(points)
                seconds[there] += two(points)
                return seconds

            return both

        return predictor


def quantise(products: OpTable) -> OpTable:
    """Return the kernel before each product that turns its left operand from 16 to 8 bits: one pass, 2 bytes in, 1 byte out."""
    elements = products.dims[:, : len(DIMS[Kind.GEMM])][:, [0, 1, 3]].prod(axis=1)
    dims = np.zeros((len(products), MAX_DIMS), dtype=np.int64)
    dims[:, 0] = elements
    size = len(products)
    return replace(
        products,
        name=("quantize",) * size,
        kind=np.full(size, Kind.ELEMENTWISE, dtype=np.int8),
        dims=dims,
        flops=2.0 * elements,
        bytes_read=2.0 * elements,
        bytes_written=1.0 * elements,
    )


def load(shared: Path, files: tuple[str, ...] = FILES, where: Mapping[str, str] | None = None) -> list[Series]:
    """Return every series of a catalogued device with enough rows; ``where`` as in `read_operators`."""
    parts: dict[tuple[str, str, str], list[tuple[OpTable, np.ndarray]]] = {}
    for name in files:
        operators = read_operators(shared / "measured" / "compute" / f"{name}.csv", where=where)
        header = [column.lower() for column in operators.sheet.header]
        cells = [operators.sheet.rows[row] for row in operators.row]
        device, source, dtype = (np.array([row[header.index(column)] for row in cells]) for column in ("device", "source", "dtype"))
        first = np.array([text.split(" ")[0] for text in source])
        for key in sorted(set(zip(device.tolist(), first.tolist(), dtype.tolist(), strict=True))):
            rows = (device == key[0]) & (first == key[1]) & (dtype == key[2]) & (operators.table.measured_s > 0)
            if key[0] in knowledge()["cards"] and rows.any():
                parts.setdefault(key, []).append((take(operators.table, rows), source[rows]))
    out = []
    for (device_, source_, dtype_), found in sorted(parts.items()):
        table, version = join([table for table, _ in found]), np.concatenate([version for _, version in found])
        if len(table) >= FEWEST:
            out.append(_priced(Series(device_, source_, dtype_, table, version)))
    return out


def _priced(series: Series) -> Series:
    """Leave out what no model prices."""
    seconds = series.make()(series.table)(np.array([[0.8, 0.8, 5e-6]]))[:, 0]
    return series.take(np.isfinite(seconds) & (seconds > 0) & (series.group >= 0))
