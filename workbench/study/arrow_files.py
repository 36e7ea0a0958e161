"""Tables as Parquet and Arrow files, which pandas, polars, DuckDB and Spark open."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any

from workbench.errors import Refused
from workbench.study.export_tables import Column, Table


def write_arrow(table: Table, path: str | os.PathLike[str]) -> int:
    """Write a table: Parquet, or an Arrow file where the name ends in ``.arrow`` or ``.feather``.

    Parameters
    ----------
    table : Table
    path : str or path

    Returns
    -------
    int
        Rows written. Every column states its unit (metadata ``units``); the file what it is of (metadata ``workbench.*``).

    Raises
    ------
    Refused
        The package pyarrow is missing, or the file cannot be written.
    """
    name = os.fspath(path)
    try:
        import pyarrow as pa
        from pyarrow import parquet
    except ImportError:
        raise Refused(
            name,
            "Parquet and Arrow files need the package pyarrow, which is not installed",
            "pip install 'npu-workbench[tables]', or export to .json.gz",
        ) from None
    arrays = {key: _array(pa, column) for key, column in table.columns.items()}
    fields = [
        pa.field(key, array.type, metadata={"units": column.unit} if (column := table.columns[key]).unit else None)
        for key, array in arrays.items()
    ]
    about = {f"workbench.{key}": value for key, value in {"table": table.name, **table.attributes}.items()}
    whole = pa.Table.from_arrays(list(arrays.values()), schema=pa.schema(fields, metadata=_bytes(about)))
    try:
        if name.lower().endswith((".arrow", ".feather")):
            with pa.OSFile(name, "wb") as sink, pa.ipc.new_file(sink, whole.schema) as writer:
                writer.write_table(whole)
        else:
            parquet.write_table(whole, name)
    except OSError as fault:
        raise Refused(name, f"cannot be written: {fault.strerror or fault}", "choose another file") from None
    return len(table)


def _bytes(texts: Mapping[str, str]) -> dict[bytes, bytes]:
    return {key.encode(): value.encode() for key, value in texts.items()}


def _array(pa: Any, column: Column) -> Any:
    """Return a column as an Arrow array; words as a dictionary, so that a name is stored once."""
    if column.words is None:
        return pa.array(column.values, mask=None if column.known is None else ~column.known)
    words = pa.array([word.encode("utf-8", "replace").decode() for word in column.words], type=pa.string())
    codes = pa.array(column.values, mask=column.values < 0)
    return pa.DictionaryArray.from_arrays(codes, words)
