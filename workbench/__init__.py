"""NPU Workbench: from a real training trace to the predicted step on a card that does not exist.

The verbs a notebook needs, each loaded on first use::

    from workbench import Scenario, linspace, load_npu, open_trace, predict, sweep

    base = Scenario(open_trace("step.json.gz"), npu=load_npu("npu-x"))
    predict(base).step_time_s
    sweep(base, {"npu.memory.hbm.bandwidth": linspace("0.8 TB/s", "6.4 TB/s", 15)})
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING

__version__ = "0.1.0"

if TYPE_CHECKING:
    from workbench.cost.vendor import read_vendor
    from workbench.errors import InvalidSpec, Note, Refused, UnreadableInput, WorkbenchError
    from workbench.graph.rewrite_batch import ScaleBatch
    from workbench.graph.rewrite_capture import Capture
    from workbench.graph.rewrite_drop import Drop, Split
    from workbench.graph.rewrite_fuse import Fuse
    from workbench.graph.rewrite_move import Move, Overlap
    from workbench.graph.rewrite_retype import Retype
    from workbench.hardware.cluster_text import load_cluster
    from workbench.hardware.host import load_host
    from workbench.hardware.npu import catalogue, load_npu
    from workbench.models.describe import list_models, load_model
    from workbench.network.compression import Codec
    from workbench.scale.plan import ParallelPlan
    from workbench.scale.plan_text import parse_plan
    from workbench.study.axes import linspace, logspace, tied
    from workbench.study.chakra import write_chakra
    from workbench.study.collective import collectives
    from workbench.study.compare import compare
    from workbench.study.compare_traces import compare_traces
    from workbench.study.dataset import changes_at, ratio
    from workbench.study.estimates import estimate
    from workbench.study.export import export
    from workbench.study.inspect import inspect
    from workbench.study.operator_times import price_operators
    from workbench.study.operators_csv import list_operators, read_operators
    from workbench.study.perfetto import write_perfetto
    from workbench.study.plan_inference import infer
    from workbench.study.plan_scaling import plan_scaling
    from workbench.study.plan_search import search_plans
    from workbench.study.plan_step import plan_step
    from workbench.study.predict import predict
    from workbench.study.rewrites import rewrites
    from workbench.study.scale_out import scale_out
    from workbench.study.scenario import Scenario
    from workbench.study.stacks import stacks
    from workbench.study.sweep import sweep
    from workbench.study.tables import lag_table, operator_table
    from workbench.trace.facts import facts
    from workbench.trace.open import open_trace
    from workbench.view.efficiency import efficiency_curve
    from workbench.view.pipeline import pipeline
    from workbench.view.roofline import roofline
    from workbench.view.stack import stack_bars
    from workbench.view.sweep import sweep_curve
    from workbench.view.timeline import timeline

_HOMES = {
    "open_trace": "trace.open",
    "facts": "trace.facts",
    "catalogue": "hardware.npu",
    "load_npu": "hardware.npu",
    "load_host": "hardware.host",
    "read_vendor": "cost.vendor",
    "Scenario": "study.scenario",
    "predict": "study.predict",
    "compare": "study.compare",
    "compare_traces": "study.compare_traces",
    "sweep": "study.sweep",
    "stacks": "study.stacks",
    "linspace": "study.axes",
    "logspace": "study.axes",
    "tied": "study.axes",
    "changes_at": "study.dataset",
    "estimate": "study.estimates",
    "export": "study.export",
    "ratio": "study.dataset",
    "list_operators": "study.operators_csv",
    "read_operators": "study.operators_csv",
    "price_operators": "study.operator_times",
    "operator_table": "study.tables",
    "lag_table": "study.tables",
    "stragglers": "study.ranks",
    "inspect": "study.inspect",
    "links": "study.ranks",
    "write_perfetto": "study.perfetto",
    "write_chakra": "study.chakra",
    "timeline": "view.timeline",
    "pipeline": "view.pipeline",
    "roofline": "view.roofline",
    "stack_bars": "view.stack",
    "sweep_curve": "view.sweep",
    "rewrites": "study.rewrites",
    "scale_out": "study.scale_out",
    "plan_step": "study.plan_step",
    "search_plans": "study.plan_search",
    "plan_scaling": "study.plan_scaling",
    "infer": "study.plan_inference",
    "load_model": "models.describe",
    "list_models": "models.describe",
    "load_cluster": "hardware.cluster_text",
    "collectives": "study.collective",
    "ParallelPlan": "scale.plan",
    "parse_plan": "scale.plan_text",
    "efficiency_curve": "view.efficiency",
    "Codec": "network.compression",
    "Fuse": "graph.rewrite_fuse",
    "Drop": "graph.rewrite_drop",
    "Split": "graph.rewrite_drop",
    "Retype": "graph.rewrite_retype",
    "Move": "graph.rewrite_move",
    "Overlap": "graph.rewrite_move",
    "Capture": "graph.rewrite_capture",
    "ScaleBatch": "graph.rewrite_batch",
    "WorkbenchError": "errors",
    "UnreadableInput": "errors",
    "InvalidSpec": "errors",
    "Refused": "errors",
    "Note": "errors",
}

__all__ = [
    "Capture",
    "Codec",
    "Drop",
    "Fuse",
    "InvalidSpec",
    "Move",
    "Note",
    "Overlap",
    "ParallelPlan",
    "Refused",
    "Retype",
    "ScaleBatch",
    "Scenario",
    "Split",
    "UnreadableInput",
    "WorkbenchError",
    "__version__",
    "catalogue",
    "changes_at",
    "collectives",
    "compare",
    "compare_traces",
    "efficiency_curve",
    "estimate",
    "export",
    "facts",
    "infer",
    "inspect",
    "lag_table",
    "links",
    "linspace",
    "list_models",
    "list_operators",
    "load_cluster",
    "load_host",
    "load_model",
    "load_npu",
    "logspace",
    "open_trace",
    "operator_table",
    "parse_plan",
    "pipeline",
    "plan_scaling",
    "plan_step",
    "predict",
    "price_operators",
    "ratio",
    "read_operators",
    "read_vendor",
    "rewrites",
    "roofline",
    "scale_out",
    "search_plans",
    "stack_bars",
    "stacks",
    "stragglers",
    "sweep",
    "sweep_curve",
    "tied",
    "timeline",
    "write_chakra",
    "write_perfetto",
]  # fmt: skip


def __getattr__(name: str) -> object:
    """Load a verb on first use, so that ``import workbench`` stays cheap."""
    home = _HOMES.get(name)
    if home is None:
        raise AttributeError(f"module 'workbench' has no attribute {name!r}")
    value = getattr(importlib.import_module(f"workbench.{home}"), name)
    if not isinstance(value, type) and callable(value):
        from workbench.arguments import checked

        value = checked(value)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(__all__)
