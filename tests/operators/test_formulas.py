"""FLOPs and bytes against hand values, naive loops, and laws any formula must keep."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from workbench.operators import formulas, messages


def naive_gemm_macs(m: int, n: int, k: int) -> int:
    """Multiply-adds counted one by one."""
    return sum(1 for _ in itertools.product(range(m), range(n), range(k)))


def naive_convolution_macs(
    n: int, c: int, k: int, size: tuple[int, int], kernel: tuple[int, int], stride: int, pad: int, dil: int, groups: int
) -> int:
    """Multiply-adds of the textbook loop nest over a zero-padded image (zeros of the padding are multiplied too)."""
    rows = [y for y in range(-pad, size[0] + pad) if y + dil * (kernel[0] - 1) < size[0] + pad][::stride]
    cols = [x for x in range(-pad, size[1] + pad) if x + dil * (kernel[1] - 1) < size[1] + pad][::stride]
    count = 0
    for _image, _out, _y, _x in itertools.product(range(n), range(k), rows, cols):
        for _in, _r, _s in itertools.product(range(c // groups), range(kernel[0]), range(kernel[1])):
            count += 1
    return count


@given(st.integers(1, 6), st.integers(1, 6), st.integers(1, 6))
def test_gemm_equals_a_loop(m: int, n: int, k: int) -> None:
    assert formulas.gemm(1, m, n, k, 2, 2).flops == 2 * naive_gemm_macs(m, n, k)


def test_gemm_bytes_by_hand() -> None:
    work = formulas.gemm(3, 4, 5, 6, 2, 4)
    assert (float(work.read), float(work.written)) == (3 * (24 + 30) * 2, 3 * 20 * 4)


@settings(deadline=None, max_examples=60)
@given(
    st.integers(1, 2), st.integers(1, 2), st.integers(1, 2), st.integers(3, 7), st.integers(3, 7), st.integers(1, 3), st.integers(1, 3),
    st.integers(1, 3), st.integers(0, 2), st.integers(1, 2), st.integers(1, 2),
)  # fmt: skip
def test_convolution_equals_a_loop(
    n: int, cg: int, kg: int, h: int, w: int, r: int, s: int, stride: int, pad: int, dil: int, groups: int
) -> None:
    out = formulas.output_extent(np.array([h, w]), np.array([r, s]), stride, pad, dil)
    macs = formulas.convolution_macs(n, cg * groups, kg * groups, r * s, int(out[0]) * int(out[1]), groups)
    assert macs == naive_convolution_macs(n, cg * groups, kg * groups, (h, w), (r, s), stride, pad, dil, groups)


def test_output_extent_is_floor() -> None:
    """torch rounds down: 7 -> (7 + 0 - 2 - 1) // 2 + 1 = 3 with a kernel of 3 and a step of 2."""
    assert formulas.output_extent(7, 3, 2, 0, 1) == 3
    assert formulas.output_extent(8, 3, 2, 0, 1) == 3
    assert formulas.output_extent(2, 3, 1, 0, 1) == 0


def test_resnet50_forward_is_the_published_4_1_gmac() -> None:
    """He et al., arXiv:1512.03385, table 1 (the 3.8e9 there counts stride in the first 1 x 1; torchvision strides the 3 x 3: 4.09e9)."""
    total = formulas.convolution_macs(1, 3, 64, 49, 112 * 112, 1)
    into = 64
    for width, blocks, size in ((64, 3, 56), (128, 4, 28), (256, 6, 14), (512, 3, 7)):
        for block in range(blocks):
            before = size * (2 if block == 0 and width > 64 else 1)
            total += formulas.convolution_macs(1, into, width, 1, before**2, 1)
            total += formulas.convolution_macs(1, width, width, 9, size**2, 1)
            total += formulas.convolution_macs(1, width, 4 * width, 1, size**2, 1)
            if block == 0:
                total += formulas.convolution_macs(1, into, 4 * width, 1, size**2, 1)
            into = 4 * width
    total += 2048 * 1000
    assert float(total) == pytest.approx(4.089e9, rel=1e-3)


def test_gradients_of_a_convolution() -> None:
    """Each gradient takes the forward multiply-adds; what one reads another writes."""
    args = (2, 4, 6, 9, 100, 64, 2, 4)
    forward, data, weight, both = (formulas.convolution(*args, which=w) for w in ("forward", "data", "weight", "both"))
    assert forward.flops == data.flops == weight.flops == both.flops / 2
    x, y, w = 2 * 4 * 100 * 4, 2 * 6 * 64 * 4, 6 * 2 * 9 * 4
    assert (forward.read, forward.written) == (x + w, y)
    assert (data.read, data.written) == (y + w, x)
    assert (weight.read, weight.written) == (y + x, w)
    assert (both.read, both.written) == (x + y + w, x + w)
    with pytest.raises(ValueError, match="none of"):
        formulas.convolution(*args, which="sideways")


@given(st.integers(1, 9), st.integers(1, 100), st.integers(1, 100), st.integers(1, 100))
def test_work_is_linear_in_batch(b: int, m: int, n: int, k: int) -> None:
    one, many = formulas.gemm(1, m, n, k, 2, 2), formulas.gemm(b, m, n, k, 2, 2)
    assert all(float(x) * b == float(y) for x, y in zip(one, many, strict=True))
    one, many = formulas.convolution(1, m, n, k, k, k, 1, 2), formulas.convolution(b, m, n, k, k, k, 1, 2)
    assert (float(one.flops) * b, float(one.written) * b) == (float(many.flops), float(many.written))


def test_formulas_broadcast_over_arrays() -> None:
    """One call over arrays equals calls one by one."""
    m = np.array([1, 2, 3])[:, None]
    n = np.array([4, 5])
    work = formulas.gemm(2, m, n, 7, 2, 4)
    assert work.flops.shape == work.read.shape == work.written.shape == (3, 2)
    for (i, j), flops in np.ndenumerate(work.flops):
        assert flops == formulas.gemm(2, m[i, 0], n[j], 7, 2, 4).flops


def test_softmax_norm_and_copies_by_hand() -> None:
    assert formulas.softmax(2, 8, 2, 2) == (80.0, 32.0, 32.0)
    assert formulas.softmax(2, 8, 2, 2, backward=True) == (64.0, 64.0, 32.0)
    assert formulas.norm(2, 8, 16, 2, 4) == (128.0, 32 + 64, 32.0)
    assert formulas.norm(2, 8, 16, 2, 4, backward=True) == (192.0, 64 + 64, 32 + 64)
    assert formulas.copy(10, 4, 2) == (0.0, 40.0, 20.0)
    assert formulas.fill(10, 4) == (0.0, 0.0, 40.0)
    assert formulas.gather(3, 4, 2, 8, 3) == (0.0, 24 + 24, 24.0)
    assert formulas.scatter(3, 4, 2, 8, 3) == (12.0, 48 + 24, 24.0)
    assert formulas.scatter(3, 4, 2, 8, 3, accumulate=False) == (0.0, 24 + 24, 24.0)
    assert formulas.pooling(6, 9, 100, 24) == (54.0, 100.0, 24.0)
    assert formulas.sort(2, 8, 4, 64) == (2 * 8 * 3, 64.0, 64.0)


def test_recurrent_backward_is_twice_forward() -> None:
    assert formulas.recurrent(5, 3, 512, 4, 240).flops == 2 * 15 * 512
    assert formulas.recurrent(5, 3, 512, 4, 240, backward=True).flops == 4 * 15 * 512


@pytest.mark.parametrize(
    ("kind", "read", "written"),
    [("ALL_REDUCE", 800, 800), ("ALL_GATHER", 100, 800), ("REDUCE_SCATTER", 800, 100), ("ALL_TO_ALL", 800, 800), ("BARRIER", 0, 0)],
)
def test_collectives_touch_their_own_buffers(kind: str, read: float, written: float) -> None:
    work = messages.traffic(kind, 800, 8)
    assert (float(work.read), float(work.written)) == (read, written)
