"""Framework and kernel names plus recorded arguments -> kind, type, dimensions, work."""

from __future__ import annotations

import math
import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from workbench.operators.call import Call, Tensor, parse_call
from workbench.operators.described import Described, Ran
from workbench.operators.kinds import BEARING, BLIND, SHAPED, TRANSPARENT, RULES, _book, collective_kind, describe, kernel_dtype, ran_of, shorten, state
from workbench.operators.table import DIMS, Dtype, Kind


def call(name: str, *arguments: object) -> Call:
    """A call from pairs (type, shape), lists of such pairs, and bare values for scalars."""
    tensors, concrete = [], []
    for a in arguments:
        if isinstance(a, tuple) and len(a) == 2 and isinstance(a[0], Dtype):
            tensors.append((Tensor(tuple(a[1]), a[0]),))
            concrete.append(None)
        elif isinstance(a, list) and a and isinstance(a[0], tuple):
            tensors.append(tuple(Tensor(tuple(shape), dtype) for dtype, shape in a))
            concrete.append(None)
        else:
            tensors.append(())
            concrete.append(a)
    return Call(name, tuple(tensors), tuple(concrete))


def must(c: Call, ran: Ran | None = None) -> Described:
    found = describe(c, ran)
    assert found is not None, c
    return found


F32, BF16, I64 = Dtype.FP32, Dtype.BF16, Dtype.INT64


def test_addmm_by_hand() -> None:
    """[64, 32] x [32, 16] + [16]: 2*64*16*32 FLOPs; bf16 reads (2048 + 512 + 16) * 2 B, writes 1024 * 2 B."""
    found = must(call("aten::addmm", (BF16, [16]), (BF16, [64, 32]), (BF16, [32, 16]), 1, 1))
    assert (found.kind, found.dtype, found.dims) == (Kind.GEMM, Dtype.BF16, (1, 64, 16, 32))
    assert (found.flops, found.bytes_read, found.bytes_written) == (65536, 5152, 2048)


def test_an_added_matrix_times_zero_is_not_read() -> None:
    read = [must(call("aten::addmm", (F32, [8, 8]), (F32, [8, 8]), (F32, [8, 8]), beta, 1)).bytes_read for beta in (1, 0)]
    assert read == [3 * 256, 2 * 256]


def test_the_output_argument_of_mm_is_not_read() -> None:
    with_out = must(call("aten::mm", (F32, [8, 4]), (F32, [4, 2]), (F32, [8, 2])))
    assert with_out.bytes_read == must(call("aten::mm", (F32, [8, 4]), (F32, [4, 2]))).bytes_read == 160


@pytest.mark.parametrize(
    ("a", "b", "dims"),
    [
        ([4], [4], (1, 1, 1, 4)),
        ([3, 4], [4], (1, 3, 1, 4)),
        ([2, 3, 4], [4, 5], (1, 6, 5, 4)),
        ([2, 3, 4], [2, 4, 5], (2, 3, 5, 4)),
        ([7, 1, 3, 4], [2, 4, 5], (14, 3, 5, 4)),
    ],
)
def test_matmul_follows_numpy(a: list[int], b: list[int], dims: tuple[int, ...]) -> None:
    """A stack against one matrix is one tall product; stacks broadcast (numpy.matmul)."""
    assert must(call("aten::matmul", (F32, a), (F32, b))).dims == dims


def test_factors_that_do_not_fit_are_no_product() -> None:
    assert describe(call("aten::mm", (F32, [8, 4]), (F32, [5, 2]))) is None


def test_linear_weight_is_out_by_in() -> None:
    assert must(call("aten::linear", (BF16, [2, 7, 32]), (BF16, [64, 32]), (BF16, [64]))).dims == (1, 14, 64, 32)


def test_convolution_by_hand() -> None:
    """ResNet's stem at batch 2: 112 x 112 outputs of 64 channels, 3 * 49 multiply-adds each; the published 118 MMAC an image."""
    found = must(call("aten::cudnn_convolution", (F32, [2, 3, 224, 224]), (F32, [64, 3, 7, 7]), [3, 3], [2, 2], [1, 1], 1, False, False, True))
    assert found.kind == Kind.CONV_FORWARD
    assert found.flops == 2 * 2 * 112 * 112 * 64 * 3 * 49 == 2 * 2 * 118_013_952
    assert found.bytes_written == 2 * 64 * 112 * 112 * 4


def test_convolution_without_settings_needs_the_output() -> None:
    """2021 recordings hold no stride: no guess is made; a known output settles stride and padding."""
    bare = call("aten::cudnn_convolution", (F32, [2, 3, 224, 224]), (F32, [64, 3, 7, 7]), *[None] * 7)
    assert describe(bare) is None
    told = must(Call(bare.name, bare.tensors, (), (("output", (2, 64, 112, 112)),)))
    assert told.flops == 2 * 2 * 118_013_952
    assert told.dims[7:11] == (3, 3, 2, 2)


def test_grouped_and_depthwise() -> None:
    full = must(call("aten::convolution", (F32, [1, 8, 10, 10]), (F32, [8, 8, 3, 3]), None, [1, 1], [1, 1], [1, 1], False, [0, 0], 1))
    deep = must(call("aten::convolution", (F32, [1, 8, 10, 10]), (F32, [8, 1, 3, 3]), None, [1, 1], [1, 1], [1, 1], False, [0, 0], 8))
    assert full.flops == 8 * deep.flops == 2 * 8 * 100 * 72


def test_one_dimensional_and_volumetric() -> None:
    one = must(call("aten::conv1d", (F32, [2, 4, 50]), (F32, [6, 4, 5]), None, [1], [0], [1], 1))
    assert one.flops == 2 * 2 * 6 * 46 * 4 * 5
    three = must(call("aten::conv3d", (F32, [1, 2, 5, 6, 7]), (F32, [3, 2, 2, 3, 3]), None, [1, 1, 1], [0, 1, 1], [1, 1, 1], 1))
    assert three.flops == 2 * 3 * (4 * 6 * 7) * 2 * (2 * 3 * 3)
    assert three.dims[14:16] == (5, 2)


def test_transposed_convolution_is_the_data_gradient() -> None:
    """Every input position meets every weight once: n c_in h w (c_out r s)."""
    found = must(call("aten::convolution", (F32, [2, 8, 5, 5]), (F32, [8, 4, 3, 3]), None, [2, 2], [1, 1], [1, 1], True, [1, 1], 1))
    assert found.kind == Kind.CONV_BACKWARD_DATA
    assert found.flops == 2 * 2 * 8 * 25 * 4 * 9


@pytest.mark.parametrize(
    ("mask", "kind", "times"),
    [
        ([True, True, False], Kind.CONV_BACKWARD, 2),
        ([False, True, True], Kind.CONV_BACKWARD_WEIGHT, 1),
        ([True, False, False], Kind.CONV_BACKWARD_DATA, 1),
    ],
)
def test_convolution_backward_reads_its_mask(mask: list[bool], kind: Kind, times: int) -> None:
    found = must(
        call("aten::convolution_backward", (F32, [1, 6, 8, 8]), (F32, [1, 4, 8, 8]), (F32, [6, 4, 3, 3]), None, [1, 1], [1, 1], [1, 1], False, [0, 0], 1, mask)
    )
    assert (found.kind, found.flops) == (kind, times * 2 * 6 * 64 * 4 * 9)


def test_flash_attention_layout_and_mask() -> None:
    """[batch, queries, heads, dim] in the aten forward, [batch, heads, queries, dim] one level up; both are the same work."""
    q = (BF16, [2, 16, 4, 8])
    low = must(call("aten::_flash_attention_forward", q, q, q, None, None, 16, 16, 0.0, True, False, None))
    p = (BF16, [2, 4, 16, 8])
    high = must(call("aten::_scaled_dot_product_flash_attention", p, p, p, 0.0, True, False))
    assert low.dims == high.dims == (2, 4, 4, 16, 16, 8, 8, 1, 0)
    assert low.flops == high.flops == 2 * 2 * 4 * 136 * 16


def test_attention_without_a_recorded_mask_is_not_guessed() -> None:
    p = (BF16, [2, 4, 16, 8])
    assert describe(call("aten::_scaled_dot_product_flash_attention", p, p, p)) is None


def test_window_of_flash_attention() -> None:
    """window_left 3 and causal: four keys a query at most. 1 + 2 + 3 + 4 * 13 = 58 pairs of 16 queries."""
    q = (BF16, [1, 16, 1, 8])
    found = must(call("flash_attn::_flash_attn_forward", q, q, q, 0.0, 0.35, True, 3, 0))
    assert found.flops == 2 * 58 * 16


def test_elementwise_bytes_broadcast() -> None:
    """Each input at its own size: bf16 [4, 5] and [5] read 50 B, the result is written with 40 B."""
    found = must(call("aten::add", (BF16, [4, 5]), (BF16, [5]), 1))
    assert (found.bytes_read, found.bytes_written, found.dims) == (50, 40, (20,))


def test_a_bare_number_does_not_widen() -> None:
    found = must(call("aten::mul", (BF16, [10]), (Dtype.FP64, [])))
    assert (found.dtype, found.bytes_written) == (Dtype.BF16, 20)


def test_comparison_writes_booleans_and_conversion_both_widths() -> None:
    assert must(call("aten::eq", (I64, [8]), 1)).bytes_written == 8
    copy = must(call("aten::copy_", (BF16, [8]), (F32, [8]), False))
    assert (copy.kind, copy.bytes_read, copy.bytes_written) == (Kind.COPY, 32, 16)


@pytest.mark.parametrize("name", ["aten::add_", "aten::_foreach_add_", "aten::add.Tensor", "aten::threshold_backward", "aten::_foreach_sqrt"])
def test_spellings_of_a_family(name: str) -> None:
    assert state(call(name, (F32, [4]), (F32, [4]), 1)) == BEARING


def test_foreach_counts_whole_lists() -> None:
    found = must(call("aten::_foreach_add_", [(F32, [4]), (F32, [6])], [(F32, [4]), (F32, [6])], 1))
    assert (found.dims, found.bytes_read, found.bytes_written) == ((10,), 80, 40)


def test_fused_adam_reads_four_and_writes_three() -> None:
    """Parameter, gradient and two moments read; parameter and moments written; the step counters are not counted."""
    lists = [[(F32, [100]), (F32, [28])] for _ in range(4)]
    found = must(call("aten::_fused_adam_", *lists, None, [(F32, []), (F32, [])]))
    assert (found.kind, found.dims, found.bytes_read, found.bytes_written) == (Kind.OPTIMIZER, (128, 2), 4 * 512, 3 * 512)


def test_reduction_rows() -> None:
    found = must(call("aten::sum", (F32, [6, 7]), [0], False, None))
    assert (found.dims, found.bytes_read, found.bytes_written) == ((7, 6), 168, 28)


def test_cat_width_from_an_opaque_copy() -> None:
    """Lists carry no element type; the copy kernel names its width: 2 B."""
    found = must(call("aten::cat", [(Dtype.UNKNOWN, [3]), (Dtype.UNKNOWN, [5])], 0), ran_of("CatArrayBatchedCopy<OpaqueType<2u>, unsigned int>"))
    assert (found.bytes_read, found.bytes_written) == (16, 16)


def test_layer_norm_sets() -> None:
    found = must(call("aten::native_layer_norm", (BF16, [2, 3, 8]), [8], (BF16, [8]), (BF16, [8]), 1e-5))
    assert (found.kind, found.dims, found.bytes_read) == (Kind.NORM, (6, 8), 2 * 48 + 2 * 16)


def test_batch_norm_sets_are_channels() -> None:
    found = must(call("aten::cudnn_batch_norm", (F32, [2, 5, 3, 3]), *[(F32, [5])] * 4, True, 0.1, 1e-5))
    assert found.dims == (5, 18)


def test_max_pool_by_hand() -> None:
    """ResNet's 3 x 3 stride 2 pooling: 56 x 56 outputs, written with a float and a long index each."""
    found = must(call("aten::max_pool2d_with_indices", (F32, [1, 64, 112, 112]), [3, 3], [2, 2], [1, 1], [1, 1], False))
    assert (found.dims, found.bytes_written) == ((64 * 56 * 56, 9), 64 * 56 * 56 * 12)


def test_lstm_uses_every_weight_once_a_position() -> None:
    weights = [(F32, [32, 8]), (F32, [32, 8]), (F32, [32]), (F32, [32])]
    found = must(call("aten::lstm", (F32, [5, 3, 8]), [(F32, [1, 3, 8]), (F32, [1, 3, 8])], weights, True, 1))
    assert found.flops == 2 * 15 * 512


def test_message_of_2023_and_of_2024() -> None:
    old = parse_call("record_param_comms", "[[[4, 8]], [], []]", '["TensorList", "Scalar", "Scalar"]', '["", "337", "8"]')
    found = must(old, ran_of("ncclDevKernel_AllReduce_Sum_f16_RING_LL(ncclDevComm*)"))
    assert (found.kind, found.dims) == (Kind.ALL_REDUCE, (64, 8))
    facts = (("in_elements", 4), ("out_elements", 32), ("group_size", 8), ("dtype", "BFloat16"), ("collective", Kind.ALL_GATHER))
    assert must(Call("record_param_comms", (), (), facts)).dims == (64, 8)


def test_message_without_bytes_is_unknown_not_free() -> None:
    assert describe(Call("record_param_comms", (), ()), ran_of("ncclKernel_AllReduce_RING_LL_Sum_float")) is None


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
    [("Memcpy HtoD (Pageable -> Device)", 1), ("Memcpy DtoH (Device -> Pinned)", 2), ("Memcpy DtoD (Device -> Device)", 0), ("CopyHostToDevice", 1)],
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
    "aten::mm", "aten::addmm", "aten::baddbmm", "aten::linear", "aten::linear_backward", "aten::matmul", "aten::conv1d", "aten::conv2d", "aten::conv3d",
    "aten::convolution", "aten::cudnn_convolution", "aten::cudnn_convolution_relu", "aten::miopen_convolution", "aten::conv_transpose2d",
    "aten::convolution_backward", "aten::cudnn_convolution_backward_input", "aten::cudnn_convolution_backward_weight", "aten::_conv_depthwise2d",
    "aten::_flash_attention_forward", "aten::_flash_attention_backward", "aten::_efficient_attention_forward", "aten::scaled_dot_product_attention",
    "flash_attn::_flash_attn_varlen_forward", "aten::lstm", "aten::_cudnn_rnn", "aten::native_layer_norm", "aten::native_layer_norm_backward",
    "aten::native_batch_norm", "aten::native_group_norm", "aten::_softmax", "aten::_softmax_backward_data", "FusedSoftmax", "FusedRMSNorm", "aten::embedding",
    "aten::index_select", "aten::gather", "aten::index", "aten::index_put_", "aten::scatter_add_", "aten::embedding_dense_backward", "aten::_embedding_bag",
    "fbgemm::split_embedding_lookup", "aten::max_pool2d_with_indices", "aten::avg_pool2d", "aten::_adaptive_avg_pool2d", "aten::avg_pool2d_backward",
    "aten::upsample_bilinear2d", "aten::sum", "aten::argmax", "aten::cumsum", "aten::topk", "aten::nll_loss_forward", "aten::copy_", "aten::cat", "aten::roll",
    "aten::_foreach_copy_", "aten::fill_", "aten::arange", "aten::_fused_adamw_", "aten::_foreach_addcdiv_", "aten::add", "aten::where", "aten::gelu_backward",
    "triton_poi_fused_add_0", "triton_red_fused_mean_1", "record_param_comms", "_C::cutlass_scaled_mm", "my::unknown",
]  # fmt: skip

shapes = st.lists(st.integers(0, 9), max_size=5)
dtypes = st.sampled_from(list(Dtype))
tensors = st.builds(lambda d, s: Tensor(tuple(s), d), dtypes, shapes)
groups = st.one_of(st.just(()), tensors.map(lambda t: (t,)), st.lists(tensors, min_size=2, max_size=3).map(tuple))
scalar = st.one_of(st.none(), st.booleans(), st.integers(-3, 9), st.floats(allow_nan=False), st.lists(st.integers(-2, 4), max_size=4), st.text(max_size=3))


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
