"""Two recordings side by side as text for a terminal 100 columns wide: the answer, then what it is made of."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import PurePath

from rich.console import RenderableType
from rich.table import Table
from rich.text import Text

from workbench import units
from workbench.study.compare_notes import BOTH
from workbench.study.compare_summary import SAME, causes, headline, signed
from workbench.study.documents_compare import (
    CategoryDocument,
    ComparisonDocument,
    DifferenceDocument,
    OperatorPairDocument,
    OperatorSideDocument,
    RankPairDocument,
    SideDocument,
)
from workbench.study.steps import overlaps
from workbench.study.terminal import notes_text, percent, seconds, table_of

LEAST = 5e-4
"""Shares below this are left empty [1]."""
ALONE_NAMED = 3
MOST_RANKS = 16
LONGEST = 40
"""Letters of a kernel's name."""


def comparison_text(document: ComparisonDocument, most: int = 10) -> Iterator[RenderableType]:
    """Yield a comparison for a person, the answer first."""
    step = document.a.step_s
    yield Text(headline(step, document.b.step_s), style="bold")
    if abs(document.delta_s) >= SAME * step:
        yield from (Text(f"  {signed(effect):>11}  {name}") for effect, name in causes(document.operators, document.chain))
    for name, side in (("A", document.a), ("B", document.b)):
        yield _side(name, side)
    own = [note for note in document.notes if note.where == BOTH or note.where in ("A", "B")]
    yield from notes_text(own)
    yield _parts("where the step goes", document.account, step)
    yield _parts("the chain of work and lags that ends the step", document.chain, step)
    yield _counts(document.categories)
    if len(document.ranks) > 1:
        yield _ranks(document.ranks, document.a.rank, step)
    yield from _operators(document, most)
    yield from _host(document, most)
    for name in "AB":
        codes = Counter(note.code for note in document.notes if note.where.startswith(f"{name}: "))
        if codes:
            yield Text(f"notes on {name} (--json says more): {', '.join(codes)}", style="dim")


def _side(name: str, side: SideDocument) -> Text:
    where = f"step {side.step}" if side.step >= 0 else "whole recording (no step marks)"
    where += f" of rank {side.rank}, {len(side.ranks)} ranks" if len(side.ranks) > 1 else ""
    spread = f" in {seconds(side.low_s)} to {seconds(side.high_s)}" if side.steps > 1 else ""
    every = f"; steps overlap, one every {seconds(side.period_s)}" if overlaps(side.step_s, side.period_s) else ""
    line = Text(f"{name}  {_paths(side.path)}")
    cards = ", ".join(side.devices[:2]) or "unknown card"
    line.append(f"  {cards}; {where}, median of {side.steps}{spread}{every}", style="dim")
    return line


def _paths(text: str) -> str:
    paths = text.split(", ")
    return text if len(paths) == 1 else f"{PurePath(paths[0]).parent} ({units.count(len(paths), 'file')})"


def _share(value: float, step: float) -> str:
    return f"{100 * value / step:+.1f} %" if step > 0 and abs(value) >= LEAST * step else ""


def _parts(title: str, parts: Sequence[DifferenceDocument], step: float) -> Table:
    table = table_of(title, "part", "A", "B", "change", "of step")
    for part in parts:
        if part.a_s or part.b_s:
            cells = seconds(part.a_s), seconds(part.b_s), signed(part.delta_s), _share(part.delta_s, step)
            table.add_row(part.name.replace("_", " "), *cells)
    a, b, change = (sum(getattr(part, field) for part in parts) for field in ("a_s", "b_s", "delta_s"))
    table.add_section()
    table.add_row("step (sum of the above)", seconds(a), seconds(b), signed(change), _share(change, step))
    table.columns[0].justify = "left"
    return table


def _counts(rows: Sequence[CategoryDocument]) -> Table:
    table = table_of("what the step holds (times may overlap)", "", "A", "B", "change", "A ", "B ", "change ")
    for row in rows:
        if row.a_count or row.b_count:
            counts = str(row.a_count), str(row.b_count), f"{row.delta_count:+d}" if row.delta_count else "0"
            table.add_row(row.name, *counts, seconds(row.a_s), seconds(row.b_s), signed(row.delta_s))
    table.columns[0].justify = "left"
    return table


def _ranks(pairs: Sequence[RankPairDocument], compared: int, step: float) -> Table:
    shown = sorted(sorted(pairs, key=lambda pair: -pair.delta_s)[:MOST_RANKS], key=lambda pair: pair.rank)
    rest = f", the {len(shown)} that got slowest of {len(pairs)}" if len(shown) < len(pairs) else ""
    table = table_of(f"median step by rank{rest}", "rank", "A", "B", "change", "of step")
    for pair in shown:
        name = f"{pair.rank}{' *' if pair.rank == compared else '  '}"
        table.add_row(name, seconds(pair.a_s), seconds(pair.b_s), signed(pair.delta_s), _share(pair.delta_s, step))
    table.caption = "* compared above and below"
    return table


def _operators(document: ComparisonDocument, most: int) -> Iterator[RenderableType]:
    changed = [row for row in document.operators if row.a and row.b and (row.delta_s or row.effect_s)]
    if changed:
        shown = changed[:most]
        title = f"operators, the largest effect on the step first ({len(shown)} of {len(changed)} that changed)"
        table = table_of(title, "operator", "calls", "A", "B", "change", "of step", wide="operator")
        for row in shown:
            calls = " > ".join(dict.fromkeys(str(side.count) for side in (row.a, row.b) if side))
            times = (seconds(side.total_s) for side in (row.a, row.b) if side)
            table.add_row(_name(row), calls, *times, signed(row.delta_s), _share(row.effect_s, document.a.step_s))
        yield table
    for name, side in (("A", "b"), ("B", "a")):
        alone = [row for row in document.operators if getattr(row, side) is None]
        if alone:
            yield _alone(name, alone)
    shares = ", ".join(f"{by} {percent(share)}" for by, share in document.aligned.items() if share >= LEAST)
    if shares:
        yield Text(f"of step: change on the chain that ends the step; operator time is aligned by {shares}", style="dim")


def _alone(name: str, rows: Sequence[OperatorPairDocument]) -> Text:
    rows = sorted(rows, key=lambda row: -abs(row.delta_s))
    total, effect = sum(abs(row.delta_s) for row in rows), sum(row.effect_s for row in rows)
    calls = sum(side.count for row in rows for side in (row.a, row.b) if side)
    counted = f"{units.count(len(rows), 'operator')}, {units.count(calls, 'call')}"
    line = Text(f"only in {name}: {counted}, {seconds(total)}, effect {signed(effect)}: ")
    line.append(", ".join(f"{kernel_name(row.label, 48)} {seconds(abs(row.delta_s))}" for row in rows[:ALONE_NAMED]))
    line.append(f" and {len(rows) - ALONE_NAMED} more" if len(rows) > ALONE_NAMED else "")
    return line


def _name(row: OperatorPairDocument) -> Text:
    dtypes = [[name for name in side.dtypes if name != "unknown"] for side in (row.a, row.b) if side]
    types = " > ".join(dict.fromkeys(", ".join(names) for names in dtypes if names))
    text = Text(" ".join(filter(None, (kernel_name(row.label, 60), types))), no_wrap=True, overflow="ellipsis")
    sides = [side for side in (row.a, row.b) if side]
    shapes = merged(*(side.shapes[0] if side.shapes else "" for side in sides)) if len(sides) == 2 else ""
    more = max(len(side.shapes) for side in sides) - 1
    if shapes:
        text.append(f"\n{shapes}{f' and {more} more' if more > 0 else ''}", style="dim")
    kernels = [_longest(side) for side in sides]
    if all(kernels) and len(set(kernels)) == 2:
        text.append("".join(f"\n{name} {kernel}" for name, kernel in zip("AB", kernels, strict=True)), style="dim")
    return text


def _longest(side: OperatorSideDocument) -> str:
    return kernel_name(side.kernels[0].name, LONGEST) if side.kernels else ""


def kernel_name(name: str, most: int) -> str:
    """Return a kernel's name without what it returns, template lists and arguments, at most so long."""
    bare, before = name.removeprefix("void ").replace("(anonymous namespace)::", ""), ""
    while bare != before:
        before, bare = bare, re.sub(r"<[^<>]*>", "", bare)
    bare = re.split(r"[<(]", bare)[0].strip() or name
    return bare if len(bare) <= most else f"{bare[: most - 3]}..."


def merged(a: str, b: str) -> str:
    """Return two texts of shapes as one where only numbers differ: ``[8>16,64]``."""
    if a == b:
        return a
    parts = [re.split(r"(\d+)", text) for text in (a, b)]
    if len(parts[0]) != len(parts[1]) or parts[0][::2] != parts[1][::2]:
        return f"{a or 'no shapes'} | {b or 'no shapes'}"
    return "".join(x if x == y else f"{x}>{y}" for x, y in zip(*parts, strict=True))


def _host(document: ComparisonDocument, most: int) -> Iterator[Table]:
    changed = [row for row in document.host if row.effect_s or row.delta_s]
    if not changed:
        return
    shown = changed[:most]
    title = f"host, the largest effect on the step first ({len(shown)} of {len(changed)} that changed)"
    table = table_of(title, "activity", "count", "A", "B", "change", "of step", wide="activity")
    for row in shown:
        counts = " > ".join(dict.fromkeys((str(row.a_count), str(row.b_count))))
        name = Text(row.name, no_wrap=True, overflow="ellipsis")
        share = _share(row.effect_s, document.a.step_s)
        table.add_row(name, counts, seconds(row.a_s), seconds(row.b_s), signed(row.delta_s), share)
    yield table
