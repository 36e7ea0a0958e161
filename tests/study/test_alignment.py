"""Which call of one recording is which of the other: rules by hand, longest common subsequences against a table."""

from __future__ import annotations

from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from workbench.study.alignment import ALONE, align
from workbench.study.call_order import MOST_EDITS, matched_calls
from workbench.study.one_step import Row

CALLS = st.lists(st.sampled_from("abcd"), max_size=14)


def row(name: str, shapes: str, dtype: str, *calls: int, kind: str = "gemm", dims: tuple[int, ...] = ()) -> Row:
    return Row(name, dtype, shapes, kind, f"{name}|{dtype}|{shapes}", dims, list(calls), seconds=float(len(calls)))


def pairs(a: list[Row], b: list[Row], other_card: bool = True) -> set[tuple[str, tuple[str, ...], tuple[str, ...]]]:
    sides = [(pair.by, *(tuple(r.shapes or r.name for r in rows) for rows in (pair.a, pair.b))) for pair in align(a, b, other_card)]
    assert len(sides) == len(set(sides))
    return set(sides)


def test_rules_of_alignment_by_hand() -> None:
    """Each rule once. mm is called as often on both sides: calls 1 and 2 of A (one shape) are two shapes in B, call 3 stays by
    itself. add is called once more in B: laid side by side its first call meets; a kernel of another vendor has only its kind."""
    a = [row("same", "[1]", "fp32", 0), row("typed", "[2]", "fp32", 9), row("mm", "[3]", "fp32", 1, 2), row("mm", "[4]", "fp32", 3)]
    a += [row("add", "[5]", "fp32", 4), row("cutlass", "", "bf16", 5), row("graph", "", "bf16", 6), row("odd", "", "", 7, kind="unknown")]
    b = [row("same", "[1]", "fp32", 0), row("typed", "[2]", "bf16", 9), row("mm", "[6]", "fp32", 1), row("mm", "[7]", "fp32", 2)]
    b += [row("mm", "[8]", "fp32", 3), row("add", "[9]", "fp32", 4, 5), row("Cijk", "", "bf16", 6), row("graph", "", "bf16", 7)]
    b += [row("strange", "", "", 8, kind="unknown")]
    assert pairs(a, b) == {
        ("name, shapes, dtype", ("[1]",), ("[1]",)),
        ("name, launch grid", ("graph",), ("graph",)),
        ("name, shapes", ("[2]",), ("[2]",)),
        ("name, calling order", ("[3]",), ("[6]", "[7]")),
        ("name, calling order", ("[4]",), ("[8]",)),
        ("name, calling order", ("[5]",), ("[9]",)),
        ("kind", ("cutlass",), ("Cijk",)),
        (ALONE, ("odd",), ()),
        (ALONE, (), ("strange",)),
    }


def test_an_inserted_call_does_not_shift_the_others() -> None:
    """Twice the batch, and a norm put in front: by counting, every norm of B would be compared with the one after it in A."""
    a = [row("mm", "[8]", "fp32", 0), row("norm", "[8,1]", "fp32", 1), row("mm", "[9]", "fp32", 2), row("norm", "[8,2]", "fp32", 3)]
    b = [row("norm", "[16,9]", "fp32", 0), row("mm", "[16]", "fp32", 1), row("norm", "[16,1]", "fp32", 2)]
    b += [row("mm", "[18]", "fp32", 3), row("norm", "[16,2]", "fp32", 4)]
    assert pairs(a, b) == {
        ("name, calling order", ("[8]",), ("[16]",)),
        ("name, calling order", ("[9]",), ("[18]",)),
        ("name, calling order", ("[8,1]",), ("[16,1]",)),
        ("name, calling order", ("[8,2]",), ("[16,2]",)),
        (ALONE, (), ("[16,9]",)),
    }


def test_names_of_two_libraries_meet_by_their_dimensions() -> None:
    a = [
        row("cudnn_convolution", "[1]", "fp16", 0, kind="conv_forward", dims=(8, 3)),
        row("gelu", "[2]", "fp16", 1, kind="elementwise", dims=(4,)),
    ]
    b = [
        row("miopen_convolution", "[3]", "fp16", 0, kind="conv_forward", dims=(8, 3)),
        row("fused", "[4]", "fp16", 1, kind="elementwise", dims=(4,)),
    ]
    assert pairs(a, b) >= {("kind, dimensions", ("[1]",), ("[3]",)), ("kind", ("[2]",), ("[4]",))}
    assert pairs(a, b, other_card=False) >= {(ALONE, ("[2]",), ()), (ALONE, (), ("[4]",))}  # one card: a kernel went, another came


@given(CALLS, CALLS)
def test_calls_match_in_a_longest_common_subsequence(a: list[str], b: list[str]) -> None:
    """Against the textbook table of lengths; matches ascend on both sides and are of one name."""
    length = [[0] * (len(b) + 1) for _ in range(len(a) + 1)]
    for i, x in enumerate(a):
        for j, y in enumerate(b):
            length[i + 1][j + 1] = length[i][j] + 1 if x == y else max(length[i][j + 1], length[i + 1][j])
    found = matched_calls(a, b)
    assert len(found) == length[-1][-1]
    assert all(a[i] == b[j] for i, j in found)
    assert all(i < k and j < m for (i, j), (k, m) in pairwise(found))


def test_two_programs_match_at_their_ends_only() -> None:
    """More edits than two recordings of one job have: the search ends, with what is common at begin and end."""
    a, b = ["x", *(["a"] * MOST_EDITS), "y"], ["x", *(["b"] * MOST_EDITS), "y"]
    assert matched_calls(a, b) == [(0, 0), (MOST_EDITS + 1, MOST_EDITS + 1)]
