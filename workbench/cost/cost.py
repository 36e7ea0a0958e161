"""OpCost: the seconds of every operator on every candidate card, and what each rests on."""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum

import numpy as np


class Evidence(IntEnum):
    """What a predicted time rests on, best first."""

    MEASURED = 0  # recorded on the card itself (identity replay)
    VENDOR = 1  # a vendor's operator time, exact match
    INTERPOLATED = 2  # between a vendor's operator times
    MODEL = 3  # analytical model
    SCALED = 4  # measured, without a model: bounded by ratios of peaks and bandwidths
    EXTRAPOLATED = 5  # beyond what a table or calibration covers
    ANCHORED = 6  # measured x model(target) / model(source): the recording corrects what the model misses of both cards alike


class Bound(IntEnum):
    """The resource that sets an operator's time."""

    UNKNOWN = 0
    MATRIX = 1
    VECTOR = 2
    LOCAL = 3  # core-local memory port (L1, shared memory, L0)
    SHARED = 4  # shared on-chip level (L2, scratchpad)
    MEMORY = 5  # outermost memory (HBM)
    LAUNCH = 6  # launch overhead, the way to the first tile and from the last
    NETWORK = 7
    HANDOVER = 8  # tiles on their way between matrix and vector cores that share no buffer
    CONVERSION = 9  # operators that bring operands into the matrix unit's layout
    FALLBACK = 10  # control processors, on which operators run that the cores cannot
    LATENCY = 11  # waiting for data in flight, which no tile hides


LEVELS = ("local", "shared", "memory", "operand_a", "operand_b", "accumulator", "cluster", "vector")
"""Part a memory level plays, and the order of ``OpCost.level_bytes``: core-local staging, shared level next to the outermost, outermost;
feeds and sums of the array; the first level between cores and shared one (a cluster's); buffer of the vector unit. Further levels
between follow, see `level_names`."""


def level_names(width: int) -> tuple[str, ...]:
    """Return the names of ``width`` slots of ``level_bytes``: `LEVELS`, then ``cluster_2``, ``cluster_3`` ... from the core outward."""
    return (*LEVELS, *(f"cluster_{at}" for at in range(2, width - len(LEVELS) + 2)))


@dataclass(frozen=True)
class OpCost:
    """Seconds of U operators on S specs; arrays read-only.

    ``resource_s[u, s, r]`` is the busy time of resource r = Bound(r) alone; ``seconds`` is their combination by
    the model of the row's kind. ``level_bytes[u, s, l]`` is traffic [B] with level l of ``levels``.
    ``low_s``/``high_s`` bound an 80 % interval. ``note_code[u]`` indexes ``reasons`` (0: none), e.g. a substituted dtype.
    ``energy_j[u, s]`` is what one execution takes, idle power while it runs included; nan where its work or the card's energies are
    not known. ``energy_why[s]`` says what of the card's energies is estimated or missing (empty: all are stated).
    """

    seconds: np.ndarray  # float64 [U, S] [s]
    low_s: np.ndarray  # float64 [U, S] [s]
    high_s: np.ndarray  # float64 [U, S] [s]
    resource_s: np.ndarray  # float64 [U, S, len(Bound)] [s]
    level_bytes: np.ndarray  # float64 [U, S, len(levels)] [B]
    bound: np.ndarray  # int8 [U, S], Bound
    evidence: np.ndarray  # int8 [U], Evidence
    note_code: np.ndarray  # int32 [U]
    reasons: tuple[str, ...]
    energy_j: np.ndarray  # float64 [U, S] [J]
    idle_w: np.ndarray  # float64 [S] [W]
    energy_why: tuple[str, ...]
    algorithm: np.ndarray  # int8 [U, S], of convolutions: see `workbench.cost.convolution.algorithm_names`
    tile: np.ndarray  # int32 [U, S, 3], of products: rows and columns of results a core works on at a time, parts of K (0: no tiles)

    @property
    def levels(self) -> tuple[str, ...]:
        """Names of the levels, `LEVELS` and more where a card has several between its cores and the shared one."""
        return level_names(self.level_bytes.shape[2])
