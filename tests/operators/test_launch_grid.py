"""Launch grids against stated extents: a grid covers the results, whatever the tile."""

from __future__ import annotations

import math

import numpy as np

from workbench.operators.launch_grid import covers, exchanged

AT = {"grid": 0, "m": 1, "n": 2, "k": 3}


def rows(reduced: str, count: int = 40) -> list[list[str]]:
    """Tables whose grids are those of 128 x 64 tiles, ``reduced`` naming the extent that is summed over."""
    out = []
    for m, one, two in np.random.default_rng(0).integers(300, 5000, (count, 3)).tolist():
        n, k = (one, two) if reduced == "k" else (two, one)
        out.append([f"{math.ceil(one / 64)}x{math.ceil(m / 128)}x1", str(m), str(n), str(k)])
    return out


def test_covers():
    assert covers("12x8x1", 1000, 768)  # tiles of 128 x 64
    assert covers("96x1x1", 1000, 768)  # the same in one row
    assert covers("40x30x1", 1000, 768) is False
    assert covers("-", 5, 5) is None


def test_a_table_is_exchanged_only_where_its_grids_prove_it():
    assert exchanged(rows("n"), AT)
    assert not exchanged(rows("k"), AT)
    assert not exchanged(rows("n", 10), AT)  # too few to tell
    assert not exchanged(rows("n"), {"m": 1, "n": 2, "k": 3})
    assert not exchanged([["", "5", "6", "7"]] * 40, AT)
