"""Operators on empty tensors take no time, whatever their kind: frameworks return before a launch."""

from __future__ import annotations

import numpy as np
import pytest

from workbench.cost.cost import Bound
from workbench.cost.estimate import estimate
from workbench.cost.stack import stack
from workbench.hardware.npu import load_npu
from workbench.study.operators_csv import list_operators

EMPTY = [
    {"op": "gemm", "M": 0, "N": 128, "K": 128}, {"op": "gemm", "M": 128, "N": 128, "K": 0}, {"op": "bmm", "B": 0, "M": 8, "N": 8, "K": 8},
    *({"op": op, "rows": 0, "cols": 128} for op in ("softmax", "layer_norm", "reduction", "embedding", "sort")),
    {"op": "softmax", "rows": 128, "cols": 0}, *({"op": op, "elements": 0} for op in ("add", "copy", "set", "optimizer")),
    {"op": "attention", "B": 0, "heads": 8, "s": 128, "d": 64}, {"op": "softmax", "rows": 8, "cols": 8},
]  # fmt: skip


@pytest.mark.filterwarnings("error::RuntimeWarning")
@pytest.mark.parametrize("name", ["a100-sxm4-80gb", "ascend-910b2", "tpu-v4"])
def test_nothing_takes_no_time(name):
    table = list_operators(EMPTY, "bf16").table
    spec = load_npu(name)
    cost = estimate(table, [spec])
    assert not cost.seconds[:-1].any()
    assert not cost.high_s[:-1].any()
    assert not cost.level_bytes[:-1].any()
    assert (cost.bound[:-1] == Bound.LAUNCH).all()
    assert all("no elements" in cost.reasons[code] for code in cost.note_code[:-1])
    alone = estimate(list_operators(EMPTY[-1:], "bf16").table, [spec])
    assert cost.seconds[-1, 0] == alone.seconds[0, 0] > 0
    assert np.isnan(stack(table, spec).share[:-1]).all()
