"""Lines for a terminal break between phrases: no number loses its unit, on 100 columns and on 80."""

from __future__ import annotations

import os
import re
from collections.abc import Callable
from io import StringIO

import pytest
from rich.console import Console, Group, RenderableType

from workbench.study.terminal import table_of
from workbench.study.terminal_table import Phrases

UNITS = {"ms", "us", "ns", "%", "KiB", "MiB", "GiB", "kB", "MB", "GB"}


def drawn(part: RenderableType, width: int) -> str:
    out = StringIO()
    Console(file=out, width=width, highlight=False, markup=False).print(part)
    return out.getvalue()


@pytest.mark.parametrize("width", [14, 23, 38])
def test_a_unit_stays_with_its_number(width: int) -> None:
    text = "measured 17.27 ms, 84.2 % of 1.6 TB/s; matrix 94 %, launch 2 %, 96 MiB"
    lines = drawn(Group(Phrases.of(text)), width).splitlines()
    assert " ".join(line.strip() for line in lines) == text
    assert not any(re.match(r"(ms|%|TB/s|MiB|94|2 %)", line) for line in lines)
    assert max(map(len, lines)) <= width


@pytest.mark.parametrize("width", [80, 100, 140])
def test_columns_of_numbers_keep_their_numbers_whole(width: int) -> None:
    """The eight times of a step take 93 columns in rest and fit 80."""
    names = ("compute", "exposed communication", "exposed copy", "host", "waiting", "idle", "step", "device busy")
    table = table_of("where the mean step goes", *names)
    table.add_row(*["467.2 us"] * 8)
    text = drawn(table, width)
    assert text.count("467.2 us") == 8
    assert max(map(len, text.splitlines())) <= width
    assert "communication" in text


def test_answers_do_not_break_numbers(run: Callable) -> None:
    for command in (["inspect", TRACE], ["predict", TRACE, "--npu", "npu-x"]):
        text = run(*command, env={**os.environ, "COLUMNS": "80"}).stdout
        cells = [cell for line in text.splitlines() for cell in re.split(r"\s{2,}", line.strip())]
        assert not [cell for cell in cells if cell.rstrip(",;:") in UNITS or cell.split(" ")[0] in UNITS], text


TRACE = "data/traces/synthetic_ddp.json.gz"
