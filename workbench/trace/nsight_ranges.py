"""NVTX ranges of an Nsight Systems database: annotations, operators of ``emit_nvtx``, steps.

Text of an operator: PyTorch, torch/csrc/autograd/profiler_legacy.cpp (getNvtxStr): ``name, op_id = N, seq = N, sizes = [[..], ..]``,
parts optional.
"""

from __future__ import annotations

import json
import re
from functools import lru_cache

import numpy as np

from workbench.trace.builder import Builder
from workbench.trace.nsight_tables import MISSING, Database

RANGES = "NVTX_EVENTS"
PUSHED, STARTED = (59, 70), (60, 71)
"""Types of ranges that nest on their thread, and of those that begin and end anywhere (NVTX, NVTXT)."""
MOST_NS = 2**61
OPERATOR = re.compile(r"^(?P<name>.+?)(?:, (?P<rest>(?:seq|op_id|sizes|input_op_ids) = .*))?$", re.DOTALL)
_NUMBER = re.compile(r"(seq|op_id) = (\d{1,18})")
_KEYS = {"seq": "Sequence number", "op_id": "op_id"}
_SIZES = re.compile(r"sizes = (\[[][0-9, ]*\])")
STEP = re.compile(r"(?i)^(?:profilerstep|(?:train(?:ing)?|global|optimi[sz]er)?[ _-]?(?:step|iter(?:ation)?))[ _:#=-]*(\d{1,15})?$")
"""Ranges that count steps: "step 12", "iteration_3", "Iter: 7", "train_step"."""


def add_ranges(built: Builder, database: Database, names: dict[int, str]) -> int:
    """Add the ranges of all threads; return how many were taken as step marks.

    Ranges without a number ("step" again and again) count from 0. The text of a range that became something else stays its argument
    ``NVTX``.
    """
    columns = ("rowid", "start", "end", "eventType", "globalTid", "textId", "domainId")
    rows = database.numbers(RANGES, columns)
    own = dict(database.texts(RANGES, "rowid", "text"))
    named = any(STEP.match(text) and text.lower().startswith("profilerstep") for text in (*own.values(), *names.values()))
    steps, count = 0, 0
    order = np.argsort(rows["start"], kind="stable")
    for row, start, end, kind, thread, text_id, domain in zip(*(rows[key][order].tolist() for key in columns), strict=True):
        if kind not in (*PUSHED, *STARTED) or MISSING in (start, end) or not 0 <= start <= end < MOST_NS:
            continue
        text = own.get(row) or names.get(text_id, "")
        if not text:
            continue
        lane = str(thread & 0xFFFFFF) if kind in PUSHED else f"ranges {thread & 0xFFFFFF}"
        name, category = text, "user_annotation"
        args: dict[str, object] = {"domain": domain if domain > 0 else None}
        found = STEP.match(text)
        if found and (not named or text.lower().startswith("profilerstep")):
            name, args = f"ProfilerStep#{int(found[1]) if found[1] else count}", {**args, "NVTX": text}
            count, steps = count + 1, steps + 1
        elif (parts := OPERATOR.match(text)) and parts["rest"]:
            name, category, args = parts["name"], "cpu_op", {**args, **_described(parts["rest"]), "NVTX": text}
        built.add((str(thread >> 24 & 0xFFFFFF), lane), name, category, start, end - start, args)
    return steps


def _described(rest: str) -> dict[str, object]:
    """Return sequence number and shapes of an operator of ``emit_nvtx``."""
    found: dict[str, object] = {_KEYS[key]: int(value) for key, value in _NUMBER.findall(rest)}
    sizes = _SIZES.search(rest)
    return found | ({"Input Dims": shapes} if sizes and (shapes := _shapes(sizes[1])) else {})


@lru_cache(1 << 14)
def _shapes(text: str) -> str:
    """Return lists of numbers as JSON; "" where they are none."""
    try:
        return json.dumps(json.loads(text))
    except (ValueError, RecursionError):
        return ""
