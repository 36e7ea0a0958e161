"""Names of operators as people, vendors and frameworks write them -> what they compute. Rules as data, first match wins.

Names are compared in small letters without the prefixes ``aten::``, ``aclnn`` and ``torch.``. Sources: operator lists of PyTorch
(native_functions.yaml), CANN (aclnn API reference), ROCm and XLA; column words of NeuSight, vidur, DeepBench and aiconfigurator.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from types import MappingProxyType

from workbench.operators.attention import BOTTOM_RIGHT, FULL
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


_MAP = Kind.ELEMENTWISE
RULES: tuple[tuple[str, Word], ...] = (
    (r"(batch|grouped)_?_?(mat)?_?mul|batch_?matmul.*|b?addbmm|bmm|grouped_?(gemm|matmul).*", Word(Kind.BATCHED_GEMM)),
    (r"(gemm|mat_?mul|mm|addmm|linear|matmulv[23]|matmulcommon|dot_general|dense|fc|fully_connected|_scaled_mm)(_.*)?", Word(Kind.GEMM)),
    (r"depthwise(_?conv.*)?", Word(Kind.CONV_FORWARD, depthwise=True)),
    (r"conv.*(bwd_?data|bwd_?input|backward_?data|backward_?input|backprop_?input|dgrad).*", Word(Kind.CONV_BACKWARD_DATA)),
    (r"conv.*(bwd_?weight|backward_?weight|backward_?filter|backprop_?filter|wgrad).*", Word(Kind.CONV_BACKWARD_WEIGHT)),
    (r"conv.*(bwd|backward|backprop).*", Word(Kind.CONV_BACKWARD)),
    (r"conv(olution)?([23]d)?(_?(fwd|forward))?(v2)?|cudnn_convolution|miopen_convolution", Word(Kind.CONV_FORWARD)),
    (r".*(attention|attn).*(bwd|backward|grad).*", Word(Kind.ATTENTION_BACKWARD)),
    (r"attention_(prefill|context)|context_attention|prefill_attention", Word(Kind.ATTENTION_FORWARD, causal=BOTTOM_RIGHT)),
    (r".*(attention|attn|mha|sdpa).*", Word(Kind.ATTENTION_FORWARD)),
    (r"lstm(_(fwd|forward))?", Word(Kind.RNN, gates=4)),
    (r"lstm_(bwd|backward)", Word(Kind.RNN, gates=4, backward=True)),
    (r"gru(_(fwd|forward))?", Word(Kind.RNN, gates=3)),
    (r"gru_(bwd|backward)", Word(Kind.RNN, gates=3, backward=True)),
    (r"(vanilla|rnn)(_(fwd|forward))?", Word(Kind.RNN)),
    (r"(vanilla|rnn)_(bwd|backward)", Word(Kind.RNN, backward=True)),
    (r"_?(log_?)?softmax(_?v2)?(_backward|grad.*|_bwd)", Word(Kind.SOFTMAX, reads=2.0, backward=True)),
    (r"_?(log_?|scaled_?masked_?)?softmax(_?v2)?", Word(Kind.SOFTMAX)),
    (r"(native_)?(ln|(layer|batch|group|rms|instance)_?norm|bn)[a-z0-9]*(_backward|grad.*|_bwd)",
     Word(Kind.NORM, reads=2.0, backward=True)),
    (r"(native_)?(add_?)?(ln|(layer|batch|group|rms|instance)_?norm|bn)([a-z0-9]*)", Word(Kind.NORM)),
    (r"(reduce_?)?(sum|mean|max|min|prod|amax|amin|norm|argmax|argmin)|lp_?norm_?reduce.*|arg_?max.*|arg_?min.*|reduce[a-z_]*",
     Word(Kind.REDUCTION)),
    (r"(sort|top_?k|unique|argsort).*", Word(Kind.SORT)),
    (r"(embedding|gather|scatter|index|take|unsorted_segment).*", Word(Kind.EMBEDDING)),
    (r"(max|avg|adaptive_avg|global_avg)_?pool.*|pooling", Word(Kind.POOLING)),
    (r"(zeros?_?like|ones?_?like|fill.*|zero_|zeros|ones|mem_?set)", Word(Kind.SET, reads=0.0)),
    (r"(as_?strided|strided_?slice.*|broadcast_?to|copy_?|mem_?cpy.*|clone|contiguous|transpose.*|trans_?data|permute|concat.*|cat|slice.*|stack|pad.*|split.*|cast|to)",
     Word(Kind.COPY)),
    (r"(apply_?|fused_?)?(adam_?w?|sgd|lamb)[a-z_0-9]*", Word(Kind.OPTIMIZER, reads=4.0, writes=3.0, operations=14.0)),
    (r"silu_mul", Word(_MAP, 3.0, 2.0, 6.0)),  # as PyTorch runs it: silu and the product are two kernels
    (r"(swiglu|silu_and_mul|gelu_and_mul|geglu)", Word(_MAP, 2.0, 1.0, 6.0)),
    (r"(add|sub|mul|div|pow|maximum|minimum|where|real_?div)", Word(_MAP, 2.0)),
    (r"(gelu|silu|tanh|sigmoid|exp|log|erf|softplus)(_backward|grad)", Word(_MAP, 2.0, 1.0, 10.0)),
    (r"relu(_backward|grad)", Word(_MAP, 2.0)),
    (r"(fast_?gelu|gelu|silu|swish|tanh|sigmoid|exp|log|erf|softplus|sin|cos)_?", Word(_MAP, operations=10.0)),
    (r"(add|sub|mul|div|pow|rsub)[us]_?", Word(_MAP)),  # with a scalar
    (r"(logical_?(not|and|or)|tril|triu|reciprocal|relu|abs|neg|sqrt|rsqrt|square|clamp|threshold|not|drop_?out.*|elementwise.*|quanti[sz]e.*|dequanti[sz]e.*|less.*|greater.*|equal.*)_?",
     Word(_MAP)),
)  # fmt: skip
"""Patterns of a whole name, and what it computes."""

OF_KIND: Mapping[Kind, Word] = MappingProxyType(
    {Kind.SET: Word(Kind.SET, reads=0.0), Kind.OPTIMIZER: Word(Kind.OPTIMIZER, reads=4.0, writes=3.0, operations=14.0)}
)
"""What the name of a kind itself says, where it is not one read and one write."""

DTYPES: Mapping[str, tuple[Dtype, str]] = MappingProxyType(
    {
        "float": (Dtype.FP32, ""), "float32": (Dtype.FP32, ""), "f32": (Dtype.FP32, ""), "half": (Dtype.FP16, ""),
        "float16": (Dtype.FP16, ""), "f16": (Dtype.FP16, ""),
        "bfloat16": (Dtype.BF16, ""), "dt_bf16": (Dtype.BF16, ""), "double": (Dtype.FP64, ""),
        "e4m3": (Dtype.FP8, ""), "e5m2": (Dtype.FP8, ""), "float8": (Dtype.FP8, ""), "fp8_block": (Dtype.FP8, ""),
        "int8_wo": (Dtype.FP16, "8-bit weights are priced as fp16 (their smaller traffic is not modelled)"),
        "int4_wo": (Dtype.FP16, "4-bit weights are priced as fp16 (their smaller traffic is not modelled)"),
        "fp16in_fp32math": (Dtype.FP16, "fp16 operands with fp32 products are priced as fp16 products"),
    }
)  # fmt: skip
"""Names of element types beside those of `Dtype`, and what is lost in translation."""


def word(name: str) -> Word | None:
    """Return what a name says, None where no rule knows it."""
    return _word(name)


@lru_cache(4096)
def _word(name: str) -> Word | None:
    plain = re.sub(r"\A(aten::|torch\.|npu::|aclnn)", "", name.strip(), flags=re.IGNORECASE).lower().replace("-", "_").replace(" ", "_")
    upper = plain.upper()
    if upper in Kind.__members__ and Kind[upper] != Kind.UNKNOWN:
        return OF_KIND.get(Kind[upper], Word(Kind[upper]))
    return next((word for pattern, word in _compiled() if pattern.fullmatch(plain)), None)


@lru_cache(1)
def _compiled() -> tuple[tuple[re.Pattern[str], Word], ...]:
    return tuple((re.compile(pattern), word) for pattern, word in RULES)


def element_type(name: str) -> tuple[Dtype, str] | None:
    """Return the type a name means and what its translation loses ("": nothing); None where it is unknown."""
    plain = name.strip().lower()
    if plain.upper() in Dtype.__members__:
        return Dtype[plain.upper()], ""
    return DTYPES.get(plain)
