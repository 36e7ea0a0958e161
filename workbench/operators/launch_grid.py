"""What a kernel's launch grid proves of a product: which of its extents are those of the results.

A grid has a block for every tile of results, so it covers m x n, whatever the tile. A table whose grids cover m x k instead calls the
summed extent n (as NeuSight's do: they multiply an (m, n) by an (n, k) matrix).
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence

TILES = (16, 32, 48, 64, 96, 128, 192, 256)
FEWEST = 20  # rows from which a table's grids are believed
MOST_AS_STATED, LEAST_EXCHANGED = 0.9, 0.98  # of the rows; small extents have grids that cover both ways
WHY = "n and k are exchanged: the launch grids of this table cover m x k results"
_FORM = re.compile(r"(\d+)\s*[xX,]\s*(\d+)(?:\s*[xX,]\s*\d+)?\Z")


def covers(grid: str, high: int, wide: int) -> bool | None:
    """Whether a grid ``"GXxGYxGZ"`` has a block for every tile of high x wide results, for some tile; None where it is no grid."""
    found = _FORM.match(grid.strip("() "))
    if found is None or high < 1 or wide < 1:
        return None
    x, y = int(found[1]), int(found[2])
    rows, cols = {math.ceil(high / tile) for tile in TILES}, {math.ceil(wide / tile) for tile in TILES}
    return (x in rows and y in cols) or (x in cols and y in rows) or any(x * y == a * b for a in rows for b in cols)


def exchanged(rows: Sequence[Sequence[str]], at: Mapping[str, int]) -> bool:
    """Whether the grids of a table's products prove that its n and k are exchanged.

    Parameters
    ----------
    rows : sequence of sequence of str
        Cells of the table.
    at : mapping of str to int
        Positions of its columns; without ``grid``, ``m``, ``n`` and ``k`` nothing is proven.
    """
    if not all(name in at for name in ("grid", "m", "n", "k")):
        return False
    stated = []
    for row in rows:
        grid, *texts = (row[at[name]] for name in ("grid", "m", "n", "k"))
        if grid and all(text.isdigit() for text in texts):
            m, n, k = map(int, texts)
            stated.append((covers(grid, m, n), covers(grid, m, k)))
    known = [pair for pair in stated if pair[0] is not None]
    if len(known) < FEWEST:
        return False
    as_stated, other = (sum(bool(pair[side]) for pair in known) / len(known) for side in (0, 1))
    return as_stated <= MOST_AS_STATED and other >= LEAST_EXCHANGED
