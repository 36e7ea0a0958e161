"""Profiles written from known busy fractions, in the formats that CANN and Nsight Compute document."""

from __future__ import annotations

from collections.abc import Sequence

from workbench.cost.cost import Bound
from workbench.cost.estimate import estimate
from workbench.hardware.spec import NpuSpec
from workbench.operators.table import Kind
from workbench.study.operators_csv import list_operators

OPS = (
    {"op": "MatMulV3", "dtype": "fp16", "M": 4096, "N": 4096, "K": 4096},
    {"op": "MatMulV3", "dtype": "fp16", "M": 16, "N": 8192, "K": 8192},
    {"op": "SoftmaxV2", "dtype": "fp16", "rows": 65536, "cols": 2048},
    {"op": "RmsNorm", "dtype": "fp16", "rows": 16384, "cols": 4096},
    {"op": "Add", "dtype": "fp16", "elements": 2**26},
)
"""Bound by the matrix unit, by memory, and by what streams; as a profiler names them."""
ASCEND = ("Op Name", "OP Type", "Task Duration(us)", "Block Dim", "Input Shapes", "Input Data Types", "Output Shapes", "aicore_time(us)",
          "aic_mac_ratio", "aic_mte1_ratio", "aic_mte2_ratio", "aic_fixpipe_ratio", "aiv_time(us)", "aiv_vec_ratio", "aiv_scalar_ratio",
          "aiv_mte2_ratio", "aiv_mte3_ratio")  # fmt: skip


def fractions(spec: NpuSpec) -> list[tuple[float, dict[str, float]]]:
    """Return seconds and busy fractions of the model for `OPS`."""
    table = list_operators(OPS).table
    cost = estimate(table, [spec])
    out = []
    for u in range(len(table)):
        busy = {bound.name.lower(): float(cost.resource_s[u, 0, bound] / cost.seconds[u, 0]) for bound in Bound}
        out.append((float(cost.seconds[u, 0]), busy))
    return out


def shapes(op: dict) -> tuple[str, str]:
    if "M" in op:
        return f"{op['M']},{op['K']};{op['K']},{op['N']}", f"{op['M']},{op['N']}"
    if "rows" in op:
        return (f"{op['rows']},{op['cols']}",) * 2
    return f"{op['elements']};{op['elements']}", f"{op['elements']}"


def ascend(rows: Sequence[tuple[float, dict[str, float]]], core_share: float = 1.0) -> str:
    """Write ``op_summary.csv``; a core works ``core_share`` of the duration, its ratios are of its own time."""
    lines = [",".join(ASCEND)]
    for at, (op, (seconds, busy)) in enumerate(zip(OPS, rows, strict=True)):
        inputs, output = shapes(op)
        cube = "M" in op
        outside = max(busy["shared"], busy["memory"]) / core_share
        aic = [busy["matrix"] / core_share, busy["local"] / core_share, outside, 0.0] if cube else [0.0] * 4
        aiv = [0.0] * 4 if cube else [busy["vector"] / core_share, 0.05, outside, outside]
        core = 1e6 * seconds * core_share
        named = [f"{op['op']}_{at}", op["op"], 1e6 * seconds, 24, f'"{inputs}"', "FLOAT16;FLOAT16", f'"{output}"']
        cells = [*named, core if cube else 0, *aic, 0 if cube else core, *aiv]
        lines.append(",".join(map(str, cells)))
    return "\n".join(lines) + "\n"


KERNELS = {
    Kind.GEMM: "sm80_xmma_gemm_f16f16_f16f32_f32_tn_n_tilesize128x128x32",
    Kind.SOFTMAX: "cunn_SoftMaxForward<8, c10::Half>",
    Kind.NORM: "vectorized_layer_norm_kernel<c10::Half>",
    Kind.ELEMENTWISE: "vectorized_elementwise_kernel<4, CUDAFunctor_add<c10::Half>>",
}
RAW = ("gpu__time_duration.sum", "sm__throughput.avg.pct_of_peak_sustained_elapsed",
       "sm__pipe_tensor_cycles_active.avg.pct_of_peak_sustained_active",
       "sm__inst_executed_pipe_fma.avg.pct_of_peak_sustained_active",
       "lts__throughput.avg.pct_of_peak_sustained_elapsed",
       "dram__throughput.avg.pct_of_peak_sustained_elapsed", "dram__bytes.sum", "dram__bytes_read.sum")  # fmt: skip


def nsight(rows: Sequence[tuple[float, dict[str, float]]]) -> str:
    """Write what ``ncu --csv --page raw`` prints: quoted cells, a row of units, thousands grouped."""
    lines = [
        "==PROF== Disconnected from process 1",
        ",".join(f'"{name}"' for name in ("ID", "Kernel Name", "Block Size", "Grid Size", *RAW)),
    ]
    lines.append(",".join(f'"{unit}"' for unit in ("", "", "", "", "us", "%", "%", "%", "%", "%", "Mbyte", "Mbyte")))
    kinds = list_operators(OPS).table.kind.tolist()
    for at, (kind, (seconds, busy)) in enumerate(zip(kinds, rows, strict=True)):
        percent = [100 * busy[name] for name in ("matrix", "vector", "shared", "memory")]
        cells = [
            at,
            KERNELS[Kind(kind)],
            "(128, 1, 1)",
            "(256, 1, 1)",
            f"{1e6 * seconds:,.3f}",
            max(percent[:2]),
            *percent,
            f"{1234.5:,.1f}",
            1000.0,
        ]
        lines.append(",".join(f'"{cell}"' for cell in cells))
    return "\n".join(lines) + "\n"


def nsight_details(rows: Sequence[tuple[float, dict[str, float]]]) -> str:
    """Write what ``ncu --csv`` prints: a row a metric."""
    lines = ['"ID","Kernel Name","Section Name","Metric Name","Metric Unit","Metric Value"']
    kinds = list_operators(OPS).table.kind.tolist()
    for at, (kind, (seconds, busy)) in enumerate(zip(kinds, rows, strict=True)):
        found = {"Duration": ("usecond", f"{1e6 * seconds:,.3f}"),
                 "Compute (SM) Throughput": ("%", 100 * max(busy["matrix"], busy["vector"])),
                 "DRAM Throughput": ("%", 100 * busy["memory"]), "L2 Cache Throughput": ("%", 100 * busy["shared"]),
                 "Memory Throughput": ("%", 1), "SM Frequency": ("Ghz", 1.1)}  # fmt: skip
        for metric, (unit, value) in found.items():
            cells = (at, KERNELS[Kind(kind)], "GPU Speed Of Light Throughput", metric, unit, value)
            lines.append(",".join(f'"{cell}"' for cell in cells))
        lines.append(f'"{at}","{KERNELS[Kind(kind)]}","Occupancy","","",""')
    return "\n".join(lines) + "\n"


def operators_csv() -> str:
    """Write `OPS` as a table of operators, one a kernel in the order of the launches."""
    names = ("op", "dtype", "M", "N", "K", "rows", "cols", "elements")
    return "\n".join([",".join(names), *(",".join(str(op.get(name, "")) for name in names) for op in OPS)]) + "\n"
