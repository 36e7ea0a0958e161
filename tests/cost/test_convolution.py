"""Convolutions: each algorithm against figures by hand, the cheapest of them, layouts, and what may never happen."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from workbench import list_operators, load_npu
from workbench.cost import convolution, kernels, layers, windows, winograd
from workbench.cost.choices import COLD, Choices
from workbench.cost.convolution import ALGORITHMS
from workbench.cost.cost import Bound
from workbench.cost.estimate import estimate
from workbench.cost.pack import pack
from workbench.errors import Refused

LAYER = {"op": "conv", "N": 16, "H": 56, "W": 56, "R": 3, "S": 3, "pad_h": 1, "pad_w": 1}
FIXED = [name for name in ALGORITHMS if name != "cheapest"]
P100 = load_npu("p100-pcie-16gb")


def seconds(rows, card, algorithm="cheapest", dtype="fp16"):
    table = list_operators(rows, dtype=dtype).table
    return estimate(table, [load_npu(card) if isinstance(card, str) else card], choices=Choices(algorithm=algorithm)).seconds[:, 0]


def read(row, dtype="fp32"):
    table = list_operators([row], dtype=dtype).table
    size = np.array([{"fp32": 4.0, "fp16": 2.0, "int8": 1.0}[dtype]])
    which = convolution.PASSES[table.kind[0]][0]
    return layers.layer(table.dims, table.flops, which, size, np.zeros(1, dtype=np.int64))


def square(c, k=None, **changes):
    return LAYER | {"C": c, "K": k or c} | changes


@pytest.mark.parametrize("card", ["npu-x", "p100-pcie-16gb", "a100-sxm4-80gb"])
@pytest.mark.parametrize("dtype", ["fp16", "fp32"])
def test_cheapest_is_the_best_of_all(card, dtype):
    rows = [square(c, op=op) for op in ("conv", "conv_bwd_data", "conv_bwd_weight") for c in (8, 64, 512)]
    rows.append(square(256, R=11, S=11, pad_h=5, pad_w=5))
    cheapest, *others = (seconds(rows, card, name, dtype) for name in ("cheapest", *FIXED))
    np.testing.assert_array_equal(cheapest, np.min(others, axis=0))
    assert len({tuple(other) for other in others}) > 2


def test_an_algorithm_nobody_knows_is_refused():
    with pytest.raises(Refused, match="winogard"):
        seconds([square(64)], "npu-x", "winogard")


@pytest.mark.parametrize(
    ("change", "algorithms"),
    [
        ({"R": 1, "S": 1, "pad_h": 0, "pad_w": 0}, FIXED),
        ({"stride_h": 2, "stride_w": 2}, FIXED),
        ({"dilation_h": 2, "dilation_w": 2}, FIXED),
        ({"groups": 2}, ("winograd", "winograd2", "winograd4", "fft")),
        ({"R": 5, "S": 5, "pad_h": 2, "pad_w": 2}, ("winograd4",)),
        ({"R": 7, "S": 7, "pad_h": 3, "pad_w": 3}, ("winograd",)),
        ({"R": 3, "S": 5}, ("winograd",)),
    ],
)
def test_what_an_algorithm_cannot_compute_stays_implicit(change, algorithms):
    for name in algorithms:
        np.testing.assert_array_equal(seconds([square(64, **change)], P100, name), seconds([square(64, **change)], P100, "implicit"))


def test_integers_have_no_winograd_and_no_fourier_transform():
    for name in ("winograd", "fft"):
        assert seconds([square(256)], "a100-sxm4-80gb", name, "int8") == seconds([square(256)], "a100-sxm4-80gb", "implicit", "int8")


@pytest.mark.parametrize(
    ("taps", "m", "planes", "added"),
    [((3, 3), 2, 16, (32, 24, 28)), ((3, 3), 4, 36, (156, 90, 72)), ((1, 3), 2, 4, (4, 4, 4)), ((3, 1), 4, 6, (13, 9, 8))],
)
def test_additions_are_those_of_lavin_and_gray(taps, m, planes, added):
    """Their tables: F(2x2, 3x3) 16 products, 32 additions an input, 24 an output, 28 a filter; F(4x4, 3x3) 36, 156, 90, 72."""
    p = winograd.plan(read(square(64, R=taps[0], S=taps[1])), m)
    assert (p.planes[0], p.into[0], p.back[0], p.filters[0]) == (planes, *added)


@pytest.mark.parametrize(("name", "fewer"), [("winograd2", 2.25), ("winograd4", 4.0)])
def test_winograd_saves_at_most_its_products(name, fewer):
    """16 products in place of 36 for 2 x 2 outputs, 36 in place of 144 for 4 x 4, where products bound (no odd extents, many channels)."""
    card = P100.with_({"memory.hbm.bandwidth": "1e6 TB/s", "memory.l2.bandwidth": "1e9 B/clk"})
    gain = seconds([square(512)], card, "implicit", "fp32") / seconds([square(512)], card, name, "fp32")
    assert 0.75 * fewer < gain[0] <= fewer * 1.01


def test_the_fused_kernel_by_hand():
    """56 x 56 outputs are 28 x 28 tiles, 7 x 4 blocks of 4 x 8; 64 filters are 2: 16 images make 896 blocks, 16 waves of 56 cores.

    A block takes 16 products of 32 filters and 32 tiles, and 32 additions of 32 tiles, for each of 64 channels, and 24 of 32 x 32.
    """
    of, cards = read(square(64)), pack([P100], ["fp32"])
    found = winograd.fused(of, cards)
    cycles = 16 * (64 * (16 * 32 * 32 + 32 * 32) + 24 * 32 * 32) / 64
    assert found.resource[0, 0, Bound.VECTOR] == pytest.approx(cycles / (1.303e9 * cards.matrix[0, 0, kernels.ETA_COMPUTE]))
    image, filters = 16 * 64 * 56 * 56 * 4, 64 * 64 * 4
    assert found.level[0, 0, 2] == pytest.approx(2 * image + filters * (9 + 2 * 16))


def test_odd_extents_waste_tiles():
    """29 x 29 outputs need 8 x 8 tiles of 4 x 4, as many as 32 x 32."""
    odd, even = (seconds([square(256, N=64, H=side, W=side)], "npu-x", "winograd4") for side in (29, 32))
    assert 0.93 < odd[0] / even[0] <= 1.0


def test_a_fourier_transform_does_not_mind_large_windows():
    """Direct work grows with the taps, that of 32 x 32 tiles with their overlap: of 48 x 48, two a side with 3 taps as with 9."""
    rows = [square(256, H=48, W=48, R=r, S=r, pad_h=r // 2, pad_w=r // 2) for r in (3, 9)]
    direct, fourier = (seconds(rows, P100, name, "fp32") for name in ("direct", "fft"))
    assert direct[1] / direct[0] == pytest.approx(9.0, rel=0.05)
    assert fourier[1] / fourier[0] < 1.1
    assert fourier[1] < direct[1]


def test_an_image_of_three_channels_pays_for_a_block_of_them():
    """A cube multiplies 32 bytes of channels a tap (C0 of Ascend: 16 of fp16), a GPU's tiles step through 64."""
    for card, block in (("ascend-910b2", 16), ("v100-sxm2-32gb", 32)):
        cards = pack([load_npu(card)], ["fp16"])
        few, whole = (
            windows.implicit(read(square(c, 64), "fp16"), cards, (np.inf, np.inf)).resource[0, 0, Bound.MATRIX] for c in (3, block)
        )
        assert few == pytest.approx(whole, rel=1e-9)


@pytest.mark.parametrize("stride", [2, 3])
def test_the_gradient_of_a_strided_layer_has_no_more_products_than_zeros_along_one_axis_would_make(stride):
    """Each product of an output with a tap belongs to one input position; zeros put between along one axis make them ``stride`` times."""
    cards = pack([load_npu("npu-x").with_({"memory.hbm.bandwidth": "1e6 TB/s"})], ["fp16"])
    layer = square(256, H=57, W=57, stride_h=stride, stride_w=stride)
    pair = [windows.implicit(read(layer | {"op": op}, "fp16"), cards, COLD) for op in ("conv", "conv_bwd_data")]
    forward, data = (one.resource[0, 0, Bound.MATRIX] for one in pair)
    assert 1.0 <= data / forward <= stride


def test_few_channels_of_a_gradient_are_scattered():
    """3 channels would fill 3 of 16 columns of a tile; a product that writes its 7 x 7 windows wastes none, and they pass the memory."""
    first = square(3, 64, op="conv_bwd_data", H=224, W=224, R=7, S=7, pad_h=3, pad_w=3, stride_h=2, stride_w=2)
    implicit, direct = (seconds([first], P100, name, "fp32")[0] for name in ("implicit", "direct"))
    assert direct < implicit
    of, cards = read(first), pack([P100], ["fp32"])
    windows_bytes, image = 16 * 112 * 112 * 3 * 49 * 4, 16 * 3 * 224 * 224 * 4
    assert windows.windows_of(of)[0][0][0] == windows_bytes + image
    assert windows.scattered(of, cards).level[0, 0, 2] >= 2 * windows_bytes + image
    assert seconds([square(256, op="conv_bwd_data")], P100, "direct", "fp32") == seconds(
        [square(256, op="conv_bwd_data")], P100, "implicit", "fp32"
    )


def test_a_depthwise_layer_does_not_need_the_cube():
    """One multiply-add an element and tap: a cube four times as wide changes nothing where the vector unit does it."""
    npu = load_npu("npu-x")
    wide = npu.with_({"matrix.rows": 32, "matrix.cols": 32})
    layer = [square(128, groups=128)]
    assert seconds(layer, npu) == pytest.approx(seconds(layer, wide), rel=0.02)
    assert seconds(layer, npu) < seconds(layer, npu, "implicit")
    moved = 2 * 16 * 128 * 56 * 56 * 2
    assert seconds(layer, npu) > moved / npu.bandwidth("hbm")


def test_a_stated_layout_is_converted_where_the_matrix_unit_wants_another():
    """NHWC is what tensor cores take; NCHW costs a read and a write of the image before, and of the result after."""
    card = load_npu("a100-sxm4-80gb")
    plain, nhwc, nchw = (seconds([square(64, layout=name)], card)[0] for name in ("", "NHWC", "NCHW"))
    assert plain == nhwc
    both = 2 * 2 * 16 * 64 * 56 * 56 * 2
    assert both / card.bandwidth("hbm") < nchw - nhwc < 3 * both / card.bandwidth("hbm")
    assert seconds([square(64, layout="NCHW")], P100, dtype="fp32") == seconds([square(64, layout="NHWC")], P100, dtype="fp32")


def test_images_that_lie_in_the_blocks_of_a_cube_are_not_converted():
    """TransData around a convolution is for NCHW and NHWC; what a graph compiler keeps in NC1HWC0 passes as it is."""
    unstated, nchw, blocks = (seconds([square(64, layout=name)], "ascend-910a")[0] for name in ("", "NCHW", "NC1HWC0"))
    assert unstated == nchw
    image = 16 * 64 * 56 * 56 * 2
    assert unstated - blocks > 2 * 2 * image / load_npu("ascend-910a").bandwidth("hbm")


def test_packed_channels_are_stored_and_multiplied_with_their_padding():
    """3 channels in NC/32HW32 are 32, in NC1HWC0 of fp16 16: that much image is read, as much as of a layer that has them."""
    for layout, block in (("NC/32HW32", 32), ("NC1HWC0", 16), ("NCHW4", 4), ("NHWC", 3)):
        of = read(square(3, 64, layout=layout), "fp16")
        assert of.c[0] == block
        assert of.image[0] == 16 * block * 56 * 56 * 2
        assert of.k[0] == 64
    assert read(square(3, 64, layout="NC1HWC0"), "int8").c[0] == 32


@settings(max_examples=40, deadline=None)
@given(
    st.integers(1, 64), st.integers(1, 600), st.integers(1, 600), st.integers(3, 64),
    st.sampled_from([(1, 1), (3, 3), (1, 3), (5, 5), (7, 7)]),
    st.sampled_from([1, 2]), st.sampled_from(["conv", "conv_bwd_data", "conv_bwd_weight"]), st.sampled_from(ALGORITHMS),
    st.sampled_from(["npu-x", "p100-pcie-16gb", "a100-sxm4-80gb"]), st.sampled_from(["fp16", "fp32", "int8"]),
)  # fmt: skip
def test_no_algorithm_is_faster_than_its_bytes_or_gains_from_slower_memory(n, c, k, side, taps, stride, op, algorithm, name, dtype):
    layer = {"op": op, "N": n, "C": c, "K": k, "H": side + 6, "W": side + 6, "R": taps[0], "S": taps[1]}
    layer |= {"stride_h": stride, "stride_w": stride, "pad_h": taps[0] // 2, "pad_w": taps[1] // 2}
    table, spec = list_operators([layer], dtype=dtype).table, load_npu(name)
    faster = spec.with_({"memory.hbm.bandwidth": "9 TB/s"})
    one, two = (estimate(table, [card], choices=Choices(algorithm=algorithm)) for card in (spec, faster))
    assert np.isfinite(one.seconds).all()
    assert two.seconds[0, 0] <= one.seconds[0, 0] * (1 + 1e-9)
    assert one.seconds[0, 0] >= table.bytes_written[0] / spec.bandwidth("hbm")
    assert (one.resource_s >= 0).all()
    assert one.level_bytes[0, 0, 2] >= table.bytes_written[0] * (1 - 1e-9)
