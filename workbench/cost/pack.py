"""Cards as arrays: what the models read of a spec, packed once a card and dtype."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from workbench.cost import kernels
from workbench.cost.cost import LEVELS
from workbench.cost.pack_matrix import check_smallest, columns, common_columns, dtype_columns, levels, through_rate
from workbench.cost.pack_matrix import room as room_of
from workbench.cost.pack_vector import Side, vector_side
from workbench.cost.sustained import OUTER, STREAM, compute_share, outer_share
from workbench.hardware.parts import Calibration
from workbench.hardware.spec import NpuSpec
from workbench.operators.table import ITEMSIZE, Dtype

SUBSTITUTES: dict[str, tuple[str, ...]] = {
    "tf32": ("tf32", "fp32"),
    "fp16": ("fp16", "bf16", "fp32"),
    "bf16": ("bf16", "fp16", "fp32"),
    "fp8": ("fp8", "fp16", "bf16", "fp32"),
    "int8": ("int8", "fp16", "bf16", "fp32"),
    "uint8": ("int8", "fp16", "bf16", "fp32"),
    "int4": ("int4", "int8", "fp16", "bf16", "fp32"),
    "int8_wo": ("fp16", "bf16", "fp32"),
    "int4_wo": ("fp16", "bf16", "fp32"),
    "fp32": ("fp32",),
    "fp64": ("fp64",),
    "unknown": ("fp32",),
}
"""What a matrix product runs as where a card lacks its dtype, best first; ``fp32`` may run on the vector unit."""
WEIGHT_ONLY = ("int8_wo", "int4_wo")
"""Types whose products are those of the activations by design: weights are widened on their way to the matrix unit, beside its work."""

STREAM_GROUPS = frozenset(("elementwise", "softmax", "norm", "reduction", "copy"))
"""Kinds by whose errors a fit shows that streams took part in it."""
PER_CARD = ("cores", "shared_rate", "softmax_rate", "special_rate", "latency", "row_room", "host_rate", "host_latency")
"""Fields of `Cards` that hold one number a card."""
WARPS = 64.0  # warps that share a GPU core's registers


@dataclass(frozen=True)
class Cards:
    """S packed cards. ``matrix`` [S, D, kernels.SIZE or more] has one row a dtype of ``dtypes``; the rest is what vector models read."""

    specs: tuple[NpuSpec, ...]
    dtypes: tuple[str, ...]  # D
    runs_as: tuple[tuple[str, ...], ...]  # [S][D]: the dtype a product runs as, "" where it cannot run
    matrix: np.ndarray
    vector_rate: np.ndarray  # [S, D] vector operations a second [1/s]
    cores: np.ndarray  # [S]
    softmax_rate: np.ndarray  # [S] fp32 vector operations a second [1/s]
    special_rate: np.ndarray  # [S] special functions a second [1/s]
    memory_rate: np.ndarray  # [S, D] sustained outermost bandwidth [B/s]
    shared_rate: np.ndarray  # [S] sustained bandwidth of the shared level, or of one on the way there [B/s]
    launch: np.ndarray  # [S, D] overhead of a kernel [s]
    latency: np.ndarray  # [S] outermost plus shared latency [s]
    row_room: np.ndarray  # [S] longest row a kernel holds while it works on it [B]
    host_rate: np.ndarray  # [S] [B/s], nan where not described
    host_latency: np.ndarray  # [S] [s]
    side: Side  # [S] the rest of the vector side

    @property
    def levels(self) -> int:
        """Slots of bytes by level: those of `LEVELS`, and of each further level between cores and the shared one."""
        return len(LEVELS) + (self.matrix.shape[2] - kernels.SIZE) // kernels.MIDDLE_SIZE

    @property
    def mac_rate(self) -> np.ndarray:
        """Peak multiply-adds a second of the unit that runs products of each dtype, float64 [S, D] [1/s]."""
        return self.matrix[..., kernels.CORES] * self.matrix[..., kernels.CLOCK] * self.matrix[..., kernels.MACS]


def pack(specs: Sequence[NpuSpec], dtypes: Sequence[str]) -> Cards:
    """Pack cards for the models.

    Parameters
    ----------
    specs : sequence of NpuSpec, length S
    dtypes : sequence of str, length D
        Dtype names that occur in the workload.

    Returns
    -------
    Cards

    Raises
    ------
    InvalidSpec
        A level too small for a single tile, see `check_smallest`, or a cluster's level without one that clusters share.
    """
    size = (len(specs), len(dtypes))
    width = columns(specs)
    matrix = np.zeros((*size, width))
    vector, memory, launch = np.zeros(size), np.zeros(size), np.zeros(size)
    per_card = {field: np.zeros(len(specs)) for field in PER_CARD}
    runs_as = []
    for s, spec in enumerate(specs):
        names = []
        common, rest = _common(spec, width)
        for field, value in rest.items():
            per_card[field][s] = value
        for d, dtype in enumerate(dtypes):
            name = resolve(spec, dtype)
            names.append(name)
            scalars = calibration(spec, name or dtype)
            matrix[s, d] = dtype_columns(spec, name, common, scalars)
            if name:
                check_smallest(spec, name, ITEMSIZE[Dtype[name.upper()]], matrix[s, d])
            vector[s, d] = vector_rate(spec, dtype)
            memory[s, d] = spec.bandwidth(list(spec.memory)[-1]) * min(1.0, scalars[1] * STREAM / OUTER)
            launch[s, d] = stream_launch(spec, name or dtype)
        runs_as.append(tuple(names))
    return Cards(
        tuple(specs),
        tuple(dtypes),
        tuple(runs_as),
        matrix=matrix,
        vector_rate=vector,
        memory_rate=memory,
        launch=launch,
        side=vector_side(specs),
        **per_card,
    )


def dtype_name(code: int) -> str:
    """Return the dtype's name as spec files spell it."""
    return Dtype(code).name.lower()


def resolve(spec: NpuSpec, dtype: str) -> str:
    """Return the dtype a matrix product runs as on a card: itself, a stated substitute, or "" where nothing fits."""
    for name in SUBSTITUTES.get(dtype, ("fp32",)):
        if name in spec.matrix.rate or (name in ("fp32", "fp64") and name in spec.vector.rate):
            return name
    return ""


def vector_rate(spec: NpuSpec, dtype: str) -> float:
    """Return vector operations a second [1/s]; a dtype without a rate is worked on as fp32 (integers: int32, else fp32)."""
    rates = spec.vector.rate
    chain = (dtype, "int32", "fp32") if dtype.startswith(("int", "uint", "bool")) else (dtype, "fp32")
    rate = next((rates[name] for name in chain if name in rates), max(rates.values(), default=1.0))
    return spec.cores * spec.vector.lanes * rate * spec.clock


def calibration(spec: NpuSpec, dtype: str) -> tuple[float, float, float, float]:
    """Return compute efficiency, memory efficiency, kernel overhead [s] and error of a dtype; nan error where nothing was fitted.

    A dtype without its own fit takes that of its nearest relative on the same card (fp16 <-> bf16, tf32 and 8-bit from them).
    """
    found = fit_of(spec, dtype)
    if found is not None:
        return found.compute, found.memory, found.launch, found.error
    return compute_share(spec), outer_share(spec), spec.runtime.launch_overhead, math.nan


def fit_of(spec: NpuSpec, dtype: str) -> Calibration | None:
    """Return the fit that prices a dtype: its own, else its nearest relative's, else None."""
    for name in (dtype, *{"bf16": ("fp16",), "fp16": ("bf16",)}.get(dtype, ("bf16", "fp16"))):
        found = spec.calibration.get(name)
        if found is not None and (name == dtype or dtype not in ("fp32", "fp64")):
            return found
    return None


def stream_launch(spec: NpuSpec, dtype: str) -> float:
    """Return the overhead of a kernel that only streams [s]: the fitted one, but where it says that no stream was among what was
    fitted at most the runtime's, because a fit of products alone holds what only they begin and end with.
    """
    found = fit_of(spec, dtype)
    if found is None or not found.errors or STREAM_GROUPS & set(found.errors):
        return spec.runtime.launch_overhead if found is None else found.launch
    return min(found.launch, spec.runtime.launch_overhead)


def _common(spec: NpuSpec, width: int) -> tuple[np.ndarray, dict[str, float]]:
    """Return the dtype-independent columns of ``matrix`` and what `Cards` keeps of a card, by field."""
    card, staging, outer = common_columns(spec, width), levels(spec)[0], levels(spec)[2]
    host = spec.host
    room = spec.memory[spec.vector.buffer].size if spec.vector.buffer else room_of(spec, staging, False)
    if spec.matrix.dataflow == "dot":  # a row is held by one warp: its share of the registers
        room /= WARPS
    return card, {
        "cores": spec.cores,
        "shared_rate": through_rate(spec),
        "softmax_rate": vector_rate(spec, "fp32"),
        "special_rate": spec.vector.special * spec.cores * spec.clock,
        "latency": card[kernels.LATENCY_SHARED] + spec.memory[outer].latency,
        "row_room": room,
        "host_rate": host.bandwidth if host else math.nan,
        "host_latency": host.latency if host else 0.0,
    }
