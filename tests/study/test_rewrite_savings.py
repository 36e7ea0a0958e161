"""What must hold for any edit of any recording: less work is never later, savings add up where they should, losses are named."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.naive.actions import Begin, End, Program, Synchronize, Work
from tests.naive.programs import ADD, Thread
from tests.study.test_rewrites import after, recorded, sample
from workbench import Capture, Drop, Fuse, Scenario, Split, load_npu, predict, rewrites

NAMES = ("aten::gelu", "aten::add", "aten::native_layer_norm", "aten::_softmax", "aten::addmm", "aten::argmax")


@settings(max_examples=15)
@given(st.lists(st.sampled_from(NAMES), min_size=1, max_size=4, unique=True), st.integers(0, 8), st.integers(1_000, 60_000))
def test_work_left_out_never_lengthens_a_step(names: list[str], seed: int, gap: int) -> None:
    """Streams that do not slow each other: less work is never later."""
    rng = np.random.default_rng(seed)
    main, shape = Thread(), (64, 1024)
    for step in range(2):
        main.do(Begin(f"ProfilerStep#{step + 1}", category="user_annotation"), Work(gap))
        for _ in range(6):
            name = NAMES[int(rng.integers(len(NAMES)))]
            main.kernel(name, ADD, int(rng.integers(2_000, 80_000)), shape, shape, stream=int(rng.integers(7, 9)))
        for name in names:
            main.kernel(name, ADD, 5_000, shape, shape)
        main.do(Synchronize(), End(), Work(5_000))
    trace = recorded(Program({"main": tuple(main.actions)}))
    base = after(trace)
    before = base.timeline.step_s
    for count in range(1, len(names) + 1):
        step = after(trace, *(Drop(name) for name in names[:count])).timeline.step_s
        assert (step <= before + 1e-12).all()
        before = step


def test_joint_savings_of_host_bound_edits_add_up() -> None:
    """Where the host sets the step and edits touch different launches, what they save together is the sum of what each saves alone."""
    edits = [Fuse("aten::addmm > aten::gelu"), Fuse("aten::addmm > aten::add"), Drop("aten::_softmax")]
    study = rewrites(Scenario(sample("synthetic_launch_bound")), edits, propose=False)
    assert [s.why for s in study.savings] == [""] * 3
    own = sum(s.own_s for s in study.savings)
    assert study.base_step_s - study.joint_step_s == pytest.approx(own, rel=0.01)
    assert sum(s.joint_s for s in study.savings) == pytest.approx(study.base_step_s - study.joint_step_s, rel=1e-9)


def test_a_study_names_what_gives_most_and_what_hurts() -> None:
    study = rewrites(Scenario(sample("synthetic_launch_bound")), ["split:aten::gelu=2", "fuse:aten::add > aten::item"], limit=5)
    assert study.savings[0].edit == Capture()
    assert study.enough == 1
    loss = next(s for s in study.savings if s.edit == Split("aten::gelu", 2))
    assert loss.own_s < 0
    assert loss.why == "costs"
    assert [text for text, _ in study.refused] == ["fuse:aten::add > aten::item"]
    assert study.joint_step_s < study.base_step_s


def test_cards_price_edited_operators_as_any_other() -> None:
    """On a card the fused chain is one operator of the ordinary estimate, with one launch instead of two."""
    trace = sample("synthetic_ddp")
    scenario = replace(Scenario(trace), npu=load_npu("ascend-910b2"), anchored=False)
    base, fused = predict(scenario), predict(scenario.with_({"rewrites": (Fuse("aten::add > aten::native_layer_norm"),)}))
    row = fused.table.name.index("aten::add + aten::native_layer_norm")
    alone = [base.table.name.index(name) for name in ("aten::add", "aten::native_layer_norm")]
    assert fused.op_seconds[row] < base.op_seconds[alone].sum()
