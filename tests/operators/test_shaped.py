"""Shapes of tensors give the dimensions of an operator, or none where they do not settle them."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from workbench.operators.shaped import extents
from workbench.operators.table import Kind
from workbench.operators.words import Word

GEMM, BMM = Word(Kind.GEMM), Word(Kind.BATCHED_GEMM)


def text(*shapes):
    return ";".join(",".join(map(str, shape)) for shape in shapes)


@given(st.integers(1, 99), st.integers(1, 99), st.integers(1, 99), st.booleans(), st.booleans())
def test_a_product_whatever_is_transposed(m, n, k, left, right):
    """Definition: m, n of the output, k of what is contracted."""
    a, b = ((k, m) if left else (m, k)), ((n, k) if right else (k, n))
    assert extents(GEMM, text(a, b), text((m, n))) == {"batch": 1, "m": m, "n": n, "k": k}


@given(st.integers(2, 9), st.integers(1, 99), st.integers(1, 99), st.integers(1, 99))
def test_a_shared_second_factor_makes_rows_of_the_batch(batch, m, n, k):
    """A linear layer reads its weights once: batch x m rows. Weights of their own make a batched product."""
    shared = {"batch": 1, "m": batch * m, "n": n, "k": k}
    assert extents(GEMM, text((batch, m, k), (k, n)), text((batch, m, n))) == shared
    own = {"batch": batch, "m": m, "n": n, "k": k}
    assert extents(BMM, text((batch, m, k), (batch, k, n)), text((batch, m, n))) == own
    assert extents(BMM, text((batch, m, k), (batch, k, n))) == own


@pytest.mark.parametrize(
    ("inputs", "found"),
    [
        ("1,128,768;768,3072", {"batch": 1, "m": 128, "n": 3072, "k": 768}),
        ("128,768;3072,768", {"batch": 1, "m": 128, "n": 3072, "k": 768}),  # the second stored transposed
        ("768,128;768,3072", {"batch": 1, "m": 128, "n": 3072, "k": 768}),
        ("128,768;768,3072;3072", {"batch": 1, "m": 128, "n": 3072, "k": 768}),  # a bias behind it
        ("128,768;100,3072", {}),  # nothing agrees
        ("2,128,768;3,768,64", {}),
        ("1,128,768", {}),  # one input of a product says neither n nor k
    ],
)
def test_products_without_an_output(inputs, found):
    assert extents(GEMM, inputs) == found


def test_extents_of_a_product_by_name_or_in_a_column_that_says_so():
    assert extents(GEMM, "", plain="M128N3072K768") == {"m": 128, "n": 3072, "k": 768}
    assert extents(GEMM, "", mnk="128x3072x768") == {"m": 128, "n": 3072, "k": 768}
    assert extents(BMM, "", mnk="[4,128,3072,768]") == {"batch": 4, "m": 128, "n": 3072, "k": 768}
    assert extents(GEMM, "", plain="128x3072x768") == {}  # m, n, k, or one of the inputs


def test_fractal_outputs_of_ascend():
    """n1, m1, m0, n0 with blocks of 16 (CANN: FRACTAL_NZ): 32 x 16 columns, 8 x 16 rows."""
    found = extents(GEMM, text((48, 8, 16, 16), (32, 48, 16, 16)), text((32, 8, 16, 16)), layout="FRACTAL_NZ;FRACTAL_NZ")
    assert found == {"batch": 1, "m": 128, "n": 512, "k": 768}


@given(st.integers(1, 4), st.integers(1, 3), st.integers(0, 3), st.sampled_from([1, 3, 5, 7]), st.integers(14, 40))
def test_stride_and_padding_follow_from_a_convolutions_output(n, stride, pad, window, size):
    """What is found gives the recorded output: floor((h + 2 p - r) / s) + 1."""
    pad = min(pad, window // 2)
    result = (size + 2 * pad - window) // stride + 1
    found = extents(Word(Kind.CONV_FORWARD), text((n, 8, size, size), (16, 8, window, window)), text((n, 16, result, result)))
    assert {key: found[key] for key in ("n", "c", "h", "w", "k", "r", "s", "groups")} == {
        "n": n, "c": 8, "h": size, "w": size, "k": 16, "r": window, "s": window, "groups": 1,
    }  # fmt: skip
    assert (size + 2 * found["pad_h"] - window) // found["stride_h"] + 1 == result


def test_channels_last_and_groups():
    found = extents(Word(Kind.CONV_FORWARD), text((2, 56, 56, 64), (3, 3, 64, 128)), text((2, 56, 56, 128)), layout="NHWC")
    assert (found["c"], found["k"], found["h"], found["pad_h"], found["groups"]) == (64, 128, 56, 1, 1)
    assert extents(Word(Kind.CONV_FORWARD), text((1, 64, 8, 8), (64, 1, 3, 3)), text((1, 64, 8, 8)))["groups"] == 64
    same = extents(Word(Kind.CONV_FORWARD), text((8, 56, 56, 64), (64, 3, 3, 64)), text((8, 56, 56, 64)), layout="NHWC")
    assert (same["r"], same["s"], same["pad_h"]) == (3, 3, 1)  # as many channels in as out: the window is still 3 x 3


def test_blocks_of_channels_of_ascend():
    """NC1HWC0 with blocks of 16: 4 x 16 channels; FRACTAL_Z: 4 x 3 x 3 = 36 blocks of the kernel (CANN, data formats)."""
    found = extents(Word(Kind.CONV_FORWARD), text((8, 4, 56, 56, 16), (36, 8, 16, 16)), text((8, 8, 28, 28, 16)))
    assert found == {"n": 8, "c": 64, "h": 56, "w": 56, "k": 128, "r": 3, "s": 3, "groups": 1,
                     "stride_h": 2, "pad_h": 1, "stride_w": 2, "pad_w": 1}  # fmt: skip


def test_attention_needs_the_names_of_its_axes():
    word = Word(Kind.ATTENTION_FORWARD)
    q, k = (2, 8, 128, 64), (2, 2, 512, 64)
    assert extents(word, text(q, k, k)) == {}
    found = extents(word, text(q, k, k), layout="BNSD")
    assert found == {"batch": 2, "heads": 8, "kv_heads": 2, "queries": 128, "keys": 512, "head_dim": 64, "value_dim": 64}
    swapped = extents(word, text((2, 128, 8, 64), (2, 512, 2, 64)), layout="BSND")
    assert swapped == {key: value for key, value in found.items() if key != "value_dim"}


def test_rows_columns_and_elements():
    assert extents(Word(Kind.NORM), "1024,4,12288;12288;12288", "1024,4,12288") == {"rows": 4096, "cols": 12288, "elements": 50331648}
    assert extents(Word(Kind.REDUCTION), "64,1000", "64") == {"rows": 64, "cols": 1000, "elements": 64000}
    table, rows = (50000, 768), (4, 128, 768)  # a gather moves the rows it returns, not the table
    assert {k: extents(Word(Kind.EMBEDDING), text(table, (4, 128)), text(rows))[k] for k in ("rows", "cols")} == {"rows": 512, "cols": 768}


@given(st.sampled_from(list(Kind)), st.text(max_size=30), st.text(max_size=30), st.text(max_size=20), st.text(max_size=20))
def test_no_text_breaks_it(kind, inputs, outputs, plain, layout):
    assert all(extent >= 0 for extent in extents(Word(kind), inputs, outputs, plain, plain, layout).values())


digits = st.lists(st.lists(st.integers(0, 70), max_size=5).map(lambda s: ",".join(map(str, s))), max_size=4).map(";".join)


@given(st.sampled_from(list(Kind)), digits, digits, st.sampled_from(["", "NHWC", "BNSD", "FRACTAL_NZ", "ND", "TND"]))
def test_no_shapes_break_it(kind, inputs, outputs, layout):
    assert all(extent >= 0 for extent in extents(Word(kind), inputs, outputs, layout=layout).values())
