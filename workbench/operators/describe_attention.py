"""Rules for fused attention and recurrent cells. A rule returns None where the recorded shapes do not settle the work."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

from workbench.operators import attention as attention_formulas
from workbench.operators import formulas
from workbench.operators.call import Call, Tensor
from workbench.operators.describe_matrix import Rule
from workbench.operators.described import Described, Ran, described, ran_dtype
from workbench.operators.table import ITEMSIZE, Kind


def _mask(call: Call, rule: Mapping[str, Any]) -> tuple[int, int]:
    """Return (causal, window) from the concrete arguments."""
    aligned = attention_formulas.TOP_LEFT if rule.get("align") == "top" else attention_formulas.BOTTOM_RIGHT
    causal = aligned if call.value(rule.get("causal")) is True else attention_formulas.FULL
    kind = call.integers(rule.get("mask_type"))
    if kind:
        causal = {1: attention_formulas.TOP_LEFT, 2: attention_formulas.BOTTOM_RIGHT}.get(kind[0], attention_formulas.FULL)
    left, right = call.integers(rule.get("left")), call.integers(rule.get("right"))
    if not left or left[0] < 0:
        return causal, 0
    if causal:
        return causal, left[0] + 1
    if right and right[0] == 0:
        return attention_formulas.BOTTOM_RIGHT, left[0] + 1
    return causal, left[0] + (right[0] if right and right[0] >= 0 else left[0]) + 1


def _heads(q: Tensor, k: Tensor, v: Tensor, call: Call, rule: Mapping[str, Any]) -> tuple[int, int, int, int, int, int, int] | None:
    """Return (batch, heads, kv_heads, queries, keys, head_dim, value_dim)."""
    if len(q.shape) == 4:
        s, h = (1, 2) if rule["layout"] == "bshd" else (2, 1)
        if len(k.shape) != 4 or len(v.shape) != 4:
            return None
        return q.shape[0], q.shape[h], k.shape[h], q.shape[s], k.shape[s], q.shape[3], v.shape[3]
    cu_q, cu_k = call.tensor(rule.get("cu_q")), call.tensor(rule.get("cu_k"))
    if len(q.shape) == 3 and len(k.shape) == 3 and cu_q is not None and cu_q.numel > 1:  # packed sequences: their mean length
        batch = cu_q.numel - 1
        many = (cu_k.numel - 1) if cu_k is not None and cu_k.numel > 1 else batch
        return batch, q.shape[1], k.shape[1], max(q.shape[0] // batch, 1), max(k.shape[0] // many, 1), q.shape[2], v.shape[2]
    if len(q.shape) == 3 and len(k.shape) == 3 and rule["layout"] == "bhsd":
        return q.shape[0], 1, 1, q.shape[1], k.shape[1], q.shape[2], v.shape[2]
    return None


def attention(call: Call, ran: Ran, rule: Mapping[str, Any]) -> Described | None:
    """Fused attention; the mask argument's own size is read too."""
    first = rule["q"]
    q, k, v = (call.tensor(first + i) for i in range(3))
    sizes = _heads(q, k, v, call, rule) if q and k and v else None
    if q is None or sizes is None or 0 in sizes:
        return None
    causal, window = _mask(call, rule)
    if "causal" in rule and call.value(rule["causal"]) is None:
        return None  # whether half of the pairs are masked was not recorded
    backward = bool(rule.get("backward"))
    work = attention_formulas.attention(*sizes, causal=causal, window=window, size=ITEMSIZE[q.dtype], backward=backward)
    bias = call.tensor(rule.get("bias"))
    work = work.moving(read=work.read + (bias.nbytes if bias else 0.0))
    kind = Kind.ATTENTION_BACKWARD if backward else Kind.ATTENTION_FORWARD
    detail = ("", "causal", "causal-top-left")[causal] + (f" window={window}" if window else "")
    return described(kind, ran_dtype(q.dtype, ran), (*sizes, causal, window), work, detail.strip())


def rnn(call: Call, ran: Ran, rule: Mapping[str, Any]) -> Described | None:
    """Recurrent layers: input of T x B x I, and the list of weights."""
    x = call.flat[0] if call.flat else None
    if x is None or len(x.shape) != 3:
        return None
    lists = [group for group in call.tensors if len(group) > 1]
    apart = tuple(t for t in call.flat[1:] if len(t.shape) == 2)  # weights given one by one
    matrices = max(([t for t in group if len(t.shape) == 2] for group in (*lists, apart)), key=len)
    weights = sum(t.numel for t in matrices)
    hidden = matrices[-1].shape[-1] if matrices else 0
    if not weights or not hidden:
        return None
    steps, batch = x.shape[0], x.shape[1]
    states = x.numel + steps * batch * hidden
    work = formulas.recurrent(steps, batch, weights, ITEMSIZE[x.dtype], states, bool(rule.get("backward")))
    return described(Kind.RNN, ran_dtype(x.dtype, ran), (hidden, batch, steps), work)


RULES: Mapping[str, Rule] = MappingProxyType({"attention": attention, "rnn": rnn})
"""Rules by the name rules.yaml uses."""
