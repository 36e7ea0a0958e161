"""Cells and names of a hundred thousand letters: answered, not searched through for minutes (no time is asserted: it would not end)."""

from __future__ import annotations

from pathlib import Path

import pytest

from workbench.errors import Refused, WorkbenchError
from workbench.operators import headings
from workbench.operators.kinds import bounded, ran_of, rule_for
from workbench.operators.table import Kind
from workbench.operators.words import word
from workbench.study.operators_csv import read_operators

LONG = {name: cell * (100_000 // len(cell)) for name, cell in {"open": "[", "round": "(", "words": "a_", "commas": "1,", "x": "x"}.items()}


@pytest.mark.parametrize("cell", LONG.values(), ids=LONG)
def test_a_file_in_one_line(tmp_path: Path, cell: str) -> None:
    path = tmp_path / "ops.csv"
    path.write_text(cell)
    with pytest.raises(WorkbenchError):
        read_operators(path)
    path.write_text(f'op,dtype,m,n,k,"{cell}"\n"{cell}",bf16,1,1,1,1\ngemm,bf16,4,4,4,"{cell}"\n')
    assert read_operators(path).table.dims[0, :4].tolist() == [1, 4, 4, 4]


@pytest.mark.parametrize("cell", LONG.values(), ids=LONG)
def test_names_nobody_wrote(cell: str) -> None:
    assert not headings.known(cell)
    assert word(cell) is None
    assert rule_for(cell) is None
    assert len(bounded(cell)) <= 4096
    assert ran_of(cell).kind == Kind.UNKNOWN


def test_names_of_kernels_keep_what_says_their_kind() -> None:
    name = "void cutlass::Kernel2<" + "cutlass::gemm::Shape<128, 128, 32>, " * 50 + ">"
    assert bounded(name) == name


def test_a_refusal_quotes_both_ends_of_what_is_long() -> None:
    said = str(Refused("file", "begin" + "x" * 100_000 + "end", "mend it"))
    assert len(said) < 5000
    assert "begin" in said
    assert "end (mend it)" in said
