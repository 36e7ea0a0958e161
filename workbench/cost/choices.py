"""What a user fixes of how operators run: a tiling, an algorithm, what is still on the chip from the last use."""

from __future__ import annotations

import math
from dataclasses import dataclass

from workbench.cost.tiles import Tile

Copies = tuple[float, float]
COLD: Copies = (math.inf, math.inf)
"""How many working sets, and how many outputs, compete for the shared level between two uses; infinite: nothing stays."""
CHEAPEST = "cheapest"


@dataclass(frozen=True)
class Choices:
    """``tile`` of matrix products and ``algorithm`` of convolutions (None, "cheapest": the fastest is chosen); ``copies`` as `COLD` says.

    A measuring harness that repeats one operator on one set of operands has copies (1, 1); one that cycles through six, (6, 2);
    a real job finds its operands cold unless its neighbours left them. ``persistent`` keeps a recurrent layer's weights in the
    cores where they fit, which libraries do on request only. ``sparse``: B of every matrix product (the weights) has two zeros in
    every four along K, which are left out (`workbench.cost.sparsity`). ``attention`` are the copies of attention where they differ.
    """

    tile: Tile | None = None
    algorithm: str = CHEAPEST
    copies: Copies = COLD
    persistent: bool = False
    sparse: bool = False
    attention: Copies | None = None

    @property
    def attention_copies(self) -> Copies:
        """``copies`` of attention: its own where they are stated."""
        return self.copies if self.attention is None else self.attention


FREE = Choices()
"""Nothing fixed, operands cold."""
