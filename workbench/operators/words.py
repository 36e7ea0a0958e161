"""Names of operators as people, vendors and frameworks write them -> what they compute, by the rules of names.yaml; first match wins.

A name no rule knows is taken for that of a device kernel (``ampere_bf16_s16816gemm_...``, ``Cijk_...``) and looked up in rules.yaml.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache, lru_cache
from importlib import resources
from types import MappingProxyType

import yaml

from workbench.operators.attention import FULL
from workbench.operators.kinds import bounded, ran_of
from workbench.operators.table import Dtype, Kind


@dataclass(frozen=True)
class Word:
    """What a name says: kind, full-size ``reads`` and ``writes`` and ``operations`` an element, causal mask, gates of a cell,
    direction, one group a channel.
    """

    kind: Kind
    reads: float = 1.0
    writes: float = 1.0
    operations: float = 1.0
    causal: int = FULL
    gates: int = 1
    backward: bool = False
    depthwise: bool = False


OF_KIND: Mapping[Kind, Word] = MappingProxyType(
    {Kind.SET: Word(Kind.SET, reads=0.0, operations=0.0), Kind.OPTIMIZER: Word(Kind.OPTIMIZER, reads=4.0, writes=3.0, operations=14.0)}
)
"""What the name of a kind itself says, where it is not one read and one write."""

DTYPES: Mapping[str, tuple[Dtype, str]] = MappingProxyType(
    {
        "float": (Dtype.FP32, ""), "float32": (Dtype.FP32, ""), "f32": (Dtype.FP32, ""), "half": (Dtype.FP16, ""),
        "float16": (Dtype.FP16, ""), "f16": (Dtype.FP16, ""),
        "bfloat16": (Dtype.BF16, ""), "dt_bf16": (Dtype.BF16, ""), "double": (Dtype.FP64, ""),
        "bfloat": (Dtype.BF16, ""), "float64": (Dtype.FP64, ""), "f64": (Dtype.FP64, ""),
        "float8": (Dtype.FP8, ""), "f8": (Dtype.FP8, ""), "tfloat32": (Dtype.TF32, ""), "hf32": (Dtype.TF32, ""), "xf32": (Dtype.TF32, ""),
        "s8": (Dtype.INT8, ""), "i8": (Dtype.INT8, ""), "char": (Dtype.INT8, ""), "u8": (Dtype.UINT8, ""), "byte": (Dtype.UINT8, ""),
        "s16": (Dtype.INT16, ""), "short": (Dtype.INT16, ""), "s32": (Dtype.INT32, ""), "i32": (Dtype.INT32, ""), "int": (Dtype.INT32, ""),
        "uint32": (Dtype.INT32, ""), "u32": (Dtype.INT32, ""), "s64": (Dtype.INT64, ""), "i64": (Dtype.INT64, ""),
        "long": (Dtype.INT64, ""), "uint64": (Dtype.INT64, ""), "u64": (Dtype.INT64, ""),
        "s4": (Dtype.INT4, ""), "u4": (Dtype.INT4, ""), "i4": (Dtype.INT4, ""),
        "pred": (Dtype.BOOL, ""), "c64": (Dtype.COMPLEX64, ""), "qint8": (Dtype.INT8, ""), "w8a8": (Dtype.INT8, ""),
        "w8a16": (Dtype.INT8_WO, ""), "w4a16": (Dtype.INT4_WO, ""),
        "fp16in_fp32math": (Dtype.FP16, "fp16 operands with fp32 products are priced as fp16 products"),
    }
)  # fmt: skip
"""Names of element types beside those of `Dtype`, and what is lost in translation."""


def word(name: str) -> Word | None:
    """Return what a name says, None where no rule knows it."""
    return _word(bounded(name))


_PREFIX = re.compile(
    r"\A(aten::|torch\.(ops\.)?|npu::|torch_npu\.(npu_)?|aclnn(inplace)?(?=[a-z])|cnnl(?=[a-z])|prims::|hpu::|mlu::|%)", re.IGNORECASE
)
_SUFFIX = re.compile(
    r"(\.\d+)+\Z|_(fwd|forward)(_(bf16|f16|f32|f8|i8|i16|i32|u8|fp32|fp16))?\Z|(?<=[a-z])forward(_v\d)?\Z|_(bf16|f16|f32)\Z|\.(out|default)\Z"
)


@lru_cache(8192)
def bare(name: str) -> str:
    """Return a name without what frameworks add to it: prefix, version, case, ``_``. ``"aten::gelu_"``, ``"GeluV2"`` -> ``"gelu"``."""
    plain = re.sub(r"_?v\d\Z", "", _PREFIX.sub("", name.strip()).lower())
    return re.sub(r"[\W_]+", "", plain) or plain


@lru_cache(8192)
def _word(name: str) -> Word | None:
    stripped = _PREFIX.sub("", name.strip()).lower().replace("-", "_").replace(" ", "_")
    if stripped.upper() in Kind.__members__ and stripped != "unknown":
        return OF_KIND.get(Kind[stripped.upper()], Word(Kind[stripped.upper()]))
    for plain in dict.fromkeys((stripped, _SUFFIX.sub("", stripped))):
        for pattern, found in _rules():
            if pattern.fullmatch(plain):
                return found
    if _misspelt(stripped):
        return None
    kernel = ran_of(name).kind
    return OF_KIND.get(kernel, Word(kernel)) if kernel != Kind.UNKNOWN else None


def _misspelt(plain: str) -> bool:
    """Whether a name is that of a kind but for letters too many (``gemmm``), which the rules of kernels would take for one."""
    return any(_single(plain) == _single(kind.lower()) for kind in Kind.__members__)


def _single(name: str) -> str:
    return re.sub(r"(.)\1+", r"\1", name)


def unknown(name: str) -> str:
    """Say that no rule knows a name, with the kind whose name is nearest."""
    plain = name.strip().lower().replace("-", "_").replace(" ", "_")
    near = difflib.get_close_matches(plain, [kind.lower() for kind in Kind.__members__ if kind != "UNKNOWN"], 1, 0.75)
    return f"no rule knows the operator {name!r}" + (f" (did you mean {near[0]!r}?)" if near else "")


@cache
def _rules() -> tuple[tuple[re.Pattern[str], Word], ...]:
    """Read names.yaml once (it is part of the package)."""
    text = resources.files("workbench.operators").joinpath("names.yaml").read_text(encoding="utf-8")
    return tuple((re.compile(entry.pop("name")), Word(Kind[entry.pop("kind")], **entry)) for entry in yaml.safe_load(text)["names"])


_TYPE_PREFIX = re.compile(r"\A(dt_|torch\.|tl\.|np\.|jnp\.|tf\.|acl_|dtype\.|cuda_r_|hip_r_|cl_|_?c10::)")
_FLOAT8 = re.compile(r"(float8|fp8|f8|hf8|hifloat8)?_?(e4m3|e5m2)(fn|fnuz|b11fnuz)?|hifloat8|hf8|fp8_\w+|float8_\w+")
_BITS = {"16f": "float16", "16bf": "bfloat16", "32f": "float32", "64f": "double", "8i": "int8", "8u": "uint8", "32i": "int32"}


@lru_cache(4096)
def element_type(name: str) -> tuple[Dtype, str] | None:
    """Return the type a name means and what its translation loses ("": nothing); None where it is unknown.

    Of a list (``"FLOAT16;FLOAT16;INT32"``, ``"bf16xbf16->fp32"``) the first type counts: that of the first operand.
    """
    first = next((part.strip() for part in re.split(r"[;,+&]|->|/(?=\w)|(?<=\d)x(?=[a-z])", name.strip().lower()) if part.strip()), "")
    plain = _TYPE_PREFIX.sub("", first.strip("[]()'\""))
    plain = _BITS.get(plain, plain)
    if plain.upper() in Dtype.__members__ and plain != "unknown":
        return Dtype[plain.upper()], ""
    if plain in DTYPES:
        return DTYPES[plain]
    return (Dtype.FP8, "") if _FLOAT8.fullmatch(plain) else None
