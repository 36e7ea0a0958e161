"""Colours and words for kinds, bounds and evidence: one scale in every picture (Okabe-Ito, safe for colour blindness)."""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum

import numpy as np

from workbench.cost.cost import Bound, Evidence
from workbench.graph.graph import Graph, NodeKind
from workbench.operators.table import Kind, OpTable


class Look(IntEnum):
    """What a bar of the timeline is drawn as."""

    MATRIX = 0
    VECTOR = 1
    OTHER = 2  # device kernel of no known kind
    COMMUNICATION = 3
    COPY = 4
    HOST = 5
    CALL = 6
    WAIT = 7
    GAP = 8


@dataclass(frozen=True, slots=True)
class Ink:
    """A colour on light and on dark ground, and its word."""

    word: str
    light: str
    dark: str


LOOKS: dict[Look, Ink] = {
    Look.MATRIX: Ink("matrix work", "#0072B2", "#3D9BD9"),
    Look.VECTOR: Ink("vector work", "#56B4E9", "#8ACBF0"),
    Look.OTHER: Ink("other device work", "#7A7F87", "#9AA0A8"),
    Look.COMMUNICATION: Ink("communication", "#D55E00", "#F08A3C"),
    Look.COPY: Ink("copy or fill", "#E69F00", "#F2BC4B"),
    Look.HOST: Ink("host operator", "#009E73", "#2DBE95"),
    Look.CALL: Ink("runtime call", "#7CC8AE", "#8FDCC1"),
    Look.WAIT: Ink("waiting call", "#B9A400", "#E5D95A"),
    Look.GAP: Ink("host gap", "#C9CDD3", "#4A4F57"),
}
BOUNDS: dict[Bound, Ink] = {
    Bound.UNKNOWN: Ink("unknown", "#7A7F87", "#9AA0A8"),
    Bound.MATRIX: Ink("matrix unit", "#0072B2", "#3D9BD9"),
    Bound.VECTOR: Ink("vector unit", "#56B4E9", "#8ACBF0"),
    Bound.LOCAL: Ink("core-local memory", "#CC79A7", "#DE9CC1"),
    Bound.SHARED: Ink("shared memory (L2)", "#009E73", "#2DBE95"),
    Bound.MEMORY: Ink("outermost memory", "#E69F00", "#F2BC4B"),
    Bound.LAUNCH: Ink("launch and fill", "#8C564B", "#B98275"),
    Bound.LATENCY: Ink("waiting for data", "#B9A400", "#E5D95A"),
    Bound.NETWORK: Ink("network", "#D55E00", "#F08A3C"),
    Bound.HANDOVER: Ink("hand-over between cores", "#7B61A8", "#A58FD0"),
    Bound.CONVERSION: Ink("layout conversion", "#6B8E23", "#9BBF55"),
    Bound.FALLBACK: Ink("control processors", "#A0522D", "#CD8B62"),
}
EVIDENCE: dict[Evidence, Ink] = {
    Evidence.MEASURED: Ink("measured", "#0072B2", "#3D9BD9"),
    Evidence.VENDOR: Ink("vendor", "#009E73", "#2DBE95"),
    Evidence.INTERPOLATED: Ink("interpolated", "#7CC8AE", "#8FDCC1"),
    Evidence.MODEL: Ink("model", "#56B4E9", "#8ACBF0"),
    Evidence.SCALED: Ink("scaled measurement", "#E69F00", "#F2BC4B"),
    Evidence.ANCHORED: Ink("anchored", "#CC79A7", "#E09CC2"),
    Evidence.EXTRAPOLATED: Ink("extrapolated", "#D55E00", "#F08A3C"),
}
ACCOUNT: tuple[tuple[str, Ink], ...] = (
    ("compute", LOOKS[Look.MATRIX]),
    ("exposed_communication", LOOKS[Look.COMMUNICATION]),
    ("exposed_copy", LOOKS[Look.COPY]),
    ("host", LOOKS[Look.HOST]),
    ("waiting", LOOKS[Look.WAIT]),
    ("idle", Ink("idle", "#B4B9C0", "#5A6069")),
)
"""Parts of an account in the order they are stacked, with their colour."""

_MATRIX_KINDS = (
    Kind.GEMM,
    Kind.BATCHED_GEMM,
    Kind.GROUPED_GEMM,
    Kind.CONV_FORWARD,
    Kind.CONV_BACKWARD,
    Kind.CONV_BACKWARD_DATA,
    Kind.CONV_BACKWARD_WEIGHT,
    Kind.ATTENTION_FORWARD,
    Kind.ATTENTION_BACKWARD,
    Kind.RNN,
)
_NODE_LOOK = {
    NodeKind.COMPUTE: Look.VECTOR,
    NodeKind.COMMUNICATION: Look.COMMUNICATION,
    NodeKind.COPY: Look.COPY,
    NodeKind.HOST_WORK: Look.HOST,
    NodeKind.HOST_CALL: Look.CALL,
    NodeKind.LAUNCH: Look.CALL,
    NodeKind.LAUNCH_RETURN: Look.CALL,
    NodeKind.SYNC: Look.WAIT,
    NodeKind.GAP: Look.GAP,
}


def looks(graph: Graph, table: OpTable) -> np.ndarray:
    """Return how every node is drawn, uint8 [V], `Look`."""
    by_kind = np.full(max(NodeKind) + 1, Look.OTHER, dtype=np.uint8)
    for kind, look in _NODE_LOOK.items():
        by_kind[kind] = look
    out = by_kind[graph.kind]
    compute = np.flatnonzero(
        (graph.kind == NodeKind.COMPUTE) | ((graph.kind == NodeKind.HOST_WORK) & (graph.op >= 0))
    )  # CPU-only: priced host work
    row = graph.op[compute]
    none = np.full(len(compute), int(Kind.UNKNOWN))
    what = np.where(row >= 0, table.kind[np.maximum(row, 0)], none) if len(table) else none
    out[compute] = np.where(
        np.isin(what, _MATRIX_KINDS), int(Look.MATRIX), np.where(what == int(Kind.UNKNOWN), int(Look.OTHER), int(Look.VECTOR))
    )
    return out
