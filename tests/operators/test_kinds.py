"""What operator and kernel names say, and that no recorded argument breaks a rule."""

from __future__ import annotations

import math
import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.operators.calls import BF16, F32, call, must
from workbench.operators.call import Call, Tensor, parse_call
from workbench.operators.described import Ran
from workbench.operators.kinds import (
    BEARING,
    BLIND,
    RULES,
    SHAPED,
    STUCK,
    TRANSPARENT,
    _book,
    collective_kind,
    describe,
    kernel_dtype,
    ran_of,
    shorten,
    state,
)
from workbench.operators.table import DIMS, Dtype, Kind


@pytest.mark.parametrize(
    ("kernel", "dtype"),
    [
        ("cutlass_80_tensorop_s1688gemm_64x64_16x6_nn_align4", Dtype.TF32),
        ("sm80_xmma_fprop_implicit_gemm_tf32f32_tf32f32_f32_nhwckrsc", Dtype.TF32),
        ("ampere_fp16_s1688gemm_fp16_256x64_ldg8_f2f_tn", Dtype.FP16),
        ("volta_sgemm_64x32_sliced1x4_nn", Dtype.FP32),
        ("ampere_bf16_s16816gemm_bf16_128x64", Dtype.BF16),
        ("Cijk_Alik_Bljk_BBS_BH_Bias_HA_S_SAV", Dtype.BF16),
        ("sm90_xmma_gemm_e4m3bf16_e4m3f32_f32_tn_n", Dtype.FP8),
        ("volta_dgemm_64x64_nn", Dtype.FP64),
        ("at::native::vectorized_elementwise_kernel<4, at::native::CUDAFunctor_add<c10::Half> >", Dtype.FP16),
        ("attn_fwd", Dtype.UNKNOWN),
    ],
)
def test_type_that_ran(kernel: str, dtype: Dtype) -> None:
    assert kernel_dtype(kernel) == dtype


def test_tf32_only_replaces_fp32() -> None:
    ran = Ran(dtype=Dtype.TF32)
    assert must(call("aten::mm", (F32, [8, 4]), (F32, [4, 2])), ran).dtype == Dtype.TF32
    assert must(call("aten::mm", (BF16, [8, 4]), (BF16, [4, 2])), ran).dtype == Dtype.BF16


def test_half_precision_accumulation_is_said() -> None:
    assert ran_of("volta_h884gemm_64x32_ldg8_nn").fp16_accumulate
    assert not ran_of("volta_fp16_s884gemm_fp16_64x64_ldg8_f2f_nn").fp16_accumulate


@pytest.mark.parametrize(
    ("kernel", "direction"),
    [
        ("Memcpy HtoD (Pageable -> Device)", 1),
        ("Memcpy DtoH (Device -> Pinned)", 2),
        ("Memcpy DtoD (Device -> Device)", 0),
        ("CopyHostToDevice", 1),
    ],
)
def test_copy_directions(kernel: str, direction: int) -> None:
    assert ran_of(kernel).direction == direction


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("ncclDevKernel_AllReduce_Sum_f16_RING_LL", Kind.ALL_REDUCE),
        ("ncclKernel_ReduceScatter_RING_LL_Sum_half", Kind.REDUCE_SCATTER),
        ("ncclDevKernel_AllGather_RING_SIMPLE", Kind.ALL_GATHER),
        ("ncclKernel_SendRecv_RING_SIMPLE_Sum_int8_t", Kind.SEND_RECV),
        ("rcclDevKernel_Broadcast", Kind.BROADCAST),
        ("_allgather_base", Kind.ALL_GATHER),
        ("nccl:all_to_all", Kind.ALL_TO_ALL),
        ("aten::add", None),
    ],
)
def test_collectives_by_name(name: str, kind: Kind | None) -> None:
    assert collective_kind(name) == kind


def test_states() -> None:
    assert state(call("aten::mm", (F32, [8, 4]), (F32, [4, 2]))) == BEARING
    assert state(call("aten::cat", None, 0)) == BLIND
    assert state(call("aten::index", (F32, [8]), None)) == STUCK
    assert state(call("my::fancy_op", (F32, [8]))) == SHAPED
    assert state(call("my::fancy_op")) == TRANSPARENT
    assert state(call("autograd::engine::evaluate_function: MulBackward0", (F32, [8]))) == TRANSPARENT


def test_an_unknown_operator_is_described_by_its_kernel() -> None:
    c = call("my::fancy_op", (F32, [8]), (F32, [8]))
    assert describe(c) is None
    assert must(c, ran_of("void at::native::vectorized_elementwise_kernel<4, F>")).kind == Kind.ELEMENTWISE


def test_short_names_keep_what_tells_kernels_apart() -> None:
    assert shorten("void at::native::reduce_kernel<512, 1, at::native::ReduceOp<float> >(int)") == "at::native::reduce_kernel"
    assert shorten("Memset (Device)") == "Memset"


def test_rules_are_whole() -> None:
    """Every pattern compiles and every rule exists."""
    book = _book()
    assert {entry["rule"] for _, entry in book.operators} <= set(RULES)
    assert all(isinstance(pattern, re.Pattern) for pattern, _ in book.operators)


CONCRETE_NAMES = [
    "aten::mm",
    "aten::addmm",
    "aten::baddbmm",
    "aten::linear",
    "aten::linear_backward",
    "aten::matmul",
    "aten::conv1d",
    "aten::conv2d",
    "aten::conv3d",
    "aten::convolution",
    "aten::cudnn_convolution",
    "aten::cudnn_convolution_relu",
    "aten::miopen_convolution",
    "aten::conv_transpose2d",
    "aten::convolution_backward",
    "aten::cudnn_convolution_backward_input",
    "aten::cudnn_convolution_backward_weight",
    "aten::_conv_depthwise2d",
    "aten::_flash_attention_forward",
    "aten::_flash_attention_backward",
    "aten::_efficient_attention_forward",
    "aten::scaled_dot_product_attention",
    "flash_attn::_flash_attn_varlen_forward",
    "aten::lstm",
    "aten::_cudnn_rnn",
    "aten::native_layer_norm",
    "aten::native_layer_norm_backward",
    "aten::native_batch_norm",
    "aten::native_group_norm",
    "aten::_softmax",
    "aten::_softmax_backward_data",
    "FusedSoftmax",
    "FusedRMSNorm",
    "aten::embedding",
    "aten::index_select",
    "aten::gather",
    "aten::index",
    "aten::index_put_",
    "aten::scatter_add_",
    "aten::embedding_dense_backward",
    "aten::_embedding_bag",
    "fbgemm::split_embedding_lookup",
    "aten::max_pool2d_with_indices",
    "aten::avg_pool2d",
    "aten::_adaptive_avg_pool2d",
    "aten::avg_pool2d_backward",
    "aten::upsample_bilinear2d",
    "aten::sum",
    "aten::argmax",
    "aten::cumsum",
    "aten::topk",
    "aten::nll_loss_forward",
    "aten::copy_",
    "aten::cat",
    "aten::roll",
    "aten::_foreach_copy_",
    "aten::fill_",
    "aten::arange",
    "aten::_fused_adamw_",
    "aten::_foreach_addcdiv_",
    "aten::add",
    "aten::where",
    "aten::gelu_backward",
    "triton_poi_fused_add_0",
    "triton_red_fused_mean_1",
    "record_param_comms",
    "_C::cutlass_scaled_mm",
    "my::unknown",
]

shapes = st.lists(st.integers(0, 9), max_size=5)
dtypes = st.sampled_from(list(Dtype))
tensors = st.builds(lambda d, s: Tensor(tuple(s), d), dtypes, shapes)
groups = st.one_of(st.just(()), tensors.map(lambda t: (t,)), st.lists(tensors, min_size=2, max_size=3).map(tuple))
scalar = st.one_of(
    st.none(), st.booleans(), st.integers(-3, 9), st.floats(allow_nan=False), st.lists(st.integers(-2, 4), max_size=4), st.text(max_size=3)
)


@settings(max_examples=300, deadline=None)
@given(
    st.sampled_from(CONCRETE_NAMES),
    st.lists(groups, max_size=12),
    st.lists(scalar, max_size=16),
    st.builds(Ran, dtypes, st.sampled_from([0.0, 2.0]), st.integers(0, 2), st.sampled_from(list(Kind))),
    st.sampled_from([(), (("output", (1, 2, 3, 3)),), (("input", (1, 2, 3, 3)), ("weight", (4, 2, 1, 1)))]),
)
def test_whatever_was_recorded_no_rule_fails(name: str, recorded: list, values: list, ran: Ran, facts: tuple) -> None:
    """Arguments of any shape give a description with finite, non-negative work and dimensions that fit the table, or none."""
    found = describe(Call(name, tuple(recorded), tuple(values), facts), ran)
    if found is None:
        return
    assert len(found.dims) == len(DIMS[found.kind])
    assert all(isinstance(d, int) and d >= 0 for d in found.dims)
    for number in (found.flops, found.bytes_read, found.bytes_written):
        assert math.isfinite(number)
        assert number >= 0


@pytest.mark.parametrize("text", ["[[1, 2", "[[-1, 2]]", '["x"]', "null", "[[1e3, 2]]", "[[1048576, 1048576, 1048576]]", "{}"])
def test_damaged_shapes_are_no_shapes(text: str) -> None:
    assert not parse_call("aten::mm", text, '["float"]', "").has_shapes
