"""Calibrating a card from files of measured operators: three scalars a dtype, errors by kind on rows left out, rooflines beside."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from workbench.cost.calibrate import accuracy, calibrate, skill
from workbench.cost.doubts import FEWEST_ROWS, doubts, too_slow, why_not
from workbench.cost.errors import groups_of, inside
from workbench.cost.fit import FOLDS, Fit, fit_scalars, hashes, start_of
from workbench.cost.harness import Harness
from workbench.cost.pack import calibration
from workbench.cost.predictors import NAIVE, PLAIN, modelled, roofline, runs_as
from workbench.errors import Note, Refused
from workbench.hardware import schema
from workbench.hardware.npu import NpuSpec
from workbench.hardware.parts import Calibration
from workbench.operators.rows import join, take
from workbench.operators.table import Dtype, OpTable
from workbench.study.documents_operators import CalibrationDocument, FiguresDocument, FitDocument, KindFitDocument
from workbench.study.operators_csv import Operators
from workbench.study.report import note_documents
from workbench.study.yardsticks import ROOFLINE_START

WEAKEST = schema.TOP["confidence"].choices[-2]
"""Confidence of a card whose description nobody vouches for, once measurements stand behind it."""
LOSES, LOSES_AT_LEAST = 1.3, 0.03
"""Factor, and difference, of errors fitted jointly and alone from which a note says that kinds do not agree."""
HOST_TIMED = 5.0  # times the card's own kernel overhead: a fitted one beyond is the harness's


@dataclass(frozen=True)
class CalibratedCard:
    """A card with fitted scalars, and how well they predict."""

    spec: NpuSpec
    document: CalibrationDocument


@dataclass(frozen=True)
class _Rows:
    """Rows of one dtype, with their places ``file:line``."""

    dtype: str
    table: OpTable
    places: np.ndarray


def calibrate_card(
    operators: Operators | Sequence[Operators], spec: NpuSpec, *, harness: Harness = PLAIN, out: str | None = None
) -> CalibratedCard:
    """Fit the scalars of every dtype with enough measured operators, on all their kinds together.

    Parameters
    ----------
    operators : Operators or sequence of Operators
        Measured rows of one device and one harness.
    spec : NpuSpec
        The card they ran on.
    harness : Harness
        ``copies``: how many working sets it cycled through (1: always the same operands, which then stay in the shared
        level); ``clock``: where it times the host, the fitted overhead is the host's and the card keeps its own.
    out : str, optional
        Where the caller will write the card, for the document.

    Returns
    -------
    CalibratedCard

    Raises
    ------
    Refused
        Rows of several devices or harnesses, or no dtype that can be fitted.
    """
    files = [operators] if isinstance(operators, Operators) else list(operators)
    _one_device(files)
    path = ", ".join(found.sheet.path for found in files)
    notes = [note for found in files for note in found.notes]
    fits: list[FitDocument] = []
    fitted: dict[str, Calibration] = {}
    refused: list[Note] = []
    source = f"{', '.join(f'{Path(f.sheet.path).name} (digest {f.sheet.digest})' for f in files)}; five-fold by shape"
    for rows in _by_dtype(files, spec, harness, path, notes):
        why, fix = why_not(spec, rows.dtype, rows.table, harness)
        if not why:
            found = calibrate(spec, rows.dtype, rows.table, source, harness=harness)
            why, fix = too_slow(found.fit, rows.table, rows.dtype), "check the unit of the time column, the card and the dtype"
        if why:
            refused.append(Note("dtype-not-fitted", path, len(rows.table), why, fix))
            continue
        fitted[rows.dtype] = found.stated
        fits.append(_document(spec, rows, harness, found.stated, found.fit))
        notes += doubts(spec, rows.dtype, rows.table, harness, found.fit, rows.places, path)
        notes += _disagreements(fits[-1], path, harness, spec)
    if not fits:
        first = refused[0] if refused else Note("", path, 0, "no row can be priced", f"give at least {FEWEST_ROWS} operators with a time")
        raise Refused(path, first.text, first.fix)
    made = replace(spec, calibration={**spec.calibration, **fitted})
    if spec.confidence == "invented":
        made = replace(made, confidence=WEAKEST)  # measurements stand behind it now
    document = CalibrationDocument(
        npu=spec.name, file=path, file_digest=", ".join(found.sheet.digest for found in files), out=out, fits=fits,
        notes=note_documents([*notes, *refused]),
    )  # fmt: skip
    return CalibratedCard(made, document)


def _one_device(files: Sequence[Operators]) -> None:
    """Refuse rows of several devices or harnesses: one set of scalars cannot stand for them."""
    for column in ("device", "source"):
        cells: Counter[str] = Counter()
        for found in files:
            lower = [name.lower() for name in found.sheet.header]
            if column in lower:
                cells.update(found.sheet.rows[int(row)][lower.index(column)].split(" ")[0] for row in found.row)
        if len(cells) > 1:
            first = cells.most_common(1)[0][0]
            raise Refused(
                f"{', '.join(found.sheet.path for found in files)}: column {column!r}",
                f"rows of {len(cells)} {column}s: {', '.join(sorted(cells)[:8])}",
                f"choose one: --where {column}={first}",
            )


def _by_dtype(files: Sequence[Operators], spec: NpuSpec, harness: Harness, path: str, notes: list[Note]) -> list[_Rows]:
    """Return the rows that can be priced, by the dtype whose scalars price them; note the others."""
    table = join([found.table for found in files])
    places = np.array([f"{found.sheet.path}:{found.sheet.line[int(row)]}" for found in files for row in found.row])
    timed = np.isfinite(table.measured_s) & (table.measured_s > 0)
    without = len(table) - int(timed.sum())
    if without:
        notes.append(Note("no-time", path, without, "rows without a time, or with one that is not positive, are not used"))
    runs = np.array([runs_as(spec, Dtype(code).name.lower()) for code in table.dtype.tolist()])
    out, unpriced, borrowed = [], 0, 0
    for dtype in sorted(set(runs.tolist())):
        rows = timed & (runs == dtype) & (groups_of(table) >= 0)
        native = rows & (table.dtype == Dtype[dtype.upper()]) if dtype.upper() in Dtype.__members__ else rows
        if native.any():
            borrowed += int(rows.sum() - native.sum())
            rows = native
        if dtype not in schema.DTYPES or not rows.any():
            continue
        chosen = np.flatnonzero(rows)
        seconds = modelled(spec, dtype, take(table, chosen), harness)(NAIVE[None])[:, 0]
        chosen = chosen[np.isfinite(seconds) & (seconds > 0)]
        if len(chosen):
            out.append(_Rows(dtype, take(table, chosen), places[chosen]))
    unpriced = int(timed.sum()) - sum(len(rows.table) for rows in out) - borrowed
    if unpriced:
        notes.append(Note("not-used-to-fit", path, unpriced, "no model of this kind or dtype on this card"))
    if borrowed:
        text = f"rows of a dtype that {spec.name} runs as another, of which there are rows too: these are not used to fit"
        notes.append(Note("other-dtype", path, borrowed, text))
    return out


def _document(spec: NpuSpec, rows: _Rows, harness: Harness, stated: Calibration, fit: Fit) -> FitDocument:
    """Compare a fit with rooflines fitted and left out the same way, over all rows and by kind."""
    table, measured = rows.table, rows.table.measured_s
    roof = fit_scalars(lambda some: roofline(spec, some), table, ROOFLINE_START).left_out_s
    naive = roofline(spec, table)(NAIVE[None])[:, 0]
    group, fold = groups_of(table), hashes(table)[:, 0] % FOLDS
    own = start_of(calibration(spec, rows.dtype)[:3])
    kinds = []
    for code in np.unique(group):
        of = group == code
        part = take(table, of)
        alone = fit if of.all() else fit_scalars(lambda some: modelled(spec, rows.dtype, some, harness), part, own)
        name = schema.ERROR_GROUPS[code]
        interval = stated.errors.get(name)
        kinds.append(
            KindFitDocument(
                kind=name, rows=len(part), low=interval[0] if interval else None, high=interval[1] if interval else None,
                inside=inside(fit.left_out_s[of], part.measured_s, fold[of]), model=_figures(fit.left_out_s[of], part),
                alone=_figures(alone.left_out_s, part), alone_compute=float(alone.scalars[0]), alone_memory=float(alone.scalars[1]),
                alone_launch_s=float(alone.scalars[2]), calibrated_roofline=_figures(roof[of], part),
                naive_roofline=_figures(naive[of], part),
                skill=skill(fit.left_out_s[of], roof[of], part.measured_s),
            )
        )  # fmt: skip
    return FitDocument(
        dtype=rows.dtype, rows=len(table), sampled=fit.sampled, folds=FOLDS, compute=stated.compute, memory=stated.memory,
        launch_s=stated.launch, fitted_launch_s=float(fit.scalars[2]), error=stated.error, model=_figures(fit.left_out_s, table),
        calibrated_roofline=_figures(roof, table), naive_roofline=_figures(naive, table), skill=skill(fit.left_out_s, roof, measured),
        kinds=kinds,
    )  # fmt: skip


def _figures(seconds: np.ndarray, table: OpTable) -> FiguresDocument:
    return FiguresDocument(**accuracy(seconds, table.measured_s))


def _disagreements(fit: FitDocument, path: str, harness: Harness, spec: NpuSpec) -> list[Note]:
    """Return notes on kinds that a joint fit serves badly, and on an overhead that cannot be the card's."""
    notes = []
    for kind in fit.kinds:
        joint, alone = kind.model.mape, kind.alone.mape
        if joint > LOSES * alone and joint > alone + LOSES_AT_LEAST:
            its_own = f"({kind.alone_compute:.2f}, {kind.alone_memory:.2f}, {1e6 * kind.alone_launch_s:.3g} us)"
            text = (
                f"{kind.kind} of {fit.dtype} misses by {100 * joint:.0f} % with the joint scalars, by {100 * alone:.0f} % with its own "
                f"{its_own}: harness or model treat it differently"
            )
            notes.append(Note("kinds-disagree", path, kind.rows, text, "calibrate from the kinds that matter to you"))
    own = spec.runtime.launch_overhead
    if fit.fitted_launch_s > HOST_TIMED * own and not harness.times_host:
        text = (
            f"fitted overhead of {fit.dtype} {1e6 * fit.fitted_launch_s:.3g} us, stated kernel overhead of {spec.name} {1e6 * own:.3g} us"
        )
        notes.append(Note("overhead-of-harness", path, 1, text, "if the harness times the host, say so with --clock"))
    return notes
