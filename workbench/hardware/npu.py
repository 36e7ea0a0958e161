"""Cards by name or file: the catalogue under ``data/npu`` and a person's own descriptions."""

from __future__ import annotations

import os
import re
from functools import cache

from workbench.data import is_file
from workbench.hardware.named import own_text, shipped, shipped_text, unknown_name
from workbench.hardware.partition import partition_aliases
from workbench.hardware.parts import Field
from workbench.hardware.spec import NpuSpec
from workbench.hardware.text import read_yaml

__all__ = ["Field", "NpuSpec", "catalogue", "detect", "load_npu"]


def catalogue() -> tuple[str, ...]:
    """Return the names of the cards that come with the workbench.

    Returns
    -------
    tuple of str
        Sorted.
    """
    return shipped("npu")


def load_npu(name_or_path: str | os.PathLike[str]) -> NpuSpec:
    """Load a card.

    Parameters
    ----------
    name_or_path : str or path
        A catalogue name (see `catalogue`; case does not matter) or the path of a YAML description; either may be followed by a
        partition: ``"h100-sxm:3g.40gb"``.

    Returns
    -------
    NpuSpec

    Raises
    ------
    InvalidSpec
        Unknown name (the nearest are listed) or a description that does not hold.
    UnreadableInput
        A path that cannot be read.
    """
    text = str(name_or_path)
    if text.lower() in catalogue():
        return _catalogued(text.lower())
    card, colon, part = text.rpartition(":")
    if colon and part and not is_file(text) and (card.lower() in catalogue() or card.endswith((".yaml", ".yml"))):
        return load_npu(card).partition(part)
    content = own_text(text)
    if content is not None:
        return read_yaml(content, text)
    raise unknown_name(text, catalogue(), "card", "the path of a YAML description")


@cache
def _catalogued(name: str) -> NpuSpec:
    return read_yaml(*shipped_text("npu", name))


def detect(device_name: str) -> NpuSpec | None:
    """Return the catalogued card a trace names, None when none fits.

    Parameters
    ----------
    device_name : str
        As a profiler writes it, e.g. ``"NVIDIA A100-SXM4-80GB"`` or, a partition, ``"NVIDIA A100-SXM4-80GB MIG 3g.40gb"``.
        Compared with names and aliases without regard to case, punctuation and the vendor's name; an alias that ends in ``*``
        matches every continuation.
    """
    wanted = _plain(device_name)
    if not wanted:
        return None
    for name in catalogue():
        spec = _catalogued(name)
        for part in spec.partitions:
            if any(wanted == _plain(alias) for alias in partition_aliases(spec, part)):
                return spec.partition(part)
        for alias in (spec.name, *spec.aliases):
            plain = _plain(alias)
            if wanted == plain or (alias.endswith("*") and wanted.startswith(plain)):
                return spec
    return None


def _plain(name: str) -> str:
    words = re.sub(r"[^a-z0-9]+", " ", name.lower()).split()
    return "".join(word for word in words if word not in ("nvidia", "amd", "instinct", "tesla", "huawei"))
