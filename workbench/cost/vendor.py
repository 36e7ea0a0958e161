"""A vendor's operator times: a table read strictly, looked up exactly (`workbench.cost.interpolate` for what lies between)."""

from __future__ import annotations

import math
import os
from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np

from workbench.cost.contract import CONTRACT, Contract
from workbench.cost.vendor_rows import Incomplete, Key, gather
from workbench.errors import Note
from workbench.operators.table import DIMS, Dtype, Kind, OpTable
from workbench.operators.words import bare

__all__ = ["CONTRACT", "Contract", "Incomplete", "Key", "VendorTimes", "read_vendor"]
_PRODUCTS = {Kind.GEMM: Kind.BATCHED_GEMM, Kind.BATCHED_GEMM: Kind.GEMM}


@dataclass(frozen=True)
class VendorTimes:
    """A vendor's times. ``exact`` maps (kind or operator name, dtype, dims) and ``signed`` maps signatures to seconds.

    ``contract`` says what the times mean, ``incomplete`` lists rows without a time or without a complete shape.
    """

    path: str
    exact: Mapping[Key, float] = field(repr=False)
    signed: Mapping[str, float] = field(repr=False)
    digest: str
    notes: tuple[Note, ...] = ()
    contract: Contract = field(default_factory=Contract)
    incomplete: tuple[Incomplete, ...] = field(default=(), repr=False)
    same: Mapping[Key, Key] = field(default_factory=dict, repr=False)  # further keys of a row whose kind is not known -> its first

    def __len__(self) -> int:
        return len(self.exact) - len(self.same) + len(self.signed)

    def lookup(self, table: OpTable) -> np.ndarray:
        """Return the stated seconds of every row, float64 [U] [s]; nan where the table has none."""
        out = np.full(len(table), math.nan)
        for row, (kind, dtype) in enumerate(zip(table.kind.tolist(), table.dtype.tolist(), strict=True)):
            found = self.signed.get(table.signature[row])
            if found is None and self.exact:
                dims = tuple(table.dims[row, : len(DIMS[Kind(kind)])].tolist())
                name = Dtype(dtype).name.lower()
                for label in labels(Kind(kind), table.name[row], dims):
                    found = self.exact.get((label, name, dims))
                    if found is not None:
                        break
            if found is not None:
                out[row] = found
        return out


def labels(kind: Kind, name: str, dims: tuple[int, ...]) -> tuple[str, ...]:
    """Return the labels under which a table may state an operator, best first: its own name, the name's plain form, its kind.

    A product of batch 1 is one whether it is called batched or not.
    """
    own = (name.lower(), bare(name), kind.name.lower())
    return (*own, _PRODUCTS[kind].name.lower()) if kind in _PRODUCTS and dims[0] == 1 else own


def read_vendor(
    path: str | os.PathLike[str], columns: Mapping[str, str] | None = None, contract: Mapping[str, str] | None = None
) -> VendorTimes:
    """Read a vendor's operator times as vendors deliver them.

    Columns: ``kind`` (or ``op``, ``operator``, ``type``, ``name``), ``dtype``, the dims of the kind by name (``m``, ``n``, ``k``,
    ``batch`` ..., see `workbench.operators.headings.ALIASES`), shapes (``1,128,768;768,3072``, ``M128N3072K768``) or ``signature``,
    and a time with its unit in the header, in a row of units below it or in every cell (``Duration(us)``, ``time [ms]``), or cycles
    with a clock. Titles above the header, totals, merged names, several sheets, decimal commas and encodings other than UTF-8 are
    understood and noted. Kernel tables of the Ascend profiler are read as they are.

    Parameters
    ----------
    path : str or path
        CSV, TSV, Excel or Parquet file.
    columns : mapping of str to str, optional
        Name in the file to the name it means, e.g. ``{"dauer": "time_us"}``.
    contract : mapping of str to str, optional
        Answers to the questions of `CONTRACT`; they go before those in ``# key: value`` lines and in a YAML file beside the table.

    Returns
    -------
    VendorTimes
        Rows without shape or with N/A are left out, listed in ``incomplete`` and counted in a note; of several times for one operator
        the median is taken, with a note.

    Raises
    ------
    InvalidSpec
        Misspelt column, no unit, a cell that is no number; file, line and column are named.
    UnreadableInput
        The file cannot be read.
    """
    found = gather(str(path) if isinstance(path, os.PathLike) else path, columns or {}, contract or {})
    return VendorTimes(found.path, found.exact, found.signed, found.digest, found.notes, found.contract, found.incomplete, found.same)
