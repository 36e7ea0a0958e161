"""Framework operator or kernel name plus arguments -> kind, by the rules of rules.yaml."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from importlib import resources
from types import MappingProxyType
from typing import Any

import yaml

from workbench.operators import describe_attention, describe_matrix, describe_memory, describe_tables
from workbench.operators.call import Call
from workbench.operators.describe_matrix import Rule
from workbench.operators.described import Described, Ran
from workbench.operators.table import Dtype, Kind

_ROOMS = (describe_matrix, describe_attention, describe_memory, describe_tables)
RULES: Mapping[str, Rule] = MappingProxyType({name: rule for room in _ROOMS for name, rule in room.RULES.items()})
"""All rules by the name rules.yaml uses."""

_KERNEL_DTYPES = tuple(
    (re.compile(pattern), dtype)
    for pattern, dtype in (
        # products first: what the matrix unit multiplied
        (r"tf32|[st]1688gemm(?!_fp16|_bf16)|xf32|nvjet_s", Dtype.TF32),
        (r"(?i)e4m3|e5m2|float8|fp8|_F8|_B8|nvjet_qq", Dtype.FP8),
        (r"(?i)bfloat16|bf16|__nv_bfloat|_BBS|_BSS|_B_BS|nvjet_t", Dtype.BF16),
        (r"(?i)c10::half|__half|half2|_HHS|_HSS|_H_HS|hgemm|h884|fp16|f16f16|_f16|Half\b|nvjet_h", Dtype.FP16),
        (r"(?i)i8i8|igemm|imma|int8|_I8", Dtype.INT8),
        (r"(?i)dgemm|<double|\bdouble\b|_DB_", Dtype.FP64),
        (r"(?i)sgemm|<float|\bfloat\b|_float\b|fp32|f32|_SB_|_S_SB", Dtype.FP32),
        (r"(?i)<long|\blong\b|int64", Dtype.INT64),
        (r"<int|\bint32", Dtype.INT32),
        (r"<bool|\bbool\b", Dtype.BOOL),
    )
)
_FP16_PRODUCT = re.compile(r"fp16_[st](1688|16816|884|161616)gemm|(?<!b)f16f16_|_HHS|hss|[st]1688gemm_f16")
_FP16_ACCUMULATE = re.compile(r"(?<![a-z])h(884|1688|16816|161616)gemm|f16f16_f16f16_f16|hgemm")
_TRANSFORM = re.compile(r"(?i)winograd|_fft|fft_|flip_filter|gcgemm")
_OPAQUE = re.compile(r"OpaqueType<(\d+)")
_TO_DEVICE = re.compile(r"(?i)HtoD|Host ?-> ?Device|CopyHostToDevice|Pageable -> Device|Pinned -> Device")
_FROM_DEVICE = re.compile(r"(?i)DtoH|Device ?-> ?Host|CopyDeviceToHost|Device -> Pageable|Device -> Pinned")
_BARE = re.compile(r"aten::(?:_foreach_)?(\w+?)(_?)(?:\.\w+)?$")
_LARGEST = 2**62
TRANSPARENT, BEARING, BLIND, SHAPED, STUCK = 0, 1, 2, 3, 4
"""What an operator can be: of no account; with a formula; with a rule but no shapes; with shapes but no rule; with a rule and
shapes that do not settle its work."""


@dataclass(frozen=True, slots=True)
class _Book:
    operators: tuple[tuple[re.Pattern[str], Mapping[str, Any]], ...]
    pointwise: Mapping[str, int]
    boolean: frozenset[str]
    transparent: re.Pattern[str]
    kernels: tuple[tuple[re.Pattern[str], Kind], ...]
    collectives: Mapping[str, Kind]


@cache
def _book() -> _Book:
    """Read the rules once (they are part of the package)."""
    text = resources.files("workbench.operators").joinpath("rules.yaml").read_text(encoding="utf-8")
    data = yaml.safe_load(text)
    return _Book(
        tuple((re.compile(entry["name"]), MappingProxyType(entry)) for entry in data["operators"]),
        MappingProxyType({name: arity for arity in (1, 2, 3) for name in data["pointwise"][arity]}),
        frozenset(data["pointwise"]["bool"]),
        re.compile("|".join(f"(?:{pattern})" for pattern in data["transparent"])),
        tuple((re.compile(entry["name"]), Kind[entry["kind"]]) for entry in data["kernels"]),
        MappingProxyType({name: Kind[kind] for name, kind in data["collectives"].items()}),
    )


_RUN = re.compile(r"(\w{256})\w+")


def bounded(name: str) -> str:
    """Return a name without what no compiler writes: 4096 letters, words of 256, so that no pattern takes long on nonsense."""
    return name if len(name) <= 256 else _RUN.sub(r"\1", name[:4096])


@cache
def rule_for(name: str) -> Mapping[str, Any] | None:
    """Return the entry of rules.yaml for an operator, or None."""
    book, name = _book(), bounded(name)
    for pattern, entry in book.operators:
        if pattern.fullmatch(name):
            return entry
    bare = _BARE.match(name)
    if bare is None:
        return None
    for key in (bare[1], bare[1].removeprefix("_")):
        if key in book.pointwise:
            return MappingProxyType({"rule": "pointwise", "arity": book.pointwise[key], "boolean": key in book.boolean})
    return None


def describe(call: Call, ran: Ran | None = None) -> Described | None:
    """Return kind, type, dimensions and work of a call, or None where no rule applies or shapes do not suffice.

    Parameters
    ----------
    call : Call
        The recorded call.
    ran : Ran, optional
        What its device kernels' names say; with it an operator without a rule may still be described by its kernels.

    Examples
    --------
    >>> from workbench.operators.call import parse_call
    >>> describe(parse_call("aten::mm", "[[8, 4], [4, 2]]", '["float", "float"]', "")).flops
    128.0
    """
    ran = ran or Ran()
    entry = rule_for(call.name)
    if entry is not None:
        found = RULES[entry["rule"]](call, ran, entry)
    else:
        found = _by_kernel(call, ran) if call.has_shapes else None
    return found if found is None or max(found.dims, default=0) < _LARGEST else None


def _by_kernel(call: Call, ran: Ran) -> Described | None:
    """Describe an operator no rule knows by the kind of its longest kernel: all recorded tensors moved once."""
    if ran.kind == Kind.SOFTMAX:
        return RULES["softmax"](call, ran, {})
    if ran.kind == Kind.NORM:
        return RULES["norm"](call, ran, {"over": "last"})
    if ran.kind == Kind.REDUCTION:
        return RULES["reduction"](call, ran, {"all_inputs": True})
    if ran.kind == Kind.SORT:
        return RULES["sort"](call, ran, {})
    if ran.kind in (Kind.ELEMENTWISE, Kind.EMBEDDING, Kind.COPY):
        return RULES["moved"](call, ran, {"kind": ran.kind.name})
    if ran.kind == Kind.SET:
        return RULES["fill"](call, ran, {})
    return RULES["linear_like"](call, ran, {}) if ran.kind == Kind.GEMM else None


def state(call: Call) -> int:
    """Return what an operator can be for the work below it: `TRANSPARENT`, `BEARING`, `BLIND`, `SHAPED` or `STUCK`."""
    return state_of(call, describe(call))


def state_of(call: Call, found: Described | None) -> int:
    """Return the `state` of a call whose description is known already."""
    if _is_transparent(call.name):
        return TRANSPARENT
    if rule_for(call.name) is None:
        return SHAPED if call.has_shapes else TRANSPARENT
    if found is not None:
        return BEARING
    return STUCK if call.has_shapes else BLIND


@cache
def _is_transparent(name: str) -> bool:
    return _book().transparent.fullmatch(bounded(name)) is not None


@cache
def ran_of(kernel: str) -> Ran:
    """Read a device event's name: element type, opaque width, direction of a copy, kind."""
    kernel = bounded(kernel)
    direction = 1 if _TO_DEVICE.search(kernel) else 2 if _FROM_DEVICE.search(kernel) else 0
    opaque = _OPAQUE.search(kernel)
    kind = next((kind for pattern, kind in _book().kernels if pattern.search(kernel)), Kind.UNKNOWN)
    return Ran(
        kernel_dtype(kernel),
        float(opaque[1]) if opaque else 0.0,
        direction,
        kind,
        bool(_FP16_ACCUMULATE.search(kernel)),
        bool(_TRANSFORM.search(kernel)),
    )


def kernel_dtype(kernel: str) -> Dtype:
    """Return the element type a kernel's name states, UNKNOWN where it states none."""
    if _FP16_PRODUCT.search(kernel) and "tf32" not in kernel:
        return Dtype.BF16 if "bf16" in kernel else Dtype.FP16
    return next((dtype for pattern, dtype in _KERNEL_DTYPES if pattern.search(kernel)), Dtype.UNKNOWN)


@cache
def collective_kind(name: str) -> Kind | None:
    """Return the kind of a collective by its library name (``allreduce``, ``_allgather_base``) or its kernel's name."""
    book = _book()
    found = book.collectives.get(name.lower().removeprefix("nccl:").removeprefix("c10d::"))
    if found is not None:
        return found
    kind = next((kind for pattern, kind in book.kernels if pattern.search(name)), None)
    return kind if kind is not None and kind.name in set(k.name for k in book.collectives.values()) else None


@cache
def shorten(kernel: str, limit: int = 120) -> str:
    """Return a kernel's name without return type, template arguments and parameters, e.g. ``at::native::reduce_kernel``."""
    text = kernel.removeprefix("void ").replace("(anonymous namespace)::", "")
    text = re.sub(r"^cutlass::\w+<", "", text)  # a wrapper that says nothing: what it wraps does
    out: list[str] = []
    depth = 0
    for letter in text:
        if letter == "(" and depth == 0 and out:
            break
        depth += (letter == "<") - (letter == ">" and depth > 0)
        if depth == 0 and letter != ">":
            out.append(letter)
    functor = re.search(r"(\w*(?:[Ff]unctor|_kernel_cuda|_kernel_impl)\w*)", kernel[len("".join(out)) :])
    base = "".join(out).strip() or kernel
    return (base + (f"[{functor[1]}]" if functor and functor[1] not in base else ""))[:limit]
