"""Rows: no card gets slower by more cores, more lanes' memory, more bandwidth, a faster clock or less latency."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.cost.tables import table
from workbench.cost.estimate import estimate
from workbench.hardware.npu import load_npu
from workbench.operators.table import Dtype, Kind

KINDS = (Kind.SOFTMAX, Kind.NORM, Kind.REDUCTION, Kind.EMBEDDING, Kind.SORT)
BETTER = {
    "a100-sxm4-80gb": ("cores", "clock", "memory.register.size", "memory.l2.size", "memory.l2.bandwidth", "memory.hbm.bandwidth"),
    "l4": ("cores", "clock", "memory.register.size", "memory.l2.size"),
    "ascend-910b2": ("cores", "clock", "memory.l2.size", "memory.hbm.bandwidth"),
}  # fmt: skip


@pytest.mark.parametrize("name", BETTER)
@settings(max_examples=40, deadline=None)
@given(
    kind=st.sampled_from(KINDS), rows=st.integers(1, 1 << 18), cols=st.integers(1, 1 << 17),
    dtype=st.sampled_from((Dtype.FP32, Dtype.BF16)), factor=st.sampled_from((1.07, 1.5, 2.0, 4.0)), data=st.data(),
)  # fmt: skip
def test_more_is_never_slower(name, kind, rows, cols, dtype, factor, data):
    spec, made = load_npu(name), table([(kind, dtype, (rows, cols))])
    path = data.draw(st.sampled_from(BETTER[name]))
    more = spec.get(path) * factor
    better = spec.with_si({path: round(more + 0.5) if path == "cores" else more})
    one, two = (float(estimate(made, [card]).seconds[0, 0]) for card in (spec, better))
    assert two <= one * (1.0 + 1e-9)
