"""What software and host add to a step that neither card nor network states: at most four numbers, 1 and 0 unless fitted and said so."""

from __future__ import annotations

from dataclasses import dataclass, fields

import numpy as np

from workbench.errors import InvalidSpec
from workbench.operators.table import Kind, OpTable

PRODUCTS = (Kind.GEMM, Kind.BATCHED_GEMM, Kind.GROUPED_GEMM, Kind.CONV_FORWARD, Kind.CONV_BACKWARD_DATA, Kind.CONV_BACKWARD_WEIGHT,
            Kind.ATTENTION_FORWARD, Kind.ATTENTION_BACKWARD)  # fmt: skip


@dataclass(frozen=True)
class System:
    """Four numbers of a system.

    ``matrix``: time of matrix operators over what the model says [1]. ``vector``: the same of all others [1]. ``network``: time of messages
    over what the network model says [1]. ``host_s``: time the host takes to launch an operator; a pass takes at least that many [s].
    """

    name: str = "ideal"
    matrix: float = 1.0
    vector: float = 1.0
    network: float = 1.0
    host_s: float = 0.0

    def __post_init__(self) -> None:
        for field in fields(self):
            value = getattr(self, field.name)
            if field.name != "name" and not (np.isfinite(value) and value >= 0.0):
                raise InvalidSpec(f"system.{field.name}", f"{value!r} cannot be", "give a number of at least 0")

    def operator_factor(self, table: OpTable) -> np.ndarray:
        """Return the factor on the time of every operator, float64 [U] [1]."""
        return np.where(table.among(PRODUCTS), self.matrix, self.vector)


IDEAL = System()
