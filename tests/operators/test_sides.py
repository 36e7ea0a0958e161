"""Columns that state both sides of a convolution, and all misspelt columns in one message."""

from __future__ import annotations

from pathlib import Path

import pytest

from workbench.errors import InvalidSpec
from workbench.operators.columns import columns_of, dims_of
from workbench.operators.sheet import Sheet, read_sheet
from workbench.operators.table import DIMS, Kind
from workbench.operators.words import Word

HEAD = "op,dtype,n,c,h,w,k"


def sheet(folder: Path, text: str) -> Sheet:
    path = folder / "ops.csv"
    path.write_text(text)
    return read_sheet(path)


@pytest.mark.parametrize(("names", "cells", "expected"), [
    ("kernel_size,stride,pad", "3,2,1", (3, 3, 2, 2, 1, 1)),
    ("kernel size,strides,padding", '3x5,"2,1","(1, 2)"', (3, 5, 2, 1, 1, 2)),
    ("r,s,stride,pads", '3,5,[2 1],"1,1,1,1"', (3, 5, 2, 1, 1, 1)),
    ("r,s,stride_h,stride_w,stride,pad", "3,5,1,,4,0", (3, 5, 1, 4, 0, 0)),  # what a side states itself goes before what both state
])  # fmt: skip
def test_both_sides_at_once(tmp_path: Path, names: str, cells: str, expected: tuple[int, ...]) -> None:
    read = sheet(tmp_path, f"{HEAD},{names},latency_us\nconv_forward,fp16,8,64,56,56,64,{cells},9.5\n")
    found = dims_of(read, columns_of(read), 0, Word(Kind.CONV_FORWARD))
    assert not isinstance(found, str), found
    dims = dict(zip(DIMS[Kind.CONV_FORWARD], found, strict=True))
    assert tuple(dims[name] for name in ("r", "s", "stride_h", "stride_w", "pad_h", "pad_w")) == expected


@pytest.mark.parametrize("cell", ["same", "1x1x1", '"1,1,2,2"', "1.5", "-1"])
def test_what_is_no_pair_of_sides_is_named(tmp_path: Path, cell: str) -> None:
    """Four paddings that differ, words and fractions: the message says where, and what to write instead."""
    read = sheet(tmp_path, f"{HEAD},r,s,pad,latency_us\nconv_forward,fp16,8,64,56,56,64,3,3,{cell},9.5\n")
    with pytest.raises(InvalidSpec, match=r"ops.csv:2.*pad.*pad_h and pad_w"):
        dims_of(read, columns_of(read), 0, Word(Kind.CONV_FORWARD))


def test_all_misspelt_columns_are_named_at_once(tmp_path: Path) -> None:
    read = sheet(tmp_path, "op,dtyp,m,n,k,latncy_us,measured_us\ngemm,fp16,8,8,8,1,1\n")
    with pytest.raises(InvalidSpec, match=r"columns 'dtyp', 'latncy_us': unknown columns.*did you mean 'dtype', 'latency_us'"):
        columns_of(read)
