"""What is left out of a fit altogether: a card, of which only the sustained peak is known, or a family of shapes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from tests.anchors.general import wide, widening
from tests.anchors.scored import ROOF_START, START, Scored
from tests.anchors.series import Series
from workbench.cost.calibrate import accuracy
from workbench.cost.fit import fit_scalars
from workbench.cost.predictors import modelled, roofline
from workbench.hardware.schema import ERROR_GROUPS
from workbench.operators.listed import Listed, operator_list
from workbench.operators.rows import take
from workbench.operators.table import DIMS, Dtype, Kind, OpTable
from workbench.operators.words import Word

CARD_SETS = {"aiconfigurator bf16": ("aiconfigurator", "bf16"), "NeuSight fp32": ("NeuSight", "fp32")}
FEWEST = 30
MOST_ROWS = 600  # of a family that a fit looks at
LARGEST = 0.9
PEAK = np.array([1.0, 1e9, 0.0])


@dataclass(frozen=True)
class CardLine:
    """One kind on a card left out: rows, model and roofline given the card's sustained peak, coverage of the others' interval."""

    series: str
    kind: str
    rows: int
    peak: float
    model: dict[str, float]
    roofline: dict[str, float]
    inside: float


@dataclass(frozen=True)
class FamilyLine:
    """A family of shapes scored by scalars fitted on all other shapes of its kind."""

    series: str
    family: str
    rows: int
    model: dict[str, float]
    roofline: dict[str, float]


def sustained_peak(series: Series) -> float:
    """Return the share of the peak that a card sustains: the upper quartile of the rates of its largest products, a tenth by FLOPs."""
    products = take(series.table, np.isin(series.table.kind, (Kind.GEMM, Kind.BATCHED_GEMM)))
    largest = take(products, products.flops >= np.quantile(products.flops, LARGEST))
    ideal = roofline(series.spec, largest)(PEAK[None])[:, 0]
    return min(float(np.quantile(ideal / largest.measured_s, 0.75)), 1.0)


def compute_share(series: Series, peak: float, scalars: np.ndarray) -> np.ndarray:
    """Return scalars with the compute share at which the model runs a product of 8192 x 8192 x 8192 at the sustained peak."""
    big = operator_list([Listed("gemm", Dtype(series.table.dtype[0]), (1, 8192, 8192, 8192), Word(Kind.GEMM))])
    ideal, model, out = roofline(series.spec, big)(PEAK[None])[0, 0], modelled(series.spec, series.runs, big), scalars.copy()
    out[0] = peak
    for _ in range(8):
        out[0] = min(out[0] * peak * model(out[None])[0, 0] / ideal, 1.0)
    return out


def cards(found: Sequence[Scored]) -> list[CardLine]:
    """Leave out each card of a set that one harness measured: memory and overhead are the means of the other cards' fits.

    The host's time is no property of the card: where the harness times it, it is the card's own.
    """
    out = []
    for source, dtype in CARD_SETS.values():
        of = [one for one in found if (one.series.source, one.series.dtype) == (source, dtype)]
        predicted = {}
        roofs = {one.series.device: _roof(one.series) for one in of}
        for one in of:
            others = np.array([other.fit.scalars for other in of if other is not one])
            scalars = np.exp(np.log(others).mean(axis=0))
            peak = sustained_peak(one.series)
            if one.series.harness.times_host:
                scalars[2] = one.fit.scalars[2]
            scalars = compute_share(one.series, peak, scalars)
            roof = np.exp(np.log([roofs[other.series.device] for other in of if other is not one]).mean(axis=0))
            roof[0] = peak
            if one.series.harness.times_host:
                roof[2] = roofs[one.series.device][2]
            predicted[one.series.device] = (
                one.series.make()(one.series.table)(scalars[None])[:, 0],
                roofline(one.series.spec, one.series.table)(roof[None])[:, 0],
                peak,
            )
        out += [line for one in of for line in _card(one.series, of, predicted)]
    return out


def _roof(series: Series) -> np.ndarray:
    return fit_scalars(lambda rows: roofline(series.spec, rows), series.table, ROOF_START, folds=1).scalars


def _card(series: Series, of: Sequence[Scored], predicted: dict[str, tuple[np.ndarray, np.ndarray, float]]) -> list[CardLine]:
    seconds, roof, peak = predicted[series.device]
    out = []
    for code in np.unique(series.group):
        rows = series.group == code
        if rows.sum() < FEWEST:
            continue
        measured = series.table.measured_s[rows]
        others = [(predicted[one.series.device][0], one.series, one.series.group == code) for one in of if one.series is not series]
        ratios = {other.device: other.table.measured_s[there] / times[there] for times, other, there in others if there.sum() >= FEWEST}
        inside = float("nan")
        if ratios:
            low, high = wide(list(ratios.values()), widening(ratios))
            inside = float(((measured >= seconds[rows] * (1 + low)) & (measured <= seconds[rows] * (1 + high))).mean())
        figures = accuracy(seconds[rows], measured), accuracy(roof[rows], measured)
        out.append(CardLine(series.name, ERROR_GROUPS[code], len(measured), peak, *figures, inside))
    return out


def _extent(table: OpTable, kind: Kind, name: str) -> np.ndarray:
    return table.dims[:, DIMS[kind].index(name)]


def product_family(table: OpTable) -> np.ndarray:
    """Return small M (at most 64), deep K (K at least 4 times M and N), tall or wide (4 times), square."""
    m, n, k = (_extent(table, Kind.GEMM, name) for name in ("m", "n", "k"))
    deep, uneven = k >= 4 * np.maximum(m, n), np.maximum(m, n) >= 4 * np.minimum(m, n)
    return np.select([m <= 64, deep, uneven], ["M <= 64", "deep K", "tall or wide"], "square")


def attention_family(table: OpTable) -> np.ndarray:
    return np.char.add("head size ", _extent(table, Kind.ATTENTION_FORWARD, "head_dim").astype(str))


def convolution_family(table: OpTable) -> np.ndarray:
    return np.char.add("R = ", _extent(table, Kind.CONV_FORWARD, "r").astype(str))


FAMILIES: dict[str, Callable[[OpTable], np.ndarray]] = {
    "gemm": product_family, "batched_gemm": product_family, "attention_prefill": attention_family, "attention_decode": attention_family,
    "conv_forward": convolution_family,
}  # fmt: skip
FAMILY_DTYPES = ("bf16", "fp16", "fp32")


def families(series: Series) -> list[FamilyLine]:
    """Leave out each family of shapes of each kind of a series; scalars of the kind alone, fitted on all its other shapes."""
    out = []
    for code in np.unique(series.group):
        name = ERROR_GROUPS[code]
        if name not in FAMILIES or series.dtype not in FAMILY_DTYPES or series.source == "DeepBench":
            continue
        part = series.take(series.group == code)
        family = FAMILIES[name](part.table)
        for which in np.unique(family):
            left = family == which
            if left.sum() < FEWEST or (~left).sum() < FEWEST:
                continue
            rest, scored = take(part.table, np.flatnonzero(~left)[:MOST_ROWS]), take(part.table, left)
            times = []
            for make, start in ((part.make(), START), (lambda rows: roofline(series.spec, rows), ROOF_START)):
                times.append(make(scored)(fit_scalars(make, rest, start, folds=1).scalars[None])[:, 0])
            ours, theirs = (accuracy(seconds, scored.measured_s) for seconds in times)
            out.append(FamilyLine(f"{series.device} {series.source} {name} {series.dtype}", str(which), int(left.sum()), ours, theirs))
    return out
