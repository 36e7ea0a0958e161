"""Dimensions of one operator that contradict each other: a row that says so is no operator."""

from __future__ import annotations

from collections.abc import Mapping

from workbench.operators.formulas import output_extent


def contradiction(dims: Mapping[str, int]) -> str:
    """Return what is wrong between dimensions, or nothing.

    Parameters
    ----------
    dims : mapping of str to int
        By the names of `workbench.operators.table.DIMS`; strides and groups are at least 1.

    Returns
    -------
    str

    Examples
    --------
    >>> contradiction({"heads": 32, "kv_heads": 5})
    '32 heads are no multiple of 5 kv_heads'
    """
    heads, kv_heads = dims.get("heads", 0), dims.get("kv_heads", 0)
    if heads and (not kv_heads or heads % kv_heads):
        return f"{heads} heads are no multiple of {kv_heads} kv_heads"
    if not {"c", "k", "r", "s", "groups"} <= set(dims):
        return ""
    for name in ("c", "k"):
        if dims[name] % dims["groups"]:
            return f"{name} = {dims[name]} is no multiple of {dims['groups']} groups"
    for side, kernel in (("h", "r"), ("w", "s")):
        extents = (dims[side], dims[kernel], dims[f"stride_{side}"], dims[f"pad_{side}"], dims[f"dilation_{side}"])
        if dims[side] and dims[kernel] and not output_extent(*extents):
            return f"a kernel of {kernel} = {dims[kernel]} is larger than the padded input of {side} = {dims[side]}"
    return ""
