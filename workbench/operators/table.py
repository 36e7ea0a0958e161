"""OpTable: one row a *unique* operator, with a count. No hardware, no predicted time."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from enum import IntEnum

import numpy as np


class Kind(IntEnum):
    """What an operator computes; decides which formula and which cost model apply."""

    UNKNOWN = 0  # no formula: priced by a vendor time or by scaling the measurement
    GEMM = 1
    BATCHED_GEMM = 2
    CONV_FORWARD = 3
    CONV_BACKWARD_DATA = 4
    CONV_BACKWARD_WEIGHT = 5
    ATTENTION_FORWARD = 6
    ATTENTION_BACKWARD = 7
    ELEMENTWISE = 8
    REDUCTION = 9
    SOFTMAX = 10
    NORM = 11
    EMBEDDING = 12  # embedding, gather, scatter, index
    POOLING = 13
    COPY = 14  # device-to-device, host-to-device, device-to-host, layout change
    SET = 15  # fill of memory
    OPTIMIZER = 16  # fused optimizer step
    RNN = 17
    ALL_REDUCE = 18
    ALL_GATHER = 19
    REDUCE_SCATTER = 20
    ALL_TO_ALL = 21
    BROADCAST = 22
    SEND_RECV = 23
    BARRIER = 24
    CONV_BACKWARD = 25  # data and weight gradient in one framework operator
    SORT = 26  # sort, top-k, unique
    GROUPED_GEMM = 27  # experts: groups of rows, each times a matrix of its own


class Dtype(IntEnum):
    """Element type that ran on the device."""

    UNKNOWN = 0
    FP64 = 1
    FP32 = 2
    TF32 = 3
    FP16 = 4
    BF16 = 5
    FP8 = 6
    INT64 = 7
    INT32 = 8
    INT16 = 9
    INT8 = 10
    UINT8 = 11
    BOOL = 12
    INT4 = 13
    COMPLEX64 = 14
    INT8_WO = 15  # 16-bit activations and products, weights kept in 8 bits
    INT4_WO = 16  # the same with weights of 4 bits


ITEMSIZE = {
    Dtype.UNKNOWN: 4.0,
    Dtype.FP64: 8.0,
    Dtype.FP32: 4.0,
    Dtype.TF32: 4.0,
    Dtype.FP16: 2.0,
    Dtype.BF16: 2.0,
    Dtype.FP8: 1.0,
    Dtype.INT64: 8.0,
    Dtype.INT32: 4.0,
    Dtype.INT16: 2.0,
    Dtype.INT8: 1.0,
    Dtype.UINT8: 1.0,
    Dtype.BOOL: 1.0,
    Dtype.INT4: 0.5,
    Dtype.COMPLEX64: 8.0,
    Dtype.INT8_WO: 2.0,
    Dtype.INT4_WO: 2.0,
}
"""Bytes an element [B]; of weight-only types, of the activations."""
WEIGHT_SIZE = {**ITEMSIZE, Dtype.INT8_WO: 1.0, Dtype.INT4_WO: 0.5}
"""Bytes an element of a product's second factor [B]."""

MAX_DIMS = 20
# layout: a code of `workbench.operators.layouts.Layout` (0: unstated)
_CONV = (
    "n", "c", "h", "w", "k", "r", "s", "pad_h", "pad_w", "stride_h", "stride_w", "dilation_h", "dilation_w", "groups", "depth", "t",
    "layout",
)  # fmt: skip
# kv_bits: width of a cache to which the new keys and values are appended (0: none, plain operands); page: tokens of its pages
# (0: contiguous); splits: parts of the keys (0: chosen by cost); portable: 1 for kernels written without regard to the card
_ATTENTION = (
    "batch", "heads", "kv_heads", "queries", "keys", "head_dim", "value_dim", "causal", "window", "kv_bits", "page", "splits", "portable",
)  # fmt: skip
_COLLECTIVE = ("bytes", "group_size")
DIMS: dict[Kind, tuple[str, ...]] = {
    Kind.UNKNOWN: (),
    Kind.GEMM: ("batch", "m", "n", "k"),
    Kind.BATCHED_GEMM: ("batch", "m", "n", "k"),
    # depth and t are the input and kernel extents of a third spatial axis (1 for 2-D)
    Kind.CONV_FORWARD: _CONV,
    Kind.CONV_BACKWARD_DATA: _CONV,
    Kind.CONV_BACKWARD_WEIGHT: _CONV,
    Kind.CONV_BACKWARD: _CONV,
    Kind.ATTENTION_FORWARD: _ATTENTION,
    Kind.ATTENTION_BACKWARD: _ATTENTION,
    # elements of the largest operand; `inputs` full-size reads and `outputs` full-size writes are in bytes_read/bytes_written
    Kind.ELEMENTWISE: ("elements",),
    Kind.REDUCTION: ("rows", "cols"),
    Kind.SOFTMAX: ("rows", "cols"),
    Kind.NORM: ("rows", "cols"),
    Kind.EMBEDDING: ("rows", "cols"),
    Kind.POOLING: ("elements", "window"),
    Kind.COPY: ("elements", "direction"),  # direction: 0 on the device, 1 host to device, 2 device to host
    Kind.SET: ("elements",),
    Kind.OPTIMIZER: ("elements", "tensors"),
    Kind.RNN: ("hidden", "batch", "timesteps"),
    Kind.ALL_REDUCE: _COLLECTIVE,
    Kind.ALL_GATHER: _COLLECTIVE,
    Kind.REDUCE_SCATTER: _COLLECTIVE,
    Kind.ALL_TO_ALL: _COLLECTIVE,
    Kind.BROADCAST: _COLLECTIVE,
    Kind.SEND_RECV: _COLLECTIVE,
    Kind.BARRIER: _COLLECTIVE,
    Kind.SORT: ("rows", "cols"),
    # busiest: rows of the largest group, 0 where all are alike; groups beyond the rows are empty
    Kind.GROUPED_GEMM: ("groups", "rows", "busiest", "n", "k"),
}
"""Meaning of the columns of ``OpTable.dims`` by kind; unused columns hold 0."""

COLLECTIVES = (
    Kind.ALL_REDUCE,
    Kind.ALL_GATHER,
    Kind.REDUCE_SCATTER,
    Kind.ALL_TO_ALL,
    Kind.BROADCAST,
    Kind.SEND_RECV,
    Kind.BARRIER,
)


@dataclass(frozen=True)
class OpTable:
    """Unique operators, one row each; all arrays have length U and are read-only.

    ``name`` is the framework operator (or kernel) the row came from and ``signature`` a readable,
    stable key made of name, dtype and recorded shapes. ``measured_s`` is the *mean* device time of
    one execution [s] (nan for a workload without measurement). ``bytes_read``/``bytes_written`` are
    compulsory traffic with the outermost memory [B], ``flops`` is 2 per multiply-add.
    """

    name: tuple[str, ...]
    signature: tuple[str, ...]
    kind: np.ndarray  # int8, Kind
    dtype: np.ndarray  # int8, Dtype
    dims: np.ndarray  # int64 [U, MAX_DIMS], see DIMS
    flops: np.ndarray  # float64
    bytes_read: np.ndarray  # float64 [B]
    bytes_written: np.ndarray  # float64 [B]
    measured_s: np.ndarray  # float64 [s]
    count: np.ndarray  # int64
    has_shapes: np.ndarray  # bool: shapes were recorded (whether or not a formula exists)

    def __len__(self) -> int:
        return len(self.kind)

    def among(self, kinds: Iterable[Kind]) -> np.ndarray:
        """Return which rows are of one of some kinds, bool [U]."""
        known = np.zeros(len(Kind), dtype=bool)
        known[[int(kind) for kind in kinds]] = True
        return known[self.kind]

    def dim(self, name: str) -> np.ndarray:
        """Return one named dimension as int64 [U]; 0 where the row's kind has no such dimension."""
        out = np.zeros(len(self), dtype=np.int64)
        for kind, names in DIMS.items():
            if name in names:
                rows = self.kind == kind
                out[rows] = self.dims[rows, names.index(name)]
        return out
