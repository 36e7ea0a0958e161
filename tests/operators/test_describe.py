"""Recorded operator calls -> kind, type, dimensions and work, by hand."""

from __future__ import annotations

import pytest

from tests.operators.calls import BF16, F32, I32, I64, call, must
from workbench.operators.call import Call, parse_call
from workbench.operators.kinds import BEARING, describe, ran_of, state
from workbench.operators.table import Dtype, Kind


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


@pytest.mark.parametrize(
    ("a", "b", "flops", "dims"),
    [
        ([96, 64], [8, 64, 32], 2 * 96 * 64 * 32, (8, 96, 0, 32, 64)),
        ([8, 12, 64], [64, 96], 2 * 12 * 64 * 96, (8, 12, 12, 64)),
        ([64, 96], [96, 32], 2 * 64 * 96 * 32, (8, 64, 32, 12)),
        ([8, 12, 64], [8, 64, 32], 8 * 2 * 12 * 64 * 32, (8, 12, 32, 64)),
    ],
)
def test_each_row_of_a_grouped_product_meets_one_expert(a: list[int], b: list[int], flops: int, dims: tuple[int, ...]) -> None:
    """96 tokens shared out among 8 experts: the FLOPs of one product of 96 rows, not of eight (torch._grouped_mm)."""
    found = must(call("aten::_grouped_mm", (BF16, a), (BF16, b), (I32, [8])))
    assert (found.flops, found.dims) == (flops, dims)


def test_outer_product_is_no_dot_product() -> None:
    """Two vectors of 5: 25 products, not 5."""
    assert must(call("aten::ger", (F32, [5]), (F32, [5]))).dims == (1, 5, 5, 1)


def test_backward_of_linear_is_two_products() -> None:
    """Input and weight gradient: 2 m n k each, as two products of the table's dims (not one with twice the FLOPs)."""
    found = must(call("aten::linear_backward", (F32, [7, 32]), (F32, [7, 64]), (F32, [64, 32])))
    assert found.dims == (2, 7, 64, 32)
    assert found.flops == 2 * 2 * 7 * 64 * 32


def test_factors_that_do_not_fit_are_no_product() -> None:
    assert describe(call("aten::mm", (F32, [8, 4]), (F32, [5, 2]))) is None


def test_linear_weight_is_out_by_in() -> None:
    assert must(call("aten::linear", (BF16, [2, 7, 32]), (BF16, [64, 32]), (BF16, [64]))).dims == (1, 14, 64, 32)


def test_convolution_by_hand() -> None:
    """ResNet's stem at batch 2: 112 x 112 outputs of 64 channels, 3 * 49 multiply-adds each; the published 118 MMAC an image."""
    found = must(
        call("aten::cudnn_convolution", (F32, [2, 3, 224, 224]), (F32, [64, 3, 7, 7]), [3, 3], [2, 2], [1, 1], 1, False, False, True)
    )
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
    tensors = (F32, [1, 6, 8, 8]), (F32, [1, 4, 8, 8]), (F32, [6, 4, 3, 3])
    found = must(call("aten::convolution_backward", *tensors, None, [1, 1], [1, 1], [1, 1], False, [0, 0], 1, mask))
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


@pytest.mark.parametrize(
    "name", ["aten::add_", "aten::_foreach_add_", "aten::add.Tensor", "aten::threshold_backward", "aten::_foreach_sqrt"]
)
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
    found = must(
        call("aten::cat", [(Dtype.UNKNOWN, [3]), (Dtype.UNKNOWN, [5])], 0), ran_of("CatArrayBatchedCopy<OpaqueType<2u>, unsigned int>")
    )
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


def test_recurrent_weights_given_one_by_one() -> None:
    """oneDNN's layer: input, two weight matrices, two biases, states; the same work as the list form."""
    args = (F32, [5, 3, 8]), (F32, [32, 8]), (F32, [32, 8]), (F32, [32]), (F32, [32]), (F32, [1, 3, 8])
    assert must(call("aten::mkldnn_rnn_layer", *args)).flops == 2 * 15 * 512
    assert must(call("aten::mkldnn_rnn_layer_backward", *args)).flops == 4 * 15 * 512
