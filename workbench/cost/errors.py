"""How wrong a predicted time may be: the 80 % interval of every operator on every card.

A card with a fit of the dtype states an interval a kind of operator, from rows left out of the fit. Elsewhere the interval is
that of cards left out of all fits (``data/errors/operators.yaml``, written by the accuracy report), widened for cards that
nobody vouches for. Empirical quantiles of left-out errors are the intervals of split conformal prediction (Lei et al.,
Distribution-Free Predictive Inference for Regression, JASA 2018): they hold 80 % of rows like those measured.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from types import MappingProxyType

import numpy as np
import yaml

from workbench.cost.pack import Cards
from workbench.data import data_path
from workbench.hardware.parts import Calibration, wider
from workbench.hardware.schema import ERROR_GROUPS
from workbench.hardware.spec import NpuSpec
from workbench.operators.table import DIMS, Kind, OpTable

Interval = tuple[float, float]
FEW_QUERIES = 16  # up to so many queries attention is called decoding
COVER = 0.8  # share of the measured times that an interval holds: what the accuracy goal asks for (75-85 % of scored rows)
NEAREST = 0.01  # least distance of either end from the predicted time
FEWEST = 10  # left-out rows from which a kind's own quantiles are stated: below, its 10 % quantile is no better than its extremes
BORROWS: Mapping[str, str] = MappingProxyType(
    {
        "batched_gemm": "gemm", "grouped_gemm": "gemm", "conv_backward": "conv_backward_data", "conv_backward_weight": "conv_backward_data",
        "conv_backward_data": "conv_forward", "attention_backward": "attention_prefill", "attention_decode": "attention_prefill",
        "reduction": "elementwise", "pooling": "elementwise", "copy": "elementwise", "set": "elementwise", "optimizer": "elementwise",
        "norm": "elementwise", "softmax": "elementwise",
    }
)  # fmt: skip
"""Whose error a kind takes that was not measured itself."""
RELATED = MappingProxyType({"bf16": ("fp16",), "fp16": ("bf16",)})
"""Whose fit, and with it error, a dtype takes on the same card."""
WIDER = MappingProxyType({"high": 1.0, "medium": 1.0, "weak": 1.25, "invented": 1.25})
"""Power of an interval's width by a card's confidence (see `wider`): a judgement, nobody can measure a card that nobody has."""
NARROW_DTYPES, NARROW = ("fp8", "int8", "uint8", "int4", "int8_wo", "int4_wo"), "_narrow"
"""Types whose kernels are less settled than those of 16 and 32 bits, and the ending of kinds whose error was measured on them."""
PRODUCTS = ("gemm", "batched_gemm", "grouped_gemm")


def groups_of(table: OpTable) -> np.ndarray:
    """Return the index into `ERROR_GROUPS` of every operator, int64 [U]; -1 for kinds no model prices."""
    names = [Kind(code).name.lower() for code in range(len(DIMS))]
    lookup = np.array([ERROR_GROUPS.index(name) if name in ERROR_GROUPS else -1 for name in names])
    lookup[Kind.ATTENTION_FORWARD] = ERROR_GROUPS.index("attention_prefill")
    group = lookup[table.kind]
    few = (table.kind == Kind.ATTENTION_FORWARD) & (table.dims[:, DIMS[Kind.ATTENTION_FORWARD].index("queries")] <= FEW_QUERIES)
    group[few] = ERROR_GROUPS.index("attention_decode")
    return group


def quantiles(predicted_s: np.ndarray, measured_s: np.ndarray) -> Interval:
    """Return the relative errors between which 80 % of measured times lie, around 0.

    Parameters
    ----------
    predicted_s, measured_s : ndarray, shape (U,)
        Times of rows that were not fitted [s].

    Returns
    -------
    low, high : float
        ``measured`` lies between ``predicted x (1 + low)`` and ``predicted x (1 + high)``; low < 0 < high by at least
        `NEAREST`, so that the predicted time is inside. Where that cuts one end off, the other is moved in until 80 % remain. Ranks are
        counted as of U + 1 rows, as split conformal prediction asks: few rows know their quantiles badly.
    """
    miss = np.log(measured_s / predicted_s)
    below, above = float(np.mean(miss < 0.0)), float(np.mean(miss > 0.0))
    low, high = _ranked(miss, (1.0 - COVER) / 2.0), _ranked(miss, (1.0 + COVER) / 2.0)
    if low > 0.0:
        low, high = 0.0, max(_ranked(miss, COVER + below), 0.0)
    elif high < 0.0:
        low, high = min(_ranked(miss, 1.0 - COVER - above), 0.0), 0.0
    return min(float(np.expm1(low)), -NEAREST), max(float(np.expm1(high)), NEAREST)


def _ranked(miss: np.ndarray, share: float) -> float:
    """Return the value below which a share of U + 1 rows lies: order statistic ``share (U + 1)``."""
    return float(np.quantile(miss, min(max(share, 0.0), 1.0), method="weibull"))


def inside(predicted_s: np.ndarray, measured_s: np.ndarray, fold: np.ndarray) -> float:
    """Return the share of rows inside the interval that the rows of the other folds give."""
    hits = 0
    for left in np.unique(fold):
        out = fold == left
        if out.all():
            return float("nan")
        low, high = quantiles(predicted_s[~out], measured_s[~out])
        miss = measured_s[out] / predicted_s[out] - 1.0
        hits += int(((miss >= low) & (miss <= high)).sum())
    return hits / len(fold)


def intervals(table: OpTable, cards: Cards, column: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the factors on a predicted time between which 80 % of measured times are meant to lie.

    Parameters
    ----------
    table : OpTable
        U operators.
    cards : Cards
        S cards.
    column : ndarray of int, shape (U,)
        Dtype columns.

    Returns
    -------
    low, high : ndarray, shape (U, S)
        low <= 1 <= high.
    """
    group = groups_of(table)
    present = np.unique(group)
    place = np.searchsorted(present, group)
    names = [ERROR_GROUPS[code] if code >= 0 else "elementwise" for code in present]
    ends = np.empty((len(cards.specs), len(cards.dtypes), len(present), 2))
    general = {
        grade: np.array([[_general(name, grade, NARROW if dtype in NARROW_DTYPES else "") for name in names] for dtype in cards.dtypes])
        for grade in {spec.confidence for spec in cards.specs}
    }
    for s, (spec, runs) in enumerate(zip(cards.specs, cards.runs_as, strict=True)):
        ends[s] = general[spec.confidence].reshape(ends.shape[1:])
        if spec.confidence == "invented" or not spec.calibration:
            continue
        for d, dtype in enumerate(cards.dtypes):
            found = fit_of(spec, runs[d] or dtype)
            if found is not None:
                for at, name in enumerate(names):
                    ends[s, d, at] = _fitted(found, name) or ends[s, d, at]
    factors = 1.0 + ends[:, column, place]
    return factors[..., 0].T, factors[..., 1].T


def fit_of(spec: NpuSpec, dtype: str) -> Calibration | None:
    """Return the fit whose error holds for a dtype: its own, or that of its 16-bit relative."""
    return next((spec.calibration[name] for name in (dtype, *RELATED.get(dtype, ())) if name in spec.calibration), None)


def _fitted(fit: Calibration, group: str) -> Interval | None:
    """Return the interval a fit states for a kind; one that states a single error means matrix products by it."""
    found: str | None = group
    while found is not None:
        if found in fit.errors:
            return fit.errors[found]
        found = BORROWS.get(found)
    return (1.0 / (1.0 + fit.error) - 1.0, fit.error) if group in PRODUCTS and not fit.errors else None


@cache
def unfitted() -> Mapping[str, Interval]:
    """Return the intervals by kind of a card that was not fitted: measured by leaving cards out, else judged."""
    text = data_path("errors", "operators.yaml").read_text(encoding="utf-8")
    data = yaml.safe_load(text)
    measured = {group: (float(found["low"]), float(found["high"])) for group, found in data["measured"].items()}
    judged = {group: (float(pair[0]), float(pair[1])) for group, pair in data["judged"].items()}
    return MappingProxyType({**judged, **measured})


@cache
def _general(group: str, confidence: str, bits: str = "") -> Interval:
    known, found = unfitted(), group
    while found not in known:
        found = BORROWS[found]
    return wider(*known.get(group + bits, known[found]), WIDER[confidence])
