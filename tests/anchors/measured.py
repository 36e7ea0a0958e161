"""Measured matrix products of public devices, and what each measuring harness does (shared/measured)."""

from __future__ import annotations

import csv
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from workbench.cost.calibrate import Products, fold


@dataclass(frozen=True)
class Series:
    """One device, source and dtype: which rows, which card, bytes an element of A, B, C, and what the harness keeps warm.

    ``copies``: working sets and outputs that the harness cycles through; aiconfigurator replays up to 6 independent copies.
    """

    device: str
    source: str
    dtype: str
    card: str
    operand: tuple[float, float, float]
    copies: tuple[float, float]


SERIES = {
    "A100 bf16": Series("A100-SXM4-80GB", "aiconfigurator", "bf16", "a100-sxm4-80gb", (2, 2, 2), (6, 2)),
    "H200 bf16": Series("H200-SXM", "aiconfigurator", "bf16", "h200-sxm", (2, 2, 2), (6, 2)),
    "L40S bf16": Series("L40S", "aiconfigurator", "bf16", "l40s", (2, 2, 2), (6, 2)),
    "A100 fp16 (vidur)": Series("A100-SXM4-80GB", "vidur", "fp16", "a100-sxm4-80gb", (2, 2, 2), (1, 1)),
    "V100 fp16 (DeepBench)": Series("V100", "DeepBench", "fp16", "v100-sxm2-32gb", (2, 2, 2), (1, 1)),
    "V100 fp32 (DeepBench)": Series("V100", "DeepBench", "fp32", "v100-sxm2-32gb", (4, 4, 4), (1, 1)),
    "V100 fp32": Series("V100-PCIE-32GB", "NeuSight", "fp32", "v100-pcie-32gb", (4, 4, 4), (1, 1)),
    "A100 fp32": Series("A100-PCIE-40GB", "NeuSight", "fp32", "a100-pcie-40gb", (4, 4, 4), (1, 1)),
    "T4 fp32": Series("T4", "NeuSight", "fp32", "t4", (4, 4, 4), (1, 1)),
    "P100 fp32": Series("P100-PCIE-16GB", "NeuSight", "fp32", "p100-pcie-16gb", (4, 4, 4), (1, 1)),
}


def load(shared: Path, series: Series) -> tuple[Products, np.ndarray]:
    """Return the products of a series and which of them are held back from fitting (a hash of op, dtype and shape)."""
    with (shared / "measured" / "compute" / "gemm.csv").open() as file:
        rows = [
            row
            for row in csv.DictReader(file)
            if row["device"] == series.device and row["source"].startswith(series.source) and row["dtype"] == series.dtype
        ]
    shape = np.array([[float(row[name]) for name in "BMNK"] for row in rows])
    held = np.array([fold("gemm", series.dtype, tuple(int(extent) for extent in extents)) == 1 for extents in shape])
    measured = np.array([float(row["latency_us"]) for row in rows]) * 1e-6
    return Products(shape, np.tile(np.array(series.operand), (len(rows), 1)), measured, series.copies), held
