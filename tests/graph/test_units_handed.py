"""Priced units of the handed recordings: coverage, laws, and work known from the literature."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from tests.graph.recording import laws
from workbench.graph.units import price_units
from workbench.operators.table import Kind
from workbench.trace.open import open_trace

TRACES = (
    "megatron_a100_tp8/kineto_rank0.json.gz",
    "a100_ddp_six_steps.json.gz",
    "v100_resnet50_2021.json.gz",
    "mi300x_compiled_triton.json.gz",
    "mi300x_llm_graph_decode.json.gz",
    "pairs/bert_small_h100.json.gz",
    "pairs/bert_small_mi300x.json.gz",
    "pairs/qwen_0.5b_h100.json.gz",
    "pairs/qwen_0.5b_mi300x.json.gz",
    "pairs/owlv2_mi300x.json.gz",
    "cpu_only.json.gz",
)


@pytest.mark.parametrize("name", TRACES)
def test_nine_tenths_of_shaped_time_have_a_formula(shared: Path, name: str) -> None:
    """The issue's measure on the handed traces; and no row but transform convolutions implies more than any card has."""
    trace = open_trace(str(shared / "traces" / name))
    table, op, unit, share = price_units(trace)
    laws(trace, table, op, unit, share)
    seconds, formula = table.measured_s * table.count, table.kind != Kind.UNKNOWN
    assert seconds[formula & table.has_shapes].sum() >= 0.9 * seconds[table.has_shapes].sum()
    direct = np.array(["transform" not in s for s in table.signature]) & (table.measured_s > 0)
    assert (table.flops[direct] < 2.0e15 * table.measured_s[direct]).all()
    long = direct & (seconds > 1e-3 * seconds.sum())
    assert ((table.bytes_read + table.bytes_written)[long] < 1.2e13 * table.measured_s[long]).all()


def test_resnet50_adds_up_to_the_published_work(shared: Path) -> None:
    """Six training steps of ResNet-50 at batch 32: 4.09 GMAC an image forward without the classifier's 2 MMAC (He et al.; torchvision),
    the same for weight gradients, and for data gradients all but the first convolution's 118 MMAC."""
    table, *_ = price_units(open_trace(str(shared / "traces/v100_resnet50_2021.json.gz")))
    done = {
        kind: float((table.flops * table.count)[table.kind == kind].sum()) / (2 * 32 * 6)
        for kind in (Kind.CONV_FORWARD, Kind.CONV_BACKWARD_WEIGHT, Kind.CONV_BACKWARD_DATA)
    }
    assert done[Kind.CONV_FORWARD] == pytest.approx(4.087e9, rel=1e-3)
    assert done[Kind.CONV_BACKWARD_WEIGHT] == pytest.approx(4.087e9, rel=1e-3)
    assert done[Kind.CONV_BACKWARD_DATA] == pytest.approx(4.087e9 - 0.118e9, rel=1e-3)
