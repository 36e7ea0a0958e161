"""The accuracy report: every measured operator of a catalogued card, beside rooflines, floors, and what was left out of fits."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from pathlib import Path

import numpy as np

import workbench
from tests.anchors import series as measured
from tests.anchors.general import General, generals
from tests.anchors.left_out import CardLine, FamilyLine, cards, families
from tests.anchors.ranks import Rank, ranks
from tests.anchors.scored import Line, Scored, score
from tests.anchors.series import FILES, Series
from workbench.data import data_path

PACKAGE = Path(workbench.__file__).parent
HEAD = """# Accuracy of operator times

Written by `python3 run.py accuracy` on {date}; digest of the measurements {data}; digest of the model (cost room and cards) {model}.

source: this project's predictions against public measurements (LLMCompass, DeepBench, NeuSight, vidur, aiconfigurator)

Every series is the rows of one device, harness and dtype; a hash of (operator, dtype, shape) halves its shapes. Errors are |predicted /
measured - 1| in percent, on the half that no fit of this report saw.

- **Shipped**: `estimate` with the card as it comes, told only what the harness leaves warm. The card's scalars were fitted on *all*
  rows of these tables (`calibration` in `data/npu/`): in-sample there. To what NeuSight shows, its host's time of a call is added as
  fitted below; DeepBench's overhead between the kernels of a loop is not, so that small operators come out too short.
- **Fitted**: three scalars (sustained compute, memory efficiency, overhead) for *all kinds of the series together*, on the other half;
  of NeuSight the third is the host's time of a call. **Alone**: three scalars for this kind only, the same way.
- **Roof**, **roof alone**: the roofline max(FLOPs / peak, bytes / bandwidth) + overhead with three scalars, fitted likewise jointly or
  for the kind alone. **Naive**: peak and bandwidth, nothing fitted.
- **Skill**: 1 - MAPE fitted / MAPE roof, and alone / roof alone; 90 % bootstrap.
- **In**: share of held rows in the 80 % interval that the other half gave (cross-validated there); shipped: in the card's own
  interval, over rows of which the card makes up at least half.
- **Floor**: mean difference of two library versions on the same card and shape, where such rows were handed (share of rows in brackets).
  Over the whole public tables it is 6.7 to 13.8 %: closer than that no model of the shape can come where versions are mixed.
- Constants of the model that all cards share were chosen on fitting halves of some of these series.
"""


@dataclass(frozen=True)
class Report:
    """All tables of the report."""

    scored: tuple[Scored, ...]
    cards: tuple[CardLine, ...]
    families: tuple[FamilyLine, ...]
    ranks: tuple[Rank, ...]
    generals: tuple[General, ...]

    @property
    def inside(self) -> float:
        """Share of all held rows inside the fitted intervals."""
        lines = [line for one in self.scored for line in one.lines]
        return float(np.average([line.inside for line in lines], weights=[line.rows for line in lines]))


def _work(series: Series) -> tuple[Scored, list[FamilyLine]]:
    return score(series), families(series)


def report(shared: Path, files: tuple[str, ...] = FILES, workers: int = 2) -> Report:
    """Score every series."""
    every = measured.load(shared, files)
    if workers > 1:
        with ProcessPoolExecutor(workers) as pool:
            found = list(pool.map(_work, every))
    else:
        found = [_work(one) for one in every]
    scored = [one for one, _ in found]
    return Report(
        tuple(scored), tuple(cards(scored)), tuple(f for _, of in found for f in of), tuple(ranks(scored)), tuple(generals(scored))
    )


def digests(shared: Path) -> tuple[str, str]:
    """Return the digests of the measurements and of the model: the source of the cost room and the cards' descriptions."""
    tables = [shared / "measured" / "compute" / f"{name}.csv" for name in FILES]
    model = [*sorted((PACKAGE / "cost").glob("*.py")), *sorted(data_path("npu").glob("*.yaml"))]
    first, second = (hashlib.sha256(b"".join(path.read_bytes() for path in paths)).hexdigest()[:16] for paths in (tables, model))
    return first, second


def markdown(found: Report, date: str, data: str, model: str) -> str:
    """Return the report as text."""
    parts = [HEAD.format(date=date, data=data, model=model), *_main(found), *_yardsticks(found), *_fits(found)]
    parts += [*_large(found), *_cards(found.cards), *_families(found.families), *_ranks(found.ranks), *_generals(found.generals)]
    return "\n".join(parts) + "\n"


def _named(found: Report) -> Iterable[tuple[str, Line]]:
    for one in found.scored:
        for line in one.lines:
            yield f"{one.series.device} {one.series.source} {line.kind} {one.series.dtype}", line


def _table(title: str, text: str, header: Sequence[str], rows: Iterable[Sequence[str]]) -> list[str]:
    out = [f"\n## {title}\n"]
    if text:
        out.append(f"{text}\n")
    out += [f"| {' | '.join(header)} |", f"|{'---|' * len(header)}"]
    return out + [f"| {' | '.join(row)} |" for row in rows]


def _p(value: float) -> str:
    return f"{100 * value:.1f}" if np.isfinite(value) else "-"


def _s(skill: tuple[float, float, float]) -> str:
    return f"{skill[0]:.2f} .. {skill[2]:.2f}"


FIGURES = ("mape", "median", "p90", "bias", "time_weighted")


def _main(found: Report) -> list[str]:
    text = f"All held rows together: {_p(found.inside)} % lie in their 80 % interval."
    header = ["device, harness, kind, dtype", "rows", "fitted MAPE", "median", "P90", "bias", "by time", "in", "alone", "shipped MAPE"]
    header += ["median", "bias", "in", "floor"]
    rows = []
    for name, line in _named(found):
        floor = "-" if line.floor is None else f"{_p(line.floor.differ)} ({100 * line.floor.share:.0f} %)"
        shipped = [_p(line.shipped[key]) for key in ("mape", "median", "bias")]
        fitted = [_p(line.joint[key]) for key in FIGURES]
        rows.append(
            [
                name,
                str(line.rows),
                *fitted,
                f"{100 * line.inside:.0f}",
                _p(line.alone["mape"]),
                *shipped,
                f"{100 * line.inside_shipped:.0f}",
                floor,
            ]
        )
    return _table("Fitted jointly on one half, and as shipped", text, header, rows)


def _yardsticks(found: Report) -> list[str]:
    header = ["device, harness, kind, dtype", "fitted", "roof", "skill", "alone", "roof alone", "skill alone", "naive"]
    rows = [
        [name, *(_p(line.joint["mape"]) for _ in "1"), _p(line.roof["mape"]), _s(line.skill), _p(line.alone["mape"]),
         _p(line.roof_alone["mape"]), _s(line.skill_alone), _p(line.naive["mape"])]
        for name, line in _named(found)
    ]  # fmt: skip
    return _table("Beside the rooflines (MAPE)", "", header, rows)


def _fits(found: Report) -> list[str]:
    header = ["device, harness, dtype", "compute", "memory", "overhead [us]", "of", "in"]
    rows = []
    for one in found.scored:
        compute, memory, overhead = one.fit.scalars
        whose = "host" if one.series.harness.times_host else "kernel"
        rows.append([one.series.name, f"{compute:.3f}", f"{memory:.3f}", f"{1e6 * overhead:.2f}", whose, _p(one.inside)])
    return _table("The joint fits of the fitted half", "", header, rows)


def _large(found: Report) -> list[str]:
    header = ["device, harness, kind, dtype", "rows", "fitted MAPE", "median", "bias", "alone", "roof alone"]
    rows = []
    for name, line in _named(found):
        if line.large is not None:
            count, joint, alone, roof = line.large
            rows.append([name, str(count), *(_p(joint[key]) for key in ("mape", "median", "bias")), _p(alone["mape"]), _p(roof["mape"])])
    return _table("Products with M, N, K >= 512", "", header, rows)


def _cards(lines: Sequence[CardLine]) -> list[str]:
    text = (
        "Each card of a harness is left out: of it only the sustained peak is known (the upper quartile of the rates of its largest "
        "products, a tenth by FLOPs); memory and overhead are the means of the other cards' fits, the host's time (NeuSight) its own. "
        "All rows. In: the interval of the other left-out cards, widened so that these cover each other by 80 % on average."
    )
    header = ["card left out", "kind", "rows", "peak", "model MAPE", "median", "bias", "roofline MAPE", "in"]
    rows = [
        [line.series, line.kind, str(line.rows), f"{line.peak:.2f}", *(_p(line.model[key]) for key in ("mape", "median", "bias")),
         _p(line.roofline["mape"]), f"{100 * line.inside:.0f}"]
        for line in lines
    ]  # fmt: skip
    counts = [line.rows for line in lines if np.isfinite(line.inside)]
    if counts:
        share = np.average([line.inside for line in lines if np.isfinite(line.inside)], weights=counts)
        text += f" Over all rows: {_p(float(share))} %."
    return _table("A card left out", text, header, rows)


def _families(lines: Sequence[FamilyLine]) -> list[str]:
    text = "Scalars of the kind alone, fitted on all its other shapes."
    header = ["device, harness, kind, dtype", "left out", "rows", "model MAPE", "median", "bias", "roofline MAPE"]
    rows = [
        [line.series, line.family, str(line.rows), *(_p(line.model[key]) for key in ("mape", "median", "bias")), _p(line.roofline["mape"])]
        for line in lines
    ]
    return _table("A family of shapes left out", text, header, rows)


def _ranks(lines: Sequence[Rank]) -> list[str]:
    text = "Shapes that one harness timed on two cards: the ratio of their times, measured and by the joint fits (all rows)."
    header = ["first", "second", "kind", "shapes", "Spearman of ratios", "right order [%]", "error of the ratio"]
    rows = [
        [of.first, of.second, of.kind, str(of.rows), f"{of.spearman:.2f}", f"{100 * of.ordered:.0f}", _p(of.ratio_error)] for of in lines
    ]
    return _table("Which card is faster", text, header, rows)


def _generals(lines: Sequence[General]) -> list[str]:
    text = (
        "Intervals of a card without any fit (`data/errors/operators.yaml`): quantiles of all cards pooled, their distance from the "
        "median scaled so that the interval of the others holds 80 % of a left-out card's rows on average. The coverage shown is nested: "
        "of each card by a scale that only the others chose (of two cards, by none)."
    )
    header = ["kind", "cards", "rows", "80 % of measured / predicted", "widened", "left-out cards: share inside [%]"]
    rows = [
        [of.kind, str(of.cards), str(of.rows), f"{1 + of.interval[0]:.2f} .. {1 + of.interval[1]:.2f}", f"{of.scale:.2f}",
         ", ".join(f"{100 * share:.0f}" for share in of.inside)]
        for of in lines
    ]  # fmt: skip
    return _table("Cards without a fit", text, header, rows)
