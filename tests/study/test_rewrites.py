"""Edits through a scenario: what they do to prices, what is refused, and what must hold for any of them."""

from __future__ import annotations

import json
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import pytest

from tests.naive.actions import Begin, End, Launch, Program, Synchronize, Work
from tests.naive.executor import execute
from tests.naive.kineto import document
from tests.naive.programs import ADD, BF16, GELU, LAYER_NORM, SOFTMAX, Shape, Thread
from workbench import Capture, Drop, Fuse, Move, Overlap, Refused, Retype, ScaleBatch, Scenario, Split, load_npu, predict
from workbench.errors import UnreadableInput
from workbench.graph.rewrite import Rewrite
from workbench.graph.rewrite_text import parse_rewrite
from workbench.operators.table import Kind
from workbench.study.prediction import Prediction
from workbench.trace.open import open_trace
from workbench.trace.trace import Trace

SAMPLES = ("synthetic_ddp", "synthetic_launch_bound", "synthetic_queue_full")


@cache
def sample(name: str) -> Trace:
    return open_trace([Path(__file__).resolve().parents[2] / "data" / "traces" / f"{name}.json.gz"])


def after(trace: Trace, *edits: Rewrite, npu: str | None = None) -> Prediction:
    card = load_npu(npu) if npu else None
    return predict(Scenario(trace, npu=card).with_({"rewrites": edits}))


def recorded(program: Program) -> Trace:
    with TemporaryDirectory() as folder:
        path = Path(folder) / "program.json"
        path.write_text(json.dumps(document(execute(program))))
        return open_trace([path])


def of_operators(*operators: tuple[str, str, tuple[Shape, ...], int], types: str = BF16) -> Trace:
    """One step of operators of one kernel each: name, kernel, shapes, length [ns]."""
    main = Thread()
    main.do(Begin("ProfilerStep#1", category="user_annotation"))
    for name, kernel, shapes, ns in operators:
        main.do(Begin(name, shapes, (types,) * len(shapes)), Work(3_000), Launch(kernel, 7, ns), End())
    main.do(Synchronize(), End(), Work(5_000))
    return recorded(Program({"main": tuple(main.actions)}))


# -- identity and order ------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("name", SAMPLES)
def test_no_edits_change_nothing(name: str) -> None:
    base, none = predict(Scenario(sample(name))), after(sample(name))
    assert none.step_time_s == base.step_time_s
    assert np.array_equal(none.timeline.start_s, base.timeline.start_s)


def test_the_order_of_edits_that_do_not_meet_does_not_matter() -> None:
    """Chains of different layers' operators, a split and a drop touch different kernels."""
    edits = (Fuse("aten::addmm > aten::gelu"), Split("aten::_softmax", 2), Drop("aten::argmax"))
    steps = [after(sample("synthetic_launch_bound"), *order).timeline.step_s for order in (edits, edits[::-1], (*edits[1:], edits[0]))]
    for step in steps[1:]:
        np.testing.assert_allclose(step, steps[0], rtol=1e-12)


def test_the_recording_stays_the_measured_side() -> None:
    """Measured step, account and timeline are those of the recording, for the nodes that are left."""
    base, edited = predict(Scenario(sample("synthetic_ddp"))), after(sample("synthetic_ddp"), Drop("aten::gelu"), Split("aten::add", 2))
    assert edited.measured_step_s == base.measured_step_s
    assert np.array_equal(edited.measured_account.compute_s, base.measured_account.compute_s)
    assert len(edited.measured_timeline.start_s) == len(edited.graph)


def test_an_edited_scenario_can_be_edited_again() -> None:
    """Edits of a prediction's own scenario are those stated, not those already applied and the stated ones on top."""
    first = after(sample("synthetic_launch_bound"), Drop("aten::gelu"))
    both = predict(first.scenario.with_({"rewrites": (*first.scenario.rewrites, Drop("aten::argmax"))}))
    direct = after(sample("synthetic_launch_bound"), Drop("aten::gelu"), Drop("aten::argmax"))
    back = predict(first.scenario.with_({"rewrites": ()}))
    assert both.step_time_s == direct.step_time_s
    assert back.step_time_s == predict(Scenario(sample("synthetic_launch_bound"))).step_time_s
    assert len({p.digest for p in (first, both, back)}) == 3
    assert both.digest == direct.digest


# -- what a fused operator is ------------------------------------------------------------------------------------------
def test_flops_add_and_bytes_of_the_intermediate_vanish() -> None:
    """x [64, 4096] in bf16 is 512 KiB. add reads two and writes one, gelu reads one and writes one: five; fused three."""
    shape, size = (64, 4096), 64 * 4096 * 2.0
    trace = of_operators(("aten::add", ADD, (shape, shape), 9_000), ("aten::gelu", GELU, (shape,), 7_000))
    base, fused = after(trace), after(trace, Fuse("aten::add > aten::gelu"))
    [row] = [i for i, name in enumerate(fused.table.name) if name == "aten::add + aten::gelu"]
    assert fused.table.flops[row] == base.table.flops.sum()
    assert (fused.table.bytes_read[row], fused.table.bytes_written[row]) == (2 * size, size)
    assert fused.table.kind[row] == Kind.ELEMENTWISE
    assert 0 < fused.table.measured_s[row] < 16e-6
    assert "scaled" in fused.evidence_share


def test_a_gradient_keeps_what_it_reads() -> None:
    """gelu's gradient reads gelu's input: the product before it writes it all the same, so only the read of it vanishes."""
    base, fused = after(sample("synthetic_ddp")), after(sample("synthetic_ddp"), Fuse("aten::addmm > aten::gelu"))
    row = fused.table.name.index("aten::addmm + aten::gelu")
    intermediate = 4096 * 2048 * 2.0
    gelu = base.table.name.index("aten::gelu")
    addmm = next(
        i for i, s in enumerate(base.table.signature) if s.startswith("aten::addmm") and "[4096,2048]]" not in s and "[2048]x" in s
    )
    whole = base.table.bytes_written[[gelu, addmm]].sum()
    assert fused.table.bytes_written[row] == whole
    assert fused.table.bytes_read[row] == base.table.bytes_read[[gelu, addmm]].sum() - intermediate
    assert any("gradient" in note.text for note in fused.notes)


def test_unfused_attention_is_found() -> None:
    """16 heads of 512 queries and keys of depth 64: products of 2 * 16 * 512 * 512 * 64 FLOPs; Q, K, V read and O written."""
    q, k, s, v = (16, 512, 64), (16, 64, 512), (16, 512, 512), (16, 512, 64)
    gemm = "ampere_bf16_s16816gemm_bf16_64x64_ldg8_f2f_stages_64x5_nn"
    trace = of_operators(
        ("aten::bmm", gemm, (q, k), 30_000),
        ("aten::mul", ADD, (s,), 20_000),
        ("aten::_softmax", SOFTMAX, (s,), 20_000),
        ("aten::bmm", gemm, (s, v), 30_000),
    )
    fused = after(trace, Fuse("attention"))
    row = fused.table.name.index("attention")
    assert fused.table.kind[row] == Kind.ATTENTION_FORWARD
    assert fused.table.bytes_read[row] + fused.table.bytes_written[row] < 5 * 16 * 512 * 64 * 2
    assert fused.table.flops[row] == 2 * 2 * 16 * 512 * 512 * 64
    assert fused.table.measured_s[row] < 60e-6
    assert after(trace, Fuse("attention"), npu="h100-sxm").step_time_s < after(trace, npu="h100-sxm").step_time_s


def test_fused_attention_masks_what_the_softmax_masks() -> None:
    """A softmax that masks later keys keeps 512 * 513 / 2 of 512 * 512 pairs; of a mask whose content is unknown that is said."""
    q, k, s, v = (16, 512, 64), (16, 64, 512), (16, 512, 512), (16, 512, 64)
    gemm = "ampere_bf16_s16816gemm_bf16_64x64_ldg8_f2f_stages_64x5_nn"
    masked = SOFTMAX.replace("softmax_warp_forward", "scaled_upper_triang_masked_softmax_warp_forward")
    before, last = (("aten::bmm", gemm, (q, k), 30_000), ("aten::bmm", gemm, (s, v), 30_000))
    causal = after(of_operators(before, ("aten::_softmax", masked, (s,), 20_000), last), Fuse("attention"))
    assert causal.table.flops[causal.table.name.index("attention")] == 2 * 2 * 16 * (512 * 513 // 2) * 64
    added = ("aten::add", ADD, (s, (512, 512)), 20_000), ("aten::_softmax", SOFTMAX, (s,), 20_000)
    unknown = after(of_operators(before, *added, last), Fuse("attention"))
    assert any("mask" in note.text for note in unknown.notes)
    assert not any("mask" in note.text for note in causal.notes)


ELEMENTWISE = ("aten::gelu", GELU, ((64, 4096),), 7_000)
ILLEGAL = [
    ("another shape", (("aten::add", ADD, ((64, 4096), (64, 4096)), 9_000), ("aten::gelu", GELU, ((64, 2048),), 7_000)), "shapes"),
    ("nothing follows", (("aten::add", ADD, ((64, 4096), (64, 4096)), 9_000),), "no operator or kernel"),
    ("no shapes", (("aten::add", ADD, ((64, 4096), (64, 4096)), 9_000), ("aten::gelu", GELU, (), 7_000)), "not recorded"),
]


@pytest.mark.parametrize(("operators", "why"), [case[1:] for case in ILLEGAL], ids=[case[0] for case in ILLEGAL])
def test_what_may_not_be_fused_is_refused_with_its_reason(operators: tuple[tuple[str, str, tuple[Shape, ...], int], ...], why: str) -> None:
    with pytest.raises(Refused, match=why):
        after(of_operators(*operators), Fuse("aten::add > aten::gelu"))


def test_a_synchronisation_between_two_kernels_is_respected() -> None:
    main, shape = Thread(), (64, 4096)
    main.do(Begin("ProfilerStep#1", category="user_annotation"))
    main.kernel("aten::add", ADD, 9_000, shape, shape)
    main.do(Synchronize())
    main.kernel("aten::gelu", GELU, 7_000, shape)
    main.do(Synchronize(), End(), Work(5_000))
    with pytest.raises(Refused, match=r"synchronisation|waits for the device"):
        after(recorded(Program({"main": tuple(main.actions)})), Fuse("aten::add > aten::gelu"))


def test_a_product_does_not_swallow_a_row_wise_operator() -> None:
    norm = ("aten::native_layer_norm", LAYER_NORM, ((64, 4096),), 7_000)
    trace = of_operators(("aten::mm", "sgemm_bf16", ((64, 4096), (4096, 4096)), 30_000), norm)
    with pytest.raises(Refused, match="whole row"):
        after(trace, Fuse("aten::mm > aten::native_layer_norm"))


# -- the other edits ---------------------------------------------------------------------------------------------------
def test_retyped_products_take_casts_along() -> None:
    """fp32 products on an A100 in bf16: the product is shorter, the casts take launches; without casts it is cheaper still."""
    trace = of_operators(("aten::mm", "ampere_sgemm_128x64_nn", ((4096, 4096), (4096, 4096)), 7_200_000), types="float")
    base, bf16, bare = after(trace), after(trace, Retype("gemm", "bf16")), after(trace, Retype("gemm", "bf16", casts=False))
    assert bare.step_time_s < bf16.step_time_s < base.step_time_s
    names = [bf16.table.name[row] for row in bf16.graph.op[bf16.graph.op >= 0]]
    assert names.count("cast fp32 to bf16") == names.count("cast bf16 to fp32") == 1
    cast = bf16.table.name.index("cast fp32 to bf16")
    assert bf16.table.bytes_read[cast] == 4096 * 4096 * 4  # the activations; parameters are converted once, beforehand
    assert bf16.table.bytes_written[cast] == 4096 * 4096 * 2


@pytest.mark.parametrize(
    ("edit", "why"),
    [
        (Retype("aten::_softmax", "int8"), "forward products"),
        (Retype("aten::addmm", "bf16"), "already"),
        (Retype("nothing*", "bf16"), "nothing in the recording fits"),
        (Split("aten::argmax", 7), "does not divide"),
        (Split("aten::item", 2), "does not divide"),
        (Overlap("aten::gelu"), "what reads its result is not known"),
        (Move("aten::gelu", "7", "aten::addmm"), "already"),
        (Fuse("aten::gelu"), "not a chain"),
        (Fuse("aten::gelu > aten::nothing"), "no operator or kernel"),
        (Capture("aten::argmax"), "two of these in a row"),
    ],
    ids=lambda value: value.text if isinstance(value, Rewrite) else "",
)
def test_edits_that_would_not_be_right_are_refused(edit: Rewrite, why: str) -> None:
    with pytest.raises(Refused, match=why):
        after(sample("synthetic_launch_bound"), edit)


def test_twice_the_batch_of_a_recording_is_what_the_other_recording_took(project: Path) -> None:
    """Recorded with batch 8 and 16: the edit explains most of the difference, without a card (times follow work and bytes)."""
    steps = {}
    for batch in (8, 16):
        trace = open_trace([project / "data" / "traces" / f"cpu_resnet_b{batch}.json.gz"])
        steps[batch] = after(trace).step_time_s, after(trace, ScaleBatch(16 / batch if batch == 8 else 0.5)).step_time_s
    for small, large in ((8, 16), (16, 8)):
        recording, predicted = steps[small]
        assert abs(predicted / steps[large][0] - 1) < 0.12
        assert abs(predicted - steps[large][0]) < 0.25 * abs(recording - steps[large][0])


def test_a_batch_on_which_products_do_not_depend_is_refused() -> None:
    """The softmax leads with 16 heads, the products with 1 token: 16 is no batch."""
    with pytest.raises(Refused, match="does not depend on a batch of 16"):
        after(sample("synthetic_launch_bound"), ScaleBatch(2))


def test_a_batch_that_cannot_be_told_is_refused(project: Path) -> None:
    trace = open_trace([project / "data" / "traces" / "cpu_transformer_b4.json.gz"])
    with pytest.raises(Refused, match="may count samples or be a width"):
        after(trace, ScaleBatch(2))


WRITTEN = (
    *(Retype("a", "bf16"), Retype("a", "fp8", casts=False), Fuse("a > b", keep=True), Drop("a*"), Split("a", 3)),
    *(Move("a", "20", "b"), Overlap("a", "b"), Capture(), ScaleBatch(0.5, 8), ScaleBatch(2)),
)


@pytest.mark.parametrize("edit", WRITTEN, ids=lambda edit: edit.text)
def test_edits_are_read_as_they_are_written(edit: Rewrite) -> None:
    assert parse_rewrite(edit.text) == edit


@pytest.mark.parametrize(
    "text", ["", "fuse", "fuse:", "split:a", "split:a=x", "batch:", "batch:-1x", "retype:a", "move:a", "gemm", "batch:2x,from=x"]
)
def test_other_texts_are_no_edits(text: str) -> None:
    with pytest.raises(UnreadableInput, match="write fuse"):
        parse_rewrite(text)


@pytest.mark.parametrize("field", [[Drop("a")], "drop:a", (1,)])
def test_rewrites_of_a_scenario_are_edits(field: object) -> None:
    with pytest.raises(Refused, match="no tuple of edits"):
        Scenario(sample("synthetic_ddp")).with_({"rewrites": field})
