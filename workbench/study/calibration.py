"""Calibrating a card from a file of measured products: three scalars a dtype, their error on rows left out, both rooflines beside."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from workbench.cost.calibrate import FOLDS, Predict, Products, accuracy, calibrate, fit, fold, roofline, tile_model
from workbench.cost.models import PRODUCTS, item_sizes
from workbench.cost.pack import resolve
from workbench.errors import Note, Refused
from workbench.hardware import schema
from workbench.hardware.npu import NpuSpec
from workbench.hardware.parts import Calibration
from workbench.operators.table import Dtype, Kind
from workbench.study.documents_operators import CalibrationDocument, FiguresDocument, FitDocument
from workbench.study.operators_csv import Operators
from workbench.study.report import note_documents

FEWEST = 20
"""Products a dtype needs: three scalars, and enough left out to state an error."""
WEAKEST = schema.TOP["confidence"].choices[-2]
"""Confidence of a card whose description nobody vouches for, once measurements stand behind it."""
NAIVE = np.array([1.0, 1.0, 0.0])
DRAWS = 2000
Model = Callable[[NpuSpec, str, Products], Predict]


@dataclass(frozen=True)
class Calibrated:
    """A card with fitted scalars, and how well they predict."""

    spec: NpuSpec
    document: CalibrationDocument


def calibrate_card(operators: Operators, spec: NpuSpec, *, copies: float = np.inf, out: str | None = None) -> Calibrated:
    """Fit the scalars of every dtype with enough measured products.

    Parameters
    ----------
    operators : Operators
        Measured rows of one device and one harness.
    spec : NpuSpec
        The card they ran on.
    copies : float
        How many working sets the harness cycled through (1: always the same operands, which then stay in the shared level);
        infinite: nothing stays.
    out : str, optional
        Where the caller will write the card, for the document.

    Returns
    -------
    Calibrated

    Raises
    ------
    Refused
        Rows of several devices or harnesses, no dtype with enough products, or a dtype the card does not run.
    """
    _one_device(operators)
    table = operators.table
    usable = np.isin(table.kind, PRODUCTS) & (table.measured_s > 0) & (table.dims[:, :4] > 0).all(axis=1)
    fits: list[FitDocument] = []
    fitted: dict[str, Calibration] = {}
    notes = list(operators.notes)
    other = len(table) - int(usable.sum())
    if other:
        notes.append(Note("not-used-to-fit", operators.sheet.path, other, "only measured matrix products calibrate a card"))
    for code in np.unique(table.dtype[usable]):
        dtype, rows = Dtype(code).name.lower(), np.flatnonzero(usable & (table.dtype == code))
        if len(rows) < FEWEST or not resolve(spec, dtype):
            why = f"{len(rows)} rows are too few to fit" if resolve(spec, dtype) else f"{spec.name} does not run"
            notes.append(Note("dtype-not-fitted", operators.sheet.path, len(rows), f"{why} {dtype}", f"give at least {FEWEST} products"))
            continue
        products = products_of(operators, rows, copies)
        source = f"{Path(operators.sheet.path).name}, digest {operators.sheet.digest}; five-fold by shape"
        fitted[dtype], figures = _fit(spec, dtype, products, source)
        fits.append(figures)
    if not fits:
        raise Refused(operators.sheet.path, "no dtype has enough measured matrix products", f"give at least {FEWEST} GEMM rows with a time")
    made = replace(spec, calibration={**spec.calibration, **fitted})
    if spec.confidence == "invented":
        made = replace(made, confidence=WEAKEST)  # measurements stand behind it now
    document = CalibrationDocument(
        npu=spec.name, file=operators.sheet.path, file_digest=operators.sheet.digest, out=out, fits=fits, notes=note_documents(notes)
    )
    return Calibrated(made, document)


def _one_device(operators: Operators) -> None:
    """Refuse rows of several devices or harnesses: one set of scalars cannot stand for them."""
    sheet = operators.sheet
    lower = [name.lower() for name in sheet.header]
    for column in ("device", "source"):
        if column in lower:
            cells = Counter(sheet.rows[int(row)][lower.index(column)].split(" ")[0] for row in operators.row)
            if len(cells) > 1:
                first = cells.most_common(1)[0][0]
                raise Refused(
                    f"{sheet.path}: column {column!r}",
                    f"rows of {len(cells)} {column}s: {', '.join(sorted(cells)[:8])}",
                    f"choose one: --where {column}={first}",
                )


def products_of(operators: Operators, rows: np.ndarray, copies: float) -> Products:
    """Return some rows as measured products; ``copies`` as in `calibrate_card`."""
    table = operators.table
    operand = np.repeat(item_sizes(table)[rows, None], 3, axis=1)
    operand[:, 2] = np.maximum(operand[:, 2], 2.0)
    return Products(table.dims[rows, :4].astype(np.float64), operand, table.measured_s[rows], (copies, copies))


def _fit(spec: NpuSpec, dtype: str, rows: Products, source: str) -> tuple[Calibration, FitDocument]:
    folds = np.array([fold(Kind.GEMM.name, dtype, tuple(int(x) for x in shape), FOLDS) for shape in rows.shape])
    found = calibrate(spec, dtype, rows, folds, source)
    ours, theirs = (left_out(model, spec, dtype, rows, folds) for model in (tile_model, roofline))
    naive = roofline(spec, dtype, rows)(NAIVE)
    miss, other = np.abs(ours / rows.measured_s - 1.0), np.abs(theirs / rows.measured_s - 1.0)
    draws = np.random.default_rng(0).integers(0, len(miss), (DRAWS, len(miss)))
    skill = np.quantile(1.0 - miss[draws].mean(axis=1) / np.maximum(other[draws].mean(axis=1), 1e-12), [0.05, 0.5, 0.95])
    figures = [FiguresDocument(**accuracy(predicted, rows.measured_s)) for predicted in (ours, theirs, naive)]
    document = FitDocument(
        dtype=dtype, rows=len(miss), folds=FOLDS, compute=found.compute, memory=found.memory, launch_s=found.launch, error=found.error,
        model=figures[0], calibrated_roofline=figures[1], naive_roofline=figures[2],
        skill=(float(skill[0]), float(skill[1]), float(skill[2])),
    )  # fmt: skip
    return found, document


def left_out(model: Model, spec: NpuSpec, dtype: str, rows: Products, folds: np.ndarray) -> np.ndarray:
    """Return what a model says of every row when it was fitted without the row's fold.

    Parameters
    ----------
    model : callable
        `tile_model` or `roofline`.
    spec : NpuSpec
        Card.
    dtype : str
        Dtype name.
    rows : Products
        Measurements.
    folds : ndarray of int, shape (U,)
        Fold of every row.

    Returns
    -------
    ndarray, shape (U,)
        [s]
    """
    predicted: np.ndarray = np.empty(len(folds))
    for left in np.unique(folds):
        rest, scored = rows.take(folds != left), rows.take(folds == left)
        scalars = fit(model(spec, dtype, rest), rest.measured_s)
        predicted[folds == left] = model(spec, dtype, scored)(scalars)
    return predicted
