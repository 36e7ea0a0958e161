"""Quantising reads 16 bits an element and writes 8, dequantising the other way round, whichever of the two a row names."""

from __future__ import annotations

import pytest

from workbench.operators.instructions import instructions, kernels, narrow
from workbench.study.operators_csv import list_operators


@pytest.mark.parametrize("dtype", ["fp16", "bf16", "int8", "fp8"])
@pytest.mark.parametrize(
    ("name", "read", "written"),
    [("dynamic_quant", 2, 1), ("AscendQuantV2", 2, 1), ("AscendDequant", 1, 2), ("AscendAntiQuant", 1, 2), ("quantize_per_tensor", 2, 1)],
)
def test_bytes(name, read, written, dtype):
    table = list_operators([{"op": name, "dtype": dtype, "elements": 1000}]).table
    assert (table.bytes_read[0], table.bytes_written[0]) == (1000 * read, 1000 * written)


def test_wider_sources_and_fakes():
    table = list_operators(
        [{"op": "quantize", "dtype": "fp32", "elements": 8}, {"op": "fake_quantize", "dtype": "fp16", "elements": 8}]
    ).table
    assert table.bytes_read.tolist() == [32, 16]
    assert table.bytes_written.tolist() == [16, 16]


def test_names_of_functions():
    """pow needs more than gelu, gelu more than a division, an addition nothing beyond itself; names of frameworks mean the same."""
    costs = [instructions(name)[0] for name in ("aten::pow", "aten::gelu", "div", "aten::add")]
    assert costs == sorted(costs, reverse=True)
    assert costs[-1] == 0
    assert instructions("aclnnGelu") == instructions("torch.gelu") == instructions("gelu_")
    assert narrow("input_rms_norm")
    assert not narrow("layer_norm")
    assert kernels("silu_mul") == 2
    assert kernels("native_layer_norm_backward") == 3
    assert kernels("aten::add") == 1
