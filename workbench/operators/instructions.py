"""Instructions an element that functions beyond plain arithmetic come to on a vector unit. Rules as data, first match wins.

At the sustained share of the vector unit's peak. Sources: where a function is slower than memory its rate bounds the count from
above: ``pow`` 46-61 on P100, V100 and A100 (NeuSight, MIT, fp32), ``gelu`` by ``erf`` 21 on A100 (vidur, MIT, fp16). The others by
analogy: polynomials and range reductions of the CUDA math library's sizes for fp32 (CUDA C++ programming guide, appendix on
mathematical functions); judgement, within a factor of 2.
"""

from __future__ import annotations

import re
from functools import lru_cache

INDEXED = 95.0
"""Instructions an element of a gather or scatter whose lanes each work out an address by 64-bit division: 50-145 on A100, H100 and
MI300X (aten::index_select in traces of Megatron-LM, astra-sim and TraceLens, MIT). A DMA engine moves rows instead."""
INSTRUCTIONS: tuple[tuple[str, float, float], ...] = (
    (r"pow([us]|_tensor_(tensor|scalar))?", 45.0, 2.0),  # exp2(y log2 x) in extended precision
    (r"(fast_?)?gelu.*", 21.0, 1.0),
    (r"(erf|erfc|erfinv)", 28.0, 1.0),
    (r"(sin|cos|tan|asin|acos|atan|atan2)", 25.0, 1.0),
    (r"(tanh|mish|softplus|log_sigmoid).*", 17.0, 2.0),
    (r"(silu|swish|swiglu|sigmoid|hardswish|silu_(and_)?mul|geglu).*", 14.0, 2.0),
    (r"(exp|exp2|expm1|log|log2|log10|log1p)", 12.0, 1.0),
    (r"(div|real_?div|true_divide|floor_divide|remainder|fmod|reciprocal)([us]|_.*)?", 9.0, 1.0),
    (r"(sqrt|rsqrt|norm|hypot)", 8.0, 1.0),
    (r"(index|index_select|index_put|index_add|embedding|gather|scatter|scatter_add|take|take_along_dim)(_impl)?", INDEXED, 0.0),
)
"""Pattern of a whole name (small letters, without ``aten::``, ``aclnn``, ``torch.``), instructions, hardware functions among them."""


def instructions(name: str) -> tuple[float, float]:
    """Return instructions and hardware functions (exp2, reciprocal ...) an element beyond plain arithmetic; zeros where no rule matches.

    Parameters
    ----------
    name : str
        Operator as a framework, vendor or table names it.
    """
    return _instructions(name)


@lru_cache(4096)
def _instructions(name: str) -> tuple[float, float]:
    plain = re.sub(r"\A(aten::|torch\.|npu::|aclnn)(_foreach_)?", "", name.strip(), flags=re.IGNORECASE).lower().rstrip("_")
    return next(((each, special) for pattern, each, special in INSTRUCTIONS if re.fullmatch(pattern, plain)), (0.0, 0.0))


NARROW = re.compile(r".*rms_?norm.*")
"""Kernels whose lanes fetch one element at a time: vLLM (Apache-2.0), layernorm_kernels.cu, up to 1024 lanes a row."""
KERNELS: tuple[tuple[str, int], ...] = (
    (r"silu_mul", 2),  # an activation and a product, as PyTorch runs them
    (r".*norm.*(backward|grad|bwd).*", 3),  # the input's gradient; partial and final sums of the parameters' gradients
)
"""Names that stand for several kernels one after the other."""


@lru_cache(4096)
def narrow(name: str) -> bool:
    """Return whether an operator's usual kernel fetches element by element on cards whose lanes are threads."""
    return NARROW.fullmatch(name.strip().lower()) is not None


@lru_cache(4096)
def kernels(name: str) -> int:
    """Return how many kernels a name stands for."""
    plain = name.strip().lower()
    return next((count for pattern, count in KERNELS if re.fullmatch(pattern, plain)), 1)
