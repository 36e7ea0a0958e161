"""Comparing two recordings: interventions the executor made must be named with their seconds, and everything must add up."""

from __future__ import annotations

import csv
from collections.abc import Callable
from dataclasses import replace
from functools import cache
from pathlib import Path

import jsonschema
import numpy as np
import pytest

from tests.naive.actions import Action, Launch, Program, Work
from tests.naive.answers import answers
from tests.naive.executor import execute
from tests.naive.kineto import document, packed
from tests.naive.programs import ARGMAX, GELU_BACKWARD, GEMM, data_parallel, launch_bound
from workbench import compare_traces
from workbench.data import data_path
from workbench.errors import Refused
from workbench.study.alignment import ALONE
from workbench.study.compare_traces import comparison
from workbench.study.document import to_json
from workbench.study.documents import schema
from workbench.study.documents_compare import ComparisonDocument, write_csv
from workbench.study.one_step import HOST_PARTS, LAG_PARTS
from workbench.study.terminal_compare import comparison_text
from workbench.study.workload import Workload
from workbench.trace.open import open_trace

NAMELESS = (*HOST_PARTS, *LAG_PARTS)
NS = 1e-9
Recorded = Callable[[str, Program], Workload]


@cache
def sample(name: str) -> Workload:
    return Workload(open_trace([data_path("traces", f"{name}.json.gz")]))


@pytest.fixture(scope="module")
def recorded(tmp_path_factory: pytest.TempPathFactory) -> Recorded:
    """Execute a program once and open what the profiler would have written."""
    folder, known = tmp_path_factory.mktemp("compared"), {}

    def run(name: str, program: Program) -> Workload:
        if name not in known:
            (folder / f"{name}.json.gz").write_bytes(packed(document(execute(program))))
            known[name] = Workload(open_trace([folder / f"{name}.json.gz"]))
        return known[name]

    return run


def step_ns(program: Program, number: int) -> int:
    """Length of a step by the executor, which knows nothing of this project's code."""
    steps = answers(execute(program))["steps"]
    return next(step["step_ns"] for step in steps if step["number"] == number)  # type: ignore[attr-defined]


def adds_up(found: ComparisonDocument) -> None:
    """Account, chain, and operators plus host each come to the change of the step; each side's parts come to its step."""
    assert sum(part.delta_s for part in found.account) == pytest.approx(found.delta_s, abs=1e-12)
    assert sum(part.delta_s for part in found.chain) == pytest.approx(found.delta_s, abs=1e-9)
    named = sum(row.effect_s for row in found.operators) + sum(part.delta_s for part in found.chain if part.name in NAMELESS)
    assert named == pytest.approx(found.delta_s, abs=1e-9)
    for name in HOST_PARTS:
        effects = sum(row.effect_s for row in found.host if row.part == name)
        assert effects == pytest.approx(next(part.delta_s for part in found.chain if part.name == name), abs=1e-9)
    for side in "ab":
        for parts in (found.account, found.chain):
            assert sum(getattr(part, f"{side}_s") for part in parts) == pytest.approx(getattr(found, side).step_s, abs=1e-9)


def test_a_slower_kernel_is_named_with_its_seconds(recorded: Recorded) -> None:
    """Every product with a gradient takes twice as long: by the program, so many nanoseconds more in a step, all of them on the
    compute stream that ends it. Nothing else changes, so nothing else may be named."""
    name = GEMM.format("nn")
    base = data_parallel()
    slow = base.scaled(name, 2)
    actions = [action for thread in base.threads.values() for action in thread if isinstance(action, Launch) and action.name == name]
    more = sum(action.ns for action in actions) / 3 * NS  # three equal steps
    found = comparison(recorded("ddp", base), recorded("slow kernel", slow), step=4)
    adds_up(found)
    assert found.delta_s == pytest.approx((step_ns(slow, 4) - step_ns(base, 4)) * NS, abs=2e-9)
    changed = [row for row in found.operators if abs(row.delta_s) > 1e-12]
    assert {row.label for row in changed} == {"aten::mm"}
    assert sum(row.delta_s for row in changed) == pytest.approx(more, abs=1e-12)
    kernels = [{k.name: k.seconds for k in side.kernels} for row in changed for side in (row.a, row.b) if side]
    for before, after in zip(kernels[::2], kernels[1::2], strict=True):  # of a shape, both gradients' products
        assert {kernel for kernel in before if before[kernel] != after[kernel]} == {name}
    assert sum(row.effect_s for row in changed) == pytest.approx(found.delta_s, rel=0.02)
    assert found.operators[0].label == "aten::mm"
    assert "slower" in found.summary
    assert "aten::mm" in found.summary


def test_one_doubled_kernel_is_that_operator_with_that_change(recorded: Recorded) -> None:
    """One kind of kernel, one shape: of all operators one changes, by what the program says (6 layers, once each), on the chain."""
    base = data_parallel()
    slow = base.scaled(GELU_BACKWARD, 2)
    each = next(a.ns for thread in base.threads.values() for a in thread if isinstance(a, Launch) and a.name == GELU_BACKWARD)
    found = comparison(recorded("ddp", base), recorded("slow gelu", slow))
    adds_up(found)
    [changed] = [row for row in found.operators if abs(row.delta_s) > 1e-12]
    assert changed is found.operators[0]
    assert changed.label == "aten::gelu_backward"
    assert changed.delta_s == pytest.approx(6 * each * NS, abs=1e-12)
    assert f"+{6 * each / 1e3:.4g} us aten::gelu_backward" in found.summary
    assert {note.code for note in found.notes if note.where == "A, B"} <= {"within-spread"}


def test_a_slower_kernel_that_is_hidden_has_no_effect(recorded: Recorded) -> None:
    """Copies of the next batch a tenth slower, beside the compute stream: by the executor no step changes."""
    base = data_parallel()
    slow = base.scaled("Memcpy HtoD (Pinned -> Device)", 1.1)
    assert step_ns(slow, 4) == step_ns(base, 4)
    found = comparison(recorded("ddp", base), recorded("slow copy", slow), step=4)
    adds_up(found)
    [changed] = [row for row in found.operators if abs(row.delta_s) > 1e-12]
    assert changed.kind == "copy"
    assert (found.delta_s, changed.effect_s) == (pytest.approx(0, abs=2e-9), pytest.approx(0, abs=2e-9))
    assert found.summary.startswith("B takes as long as A")


def test_an_added_launch_stands_on_one_side(recorded: Recorded) -> None:
    """A without the arg-max of every token, B with it: one kernel and one launch more a step, 6 us of device time."""
    with_it, without = launch_bound(), launch_bound().without(ARGMAX)
    found = comparison(recorded("without", without), recorded("thin", with_it), step=2)
    adds_up(found)
    assert found.delta_s == pytest.approx((step_ns(with_it, 2) - step_ns(without, 2)) * NS, abs=2e-9)
    counts = {row.name: row.delta_count for row in found.categories}
    assert (counts["kernels"], counts["launch calls"], counts["copies"]) == (1, 1, 0)
    [alone] = [row for row in found.operators if row.a is None or row.b is None]
    assert alone.label == "aten::argmax"
    assert alone.aligned_by == ALONE
    assert alone.b is not None
    assert alone.b.total_s == pytest.approx(6_000 * NS)
    assert [(kernel.name, kernel.launches) for kernel in alone.b.kernels] == [(ARGMAX, 1)]
    assert alone.delta_s == pytest.approx(6_000 * NS)


def test_a_slower_host_is_no_operator(recorded: Recorded) -> None:
    """All host work takes twice as long: kernels last as before, and the host is named for the whole change."""

    def twice(action: Action) -> Action:
        return replace(action, ns=2 * action.ns) if isinstance(action, Work) else action

    base, slow = launch_bound(), launch_bound().edited(twice)
    found = comparison(recorded("thin", base), recorded("slow host", slow), step=2)
    adds_up(found)
    change = (step_ns(slow, 2) - step_ns(base, 2)) * NS
    assert found.delta_s == pytest.approx(change, abs=2e-9)
    assert all(abs(row.delta_s) < 1e-12 for row in found.operators)
    work = {part.name: part.delta_s for part in found.chain}
    assert work["host operators"] + work["host time between events"] == pytest.approx(change, rel=0.01)
    assert "host operators" in found.summary.split("of which", 1)[1].split(",", 1)[0]


def test_swapping_negates_every_difference(recorded: Recorded) -> None:
    a, b = recorded("thin", launch_bound()), recorded("without", launch_bound().without(ARGMAX))
    there, back = compare_traces(a, b), compare_traces(b, a)
    for name in ("delta_step_s", "delta_part_s", "delta_chain_s", "delta_s", "effect_s"):
        np.testing.assert_array_equal(there[name], -back[name])
    np.testing.assert_array_equal(there["label"], back["label"])
    np.testing.assert_array_equal(there["a_s"], back["b_s"])


@pytest.mark.parametrize("name", ["synthetic_ddp", "synthetic_queue_full", "cpu_transformer_b4"])
def test_a_recording_with_itself_gives_zeros(name: str) -> None:
    found = comparison(sample(name), sample(name))
    adds_up(found)
    assert found.delta_s == 0
    assert not any(row.delta_s or row.effect_s for row in found.operators)
    assert not any(row.delta_s or row.effect_s for row in found.host)
    assert not any(row.delta_count for row in found.categories)
    assert set(found.aligned) <= {"name, shapes, dtype", "name, launch grid"}
    assert found.summary.startswith("B takes as long as A")


@pytest.mark.parametrize(("model", "small", "large"), [("resnet", 8, 16), ("transformer", 4, 8)])
def test_two_batches_are_aligned_by_calling_order(model: str, small: int, large: int) -> None:
    """Twice the batch: the same calls with other shapes, twice the work (parameters' own apart), said in notes."""
    found = comparison(sample(f"cpu_{model}_b{small}"), sample(f"cpu_{model}_b{large}"))
    adds_up(found)
    assert found.aligned["name, calling order"] > 0.8
    assert ALONE not in found.aligned
    assert found.b.flops / found.a.flops == pytest.approx(2, rel=0.01)
    codes = {note.code: note for note in found.notes}
    assert "factor 2" in codes["shapes-differ"].text
    assert "work-differs" in codes
    assert all(row.a and row.b and row.a.count == row.b.count for row in found.operators)


@pytest.mark.parametrize("model", ["bert_small", "qwen_0.5b"])
def test_pairs_of_cards_add_up(shared: Path, model: str) -> None:
    """One model on an H100 and an MI300X: other kernels, the same operators; nothing of either side is lost."""
    loads = [Workload(open_trace([shared / "traces" / "pairs" / f"{model}_{card}.json.gz"])) for card in ("h100", "mi300x")]
    found = comparison(loads[0], loads[1])
    adds_up(found)
    for side, load in zip("ab", loads, strict=True):
        graph = load.graph
        whole = graph.measured_s[(graph.step == 0) & (graph.op >= 0)].sum()
        assert sum(getattr(row, side).total_s for row in found.operators if getattr(row, side)) == pytest.approx(whole)
    assert found.aligned["name, shapes, dtype"] > 0.6
    assert found.aligned.get(ALONE, 0.0) < 0.05
    matched = [row for row in found.operators if row.aligned_by == "name, shapes, dtype" and row.a and row.b and "mm" in row.label]
    assert any({kernel.name for kernel in row.a.kernels}.isdisjoint(kernel.name for kernel in row.b.kernels) for row in matched)  # type: ignore[union-attr]


def test_the_median_step_and_a_step_by_number() -> None:
    load = sample("cpu_transformer_b8")
    seconds = load.measured_timeline.step_s[load.graph.step_complete]
    found = comparison(load, load)
    assert found.a.median_s == pytest.approx(np.median(seconds))
    assert found.a.step_s == seconds[np.argmin(abs(seconds - np.median(seconds)))]
    assert (found.a.low_s, found.a.high_s) == (seconds.min(), seconds.max())
    number = int(load.graph.step_numbers[-1])
    assert comparison(load, load, step=number).b.step == number
    with pytest.raises(Refused, match="has no step 99"):
        comparison(load, load, step=99)
    with pytest.raises(Refused, match="neither"):
        comparison(load, load, step="mean")
    with pytest.raises(Refused, match="not a recording"):
        comparison(load, "b.json")  # type: ignore[arg-type]


def test_document_table_and_text(recorded: Recorded, tmp_path: Path) -> None:
    found = comparison(recorded("without", launch_bound().without(ARGMAX)), recorded("thin", launch_bound()))
    jsonschema.Draft202012Validator(schema("compare")).validate(found.model_dump(mode="json"))
    assert "NaN" not in to_json(found)
    write_csv(found, tmp_path / "rows.csv")
    with open(tmp_path / "rows.csv", newline="") as file:
        rows = list(csv.DictReader(file))
    assert sum(float(line["effect_s"]) for line in rows) == pytest.approx(sum(line.effect_s for line in found.operators))
    text = "\n".join(str(part) for part in comparison_text(found))
    assert text.splitlines()[0].startswith("B is")
    assert "only in B: 1 operator, 1 call, 6 us" in text
