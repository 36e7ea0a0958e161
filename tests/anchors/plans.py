"""Steps of published training runs, predicted from the description of model, card, cluster and plan; nothing fitted unless said.

A configuration lies in the fitting half or the held half by the hash of its own numbers. The only scalars that are fitted: the host's
time to launch an operator and the factor on operators that are no matrix products; what is reported with them is of the held half.
"""

from __future__ import annotations

import csv
import hashlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from workbench.hardware.cluster import ClusterSpec
from workbench.hardware.cluster_text import load_cluster, load_library
from workbench.hardware.npu import load_npu
from workbench.hardware.spec import NpuSpec
from workbench.models.describe import BlockSpec, ModelSpec, gpt, layer
from workbench.operators.blocks import Model
from workbench.operators.table import Dtype
from workbench.scale.memory import ADAM
from workbench.scale.plan import ParallelPlan
from workbench.study.plan_assemble import assemble
from workbench.study.plan_price import enough, price
from workbench.study.plan_system import IDEAL, System

HOST_S = (0.0, 2e-5, 3e-5, 4e-5, 5e-5, 5.5e-5, 6e-5, 6.5e-5, 7e-5, 8e-5, 1e-4)
VECTOR = (1.0, 1.1, 1.2, 1.3)
MPT = {"125m": (768, 12, 12), "350m": (1024, 24, 16), "760m": (1536, 24, 12), "1b": (2048, 24, 16), "3b": (2560, 32, 20),
       "7b": (4096, 32, 32), "13b": (5120, 40, 40), "30b": (7168, 48, 56), "70b": (8192, 80, 64)}  # fmt: skip
"""Width, layers, heads: MosaicML, llm-foundry, scripts/train/yamls/pretrain/mpt-*.yaml."""


@dataclass(frozen=True)
class Run:
    """One published run."""

    name: str
    model: Model
    plan: ParallelPlan
    npu: NpuSpec
    cluster: ClusterSpec
    measured_s: float
    fitting: bool

    @property
    def flops(self) -> float:
        """Model FLOPs of a step on one card [FLOP]."""
        return 3.0 * self.model.model_flops * self.plan.dp * self.plan.microbatches / self.plan.world


def rows(shared: Path, name: str) -> Iterator[tuple[dict[str, str], bool]]:
    """Yield rows of a file, and whether they lie in the fitting half."""
    with (shared / "measured" / "cluster" / f"{name}.csv").open() as file:
        for row in csv.DictReader(file):
            own = repr(sorted((k, v) for k, v in row.items() if k not in ("iteration_ms", "iteration_s")))
            yield row, int(hashlib.sha256(own.encode()).hexdigest(), 16) % 2 == 1


def vtrain(shared: Path, name: str) -> list[Run]:
    """Megatron-DeepSpeed on A100, all recomputed; nodes of four 200 Gb/s ports (Bang et al., vTrain, arXiv 2312.12391, section V)."""
    rate = {f"tiers.{tier}.bandwidth_per_direction": "100 Gb/s" for tier in ("unit", "pod")}
    cluster, npu = load_cluster("dgx-a100").with_(rate), load_npu("a100-sxm4-80gb")
    out = []
    for row, fitting in rows(shared, name):
        n = {key: int(row[key]) for key in row if key not in ("params_b", "iteration_ms")}
        spec = gpt(n["layers"], n["hidden"], n["heads"], 51_200, n["seq"])
        plan = ParallelPlan(tp=n["tp"], pp=n["pp"], dp=n["dp"], microbatch=n["micro_batch"], recompute="full", bucket_bytes=5e8,
                            microbatches=n["global_batch"] // n["micro_batch"] // n["dp"])  # fmt: skip
        model = spec.build(plan.microbatch, attention="unfused", dtype=Dtype.FP16)
        label = f"{n['hidden']} x {n['layers']} tp {plan.tp} pp {plan.pp} dp {plan.dp} mb {plan.microbatch}"
        out.append(Run(label, model, plan, npu, cluster, float(row["iteration_ms"]) / 1e3, fitting))
    return out


def korthikanti(shared: Path) -> list[Run]:
    """Megatron-LM on Selene (arXiv 2205.05198, table 5): none of these rows was fitted to."""
    out = []
    for row, _ in rows(shared, "megatron_korthikanti_table5"):
        n = {key: int(row[key]) for key in row if key not in ("model", "recompute", "iteration_s")}
        chosen, v = row["recompute"] == "seqsel", n["interleave"]
        plan = ParallelPlan(tp=n["tp"], pp=n["pp"], dp=n["dp"], microbatch=n["micro_batch"], virtual_stages=v, sequence_parallel=chosen,
                            microbatches=n["global_batch"] // n["micro_batch"] // n["dp"], recompute="selective" if chosen else "full",
                            schedule="interleaved" if v > 1 else "1f1b")  # fmt: skip
        spec = gpt(n["layers"], n["hidden"], n["heads"], n["vocab"], n["seq"])
        model = spec.build(plan.microbatch, attention="unfused", dtype=Dtype.FP16)
        label, npu = f"{row['model']} {row['recompute']}", load_npu("a100-sxm4-80gb")
        out.append(Run(label, model, plan, npu, load_cluster("dgx-a100"), float(row["iteration_s"]), False))
    return out


def foundry(shared: Path) -> list[Run]:
    """MPT by FSDP on A100 (llm-foundry, scripts/train/benchmarking): flash attention, bf16."""
    out = []
    for row, fitting in rows(shared, "llmfoundry_fsdp"):
        width, layers, heads = MPT[row["model"]]
        tokens, mb = int(row["seq"]), int(row["micro_batch"])
        block = (layer("norm"), layer("attention", heads=heads), layer("residual"), layer("norm"), layer("mlp", width=4 * width),
                 layer("residual"))  # fmt: skip
        parts = (
            BlockSpec("embedding", (layer("embedding", vocab=50_368, positions=tokens, tied=True),), layer=False),
            BlockSpec("layer", block, layers),
            BlockSpec("head", (layer("norm"), layer("head", vocab=50_368, tied=True)), layer=False),
        )
        spec = ModelSpec(row["model"], parts, "tokens", width, tokens)
        plan = ParallelPlan(dp=int(row["gpus"]), microbatch=mb, microbatches=int(row["grad_accum"]), zero=3,
                            recompute="full" if row["act_ckpt"] == "True" else "none")  # fmt: skip
        card = "a100-sxm4-40gb" if row["gpu"] == "a100_40gb" else "a100-sxm4-80gb"
        label = f"{row['model']} {tokens} x {mb} on {plan.dp}"
        out.append(Run(label, spec.build(mb), plan, load_npu(card), load_cluster("dgx-a100"), float(row["iteration_s"]), fitting))
    return out


def predicted(runs: list[Run], system: System = IDEAL, textbook: bool = False) -> np.ndarray:
    """Return the step of every run [s]; ``textbook``: messages by algorithms alone, no library's protocols, no launches."""
    out = np.zeros(len(runs))
    groups: dict[tuple[str, str], list[int]] = {}
    for i, run in enumerate(runs):
        groups.setdefault((run.npu.name, run.cluster.digest), []).append(i)
    for members in groups.values():
        first = runs[members[0]]
        base = replace(first.cluster, library=load_library("ideal")) if textbook else first.cluster
        large = enough(base, max(runs[i].plan.world for i in members))
        priced = price([(runs[i].model, runs[i].plan) for i in members], first.npu, large, system)
        for i, one in zip(members, priced, strict=True):
            run = runs[i]
            step = assemble(run.model, run.npu, large, run.plan, one, system=system, state=ADAM, gradient_bytes=2.0)
            out[i] = step.step_s
    return out


def fitted(runs: list[Run], most: int = 120) -> System:
    """Return the system whose two scalars suit the fitting half best, by mean absolute error over a grid."""
    half = [run for run in runs if run.fitting]
    half = half[:: max(1, len(half) // most)]
    measured = np.array([run.measured_s for run in half])

    def error(host_s: float, vector: float) -> float:
        return float(np.abs(predicted(half, System("fitted", vector=vector, host_s=host_s)) / measured - 1).mean())

    host = min(HOST_S, key=lambda value: error(value, 1.0))
    vector = min(VECTOR, key=lambda value: error(host, value))
    return System("fitted", vector=vector, host_s=host)


def constant_mfu(runs: list[Run], fit_on: list[Run]) -> np.ndarray:
    """Return steps at the median use of the peak of the fitting half [s]."""
    peak: Callable[[Run], float] = lambda run: run.npu.peak_flops(run.model.dtype.name.lower())  # noqa: E731
    use = float(np.median([run.flops / run.measured_s / peak(run) for run in fit_on]))
    return np.array([run.flops / peak(run) / use for run in runs])


def score(runs: list[Run], steps: np.ndarray) -> tuple[float, float, float, float]:
    """Return mean and median of |predicted / measured - 1|, its 90th percentile, and the mean with sign [%]."""
    error = 100.0 * (steps / np.array([run.measured_s for run in runs]) - 1.0)
    size = np.abs(error)
    return float(size.mean()), float(np.median(size)), float(np.percentile(size, 90)), float(error.mean())
