"""In what two compared recordings differ beyond their times, and what of them cannot be compared."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence

from workbench import units
from workbench.errors import Note
from workbench.study.alignment import ALONE, EXACT, GRID, KIND, NAME, ORDER, Pair
from workbench.study.documents_compare import SideDocument
from workbench.study.steps import overlaps

LOOSE = 0.2
"""Share of operator time aligned by name or kind only that is worth a word [1]."""
FOREIGN = 0.5
"""Share of operator time without a counterpart of its shape or place from which on the recordings are of two models [1]."""
WORK = 0.01
"""Difference in operations a step that is worth a word [1]."""
BOTH = "A, B"


def notes_on(a: SideDocument, b: SideDocument, pairs: Sequence[Pair], aligned: Mapping[str, float], typical: bool) -> list[Note]:
    """Return what to know before two steps are compared.

    Parameters
    ----------
    a, b : SideDocument
    pairs : sequence of Pair
        The operators as they are aligned.
    aligned : mapping
        Share of operator time by how it is aligned.
    typical : bool
        Whether the rank was chosen for its typical change (not asked for).
    """
    return [*_step_notes(a, b), *_rank_notes(a, b, typical), *_work_notes(a, b, pairs, aligned)]


def _step_notes(a: SideDocument, b: SideDocument) -> Iterator[Note]:
    if min(a.step, b.step) < 0 <= max(a.step, b.step):
        marked, bare = ("A", "B") if b.step < 0 else ("B", "A")
        text = f"{marked} has step marks, {bare} has none and is compared as a whole: it may hold several steps"
        yield Note("one-without-steps", BOTH, 1, text, "record both with step marks")
    elif a.steps != b.steps:
        text = f"A has {units.count(a.steps, 'complete step')}, B has {b.steps}: the one nearest to the median is compared on each side"
        yield Note("steps-differ", BOTH, abs(a.steps - b.steps), text, "choose with --step")
    if a.steps > 1 and b.steps > 1 and max(a.low_s, b.low_s) <= min(a.high_s, b.high_s) and a.step_s != b.step_s:
        spread = " and ".join(f"{side.low_s * 1e3:.4g} to {side.high_s * 1e3:.4g} ms" for side in (a, b))
        text = f"the change lies within what steps of one recording differ by ({spread})"
        yield Note("within-spread", BOTH, min(a.steps, b.steps), text, "record more steps")
    for name, side in (("A", a), ("B", b)):
        if overlaps(side.step_s, side.period_s):
            text = f"steps overlap: one takes {side.step_s * 1e3:.4g} ms, but one ends every {side.period_s * 1e3:.4g} ms"
            yield Note("steps-overlap", name, side.steps, text, "")


def _rank_notes(a: SideDocument, b: SideDocument, typical: bool) -> Iterator[Note]:
    more = max(len(a.ranks), len(b.ranks))
    if a.rank != b.rank:
        text = f"no rank is on both sides: rank {a.rank} of A is compared with rank {b.rank} of B"
        yield Note("ranks-differ", BOTH, more, text, "compare recordings of the same ranks")
    elif set(a.ranks) != set(b.ranks):
        text = f"A has {units.count(len(a.ranks), 'rank')}, B has {len(b.ranks)}: ranks on one side only are left out"
        yield Note("ranks-differ", BOTH, len(set(a.ranks) ^ set(b.ranks)), text, "compare recordings of the same ranks")
    if more > 1 and a.rank == b.rank and typical:
        text = f"rank {a.rank} is compared: its change is nearest to the median of the ranks' changes"
        yield Note("typical-rank", BOTH, more, text, "choose with --rank")


def _work_notes(a: SideDocument, b: SideDocument, pairs: Sequence[Pair], aligned: Mapping[str, float]) -> Iterator[Note]:
    """Say that the two do not do the same work, and how it shows in the shapes."""
    kernels = [any(row.kernels for pair in pairs for row in getattr(pair, side)) for side in "ab"]
    if kernels[0] != kernels[1]:
        text = f"{'B' if kernels[0] else 'A'} has no device work: host times of its operators stand beside device times of the other's"
        yield Note("host-and-device", BOTH, 1, text, "record both with the device's activities")
    by_name = sum(aligned.get(by, 0.0) for by in (NAME, KIND))
    loose = sum(pair.by in (NAME, KIND, ALONE) for pair in pairs)
    if by_name + aligned.get(ALONE, 0.0) > FOREIGN:
        share = by_name + aligned.get(ALONE, 0.0)
        text = f"{share:.0%} of the operator time has no counterpart of its shape or place: these look like two models"
        yield Note("other-model", BOTH, loose, text, "compare recordings of one job")
    elif by_name > LOOSE:
        text = f"{by_name:.0%} of the operator time is aligned by name or kind only"
        yield Note("loosely-aligned", BOTH, loose, text, "" if aligned.get(EXACT, 0.0) > aligned.get(GRID, 0.0) else "record shapes")
    factors = Counter(factor for pair in pairs for factor in _factors(pair))
    if factors:
        factor, count = min(factors.items(), key=lambda item: (-item[1], item[0]))
        text = f"shapes differ, most often by a factor {factor:.4g} (batch, length or width): times are not per sample"
        yield Note("shapes-differ", BOTH, count, text, "compare recordings of one batch, or divide by the work")
    if a.flops > 0 and b.flops > 0 and abs(b.flops / a.flops - 1) > WORK:
        text = f"a step of B does {b.flops / a.flops:.4g} times the operations of a step of A, as far as they are known"
        yield Note("work-differs", BOTH, 1, text, "compare the operators whose shapes are the same")


def _factors(pair: Pair) -> list[float]:
    """Return by what the extents of operators aligned by calling order differ."""
    if pair.by != ORDER:
        return []
    a, b = (re.findall(r"\d+", rows[0].shapes) for rows in (pair.a, pair.b))
    if len(a) != len(b):
        return []
    return [int(y) / int(x) for x, y in zip(a, b, strict=True) if x != y and int(x)]
