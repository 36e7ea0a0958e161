"""No predicted point lies above a roof: every kind that has a formula, every card, random extents, at every level and every peak."""

from __future__ import annotations

import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

from workbench.cost.choices import Choices
from workbench.cost.cost import Bound
from workbench.cost.estimate import estimate
from workbench.cost.models import ON_MATRIX
from workbench.cost.pack import resolve
from workbench.hardware.npu import catalogue, load_npu
from workbench.operators.listed import Listed, operator_list
from workbench.operators.table import COLLECTIVES, DIMS, Dtype, Kind
from workbench.operators.words import Word
from workbench.study.roofs import roofs

KINDS = tuple(kind for kind in Kind if kind not in COLLECTIVES and kind != Kind.UNKNOWN)
PARALLEL = {Kind.CONV_FORWARD, Kind.CONV_BACKWARD_DATA, Kind.CONV_BACKWARD_WEIGHT, Kind.CONV_BACKWARD}
SMALL = st.integers(1, 64)


def dims_of(kind: Kind, draw) -> tuple[int, ...]:
    extents = {name: draw(st.integers(1, 3000)) for name in DIMS[kind]}
    if kind in PARALLEL:
        extents |= dict.fromkeys(("pad_h", "pad_w", "groups", "depth", "t", "dilation_h", "dilation_w"), 1)
        extents |= {
            "n": draw(SMALL),
            "h": draw(SMALL),
            "w": draw(SMALL),
            "r": 3,
            "s": 3,
            "stride_h": draw(st.integers(1, 2)),
            "stride_w": 1,
        }
    elif "queries" in extents:
        group = draw(st.integers(1, 8))
        extents |= {"batch": draw(SMALL), "kv_heads": draw(SMALL), "head_dim": 64, "value_dim": 64, "causal": 0, "window": 0}
        extents["heads"] = extents["kv_heads"] * group
        extents |= {name: 0 for name in DIMS[kind][9:]}
    elif kind == Kind.RNN:
        extents |= {"timesteps": draw(SMALL), "batch": draw(SMALL)}
    elif kind == Kind.COPY:
        extents["direction"] = 0
    elif kind == Kind.POOLING:
        extents["window"] = draw(st.integers(1, 9))
    return tuple(extents[name] for name in DIMS[kind])


@settings(deadline=None, max_examples=80, suppress_health_check=[HealthCheck.filter_too_much])
@given(st.data(), st.sampled_from(KINDS), st.sampled_from(catalogue()), st.booleans())
def test_no_point_is_above_a_roof(data, kind, name, warm):
    spec = load_npu(name)
    dtype = data.draw(st.sampled_from([d for d in ("fp32", "fp16", "bf16", "int8") if d in {*spec.matrix.rate, *spec.vector.rate}]))
    assume(kind not in ON_MATRIX or resolve(spec, dtype) == dtype)
    row = Listed(kind.name.lower(), Dtype[dtype.upper()], dims_of(kind, data.draw), Word(kind, reads=1.0, gates=1))
    ops = operator_list([row])
    found = estimate(ops, [spec], choices=Choices(copies=(1.0, 1.0)) if warm else Choices())
    seconds = found.seconds[0, 0]
    assert seconds > 0
    for roof in roofs(spec):
        if roof.level:
            moved = found.level_bytes[0, 0, {"outermost": 2, "shared": 1}[roof.level]]
            assert moved / seconds <= roof.value * (1 + 1e-9), (roof, kind)
    if kind not in PARALLEL:  # Winograd executes fewer operations than are counted
        assert ops.flops[0] / seconds <= spec.peak_flops(dtype) * (1 + 1e-9)
    assert (found.resource_s[0, 0, [Bound.MATRIX, Bound.VECTOR, Bound.MEMORY, Bound.SHARED]] <= seconds * (1 + 1e-9)).all()


def test_the_roof_of_a_level_that_reads_and_writes_at_once_is_their_sum():
    """Ascend 910B2: 2640 B/clk read and 2064 B/clk written at 1.8 GHz; an A100's L2 states one figure for both."""
    values = {roof.name: roof.value for roof in roofs(load_npu("ascend-910b2"))}
    assert values["L2"] == pytest.approx((2640 + 2064) * 1.8e9)
    assert {roof.name: roof.value for roof in roofs(load_npu("a100-sxm4-80gb"))}["L2"] == pytest.approx(5120 * 1.41e9, rel=0.01)
