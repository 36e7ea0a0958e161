"""A slow reader of Chrome traces from Python's own `json` and `decimal`: what the scanner is compared with. Shares no code with it."""

from __future__ import annotations

import json
from decimal import ROUND_HALF_UP, Decimal, InvalidOperation
from random import Random
from typing import Any

from workbench.trace.trace import Trace


def ns(value: Any) -> int | None:
    """Microseconds as a number or text -> nanoseconds, half away from zero."""
    try:
        exact = Decimal(value) if isinstance(value, str) else value
        return int((Decimal(exact) * 1000).to_integral_value(ROUND_HALF_UP))
    except (InvalidOperation, TypeError, ValueError):
        return None


def read(text: str) -> list[dict[str, Any]]:
    """Return the complete events of a trace in file order, times in ns, arguments as Python values."""
    document = json.loads(text, parse_float=Decimal, strict=False)
    records = document if isinstance(document, list) else document["traceEvents"]
    events = []
    for record in records:
        if record.get("ph") != "X":
            continue
        start, dur = ns(record.get("ts")), ns(record.get("dur"))
        if start is None or dur is None:
            continue
        text_of = {key: "" if record.get(key) is None else str(record[key]) for key in ("name", "cat", "pid", "tid")}
        events.append({"start": start, "dur": dur, **text_of, "args": record.get("args") or {}})
    return events


def shown(trace: Trace) -> list[dict[str, Any]]:
    """Return the events of a trace in the same form."""
    e, strings = trace.events, trace.strings
    rows: list[dict[str, Any]] = []
    for i in range(len(e)):
        track = trace.tracks[e.track[i]]
        known = {"name": strings[e.name[i]], "cat": strings[e.raw_category[i]], "pid": track.pid, "tid": track.tid}
        rows.append({"start": int(e.start_ns[i]), "dur": int(e.dur_ns[i]), **known, "args": {}})
    for key, column in trace.args.items():
        assert (column.event[1:] > column.event[:-1]).all()
        for event, value, is_text in zip(column.event.tolist(), column.value.tolist(), column.is_text.tolist(), strict=True):
            rows[event]["args"][key] = strings[value] if is_text else value
    return rows


def same_argument(got: Any, want: Any) -> bool:
    """Whether an imported argument is the one Python's json reads: integers and text as they are, the rest as JSON text."""
    if isinstance(want, str):
        return bool(got == want)
    if isinstance(want, int) and not isinstance(want, bool):
        return bool(got == want if -(2**63) <= want < 2**63 else got == str(want))
    return isinstance(got, str) and json.loads(got, parse_float=Decimal) == want


class Number(str):
    """A number as it is to be written."""


def render(value: Any, random: Random) -> str:
    """Write JSON with random white space and random escapes."""

    def space() -> str:
        return random.choice(("", "", "", " ", "\n", "\r\n\t", "   "))

    if isinstance(value, Number):
        return str(value)
    if isinstance(value, str):
        return '"' + "".join(_character(c, random) for c in value) + '"'
    if isinstance(value, dict):
        inside = (f"{space()}{render(k, random)}{space()}:{space()}{render(v, random)}{space()}" for k, v in value.items())
        return "{" + (",".join(inside) or space()) + "}"
    if isinstance(value, list):
        return "[" + (",".join(space() + render(v, random) + space() for v in value) or space()) + "]"
    return json.dumps(value)


def _character(c: str, random: Random) -> str:
    plain = json.dumps(c, ensure_ascii=False)[1:-1]
    if random.random() < 0.85:
        return plain
    units = c.encode("utf-16-be")
    form = random.choice(("{:04x}", "{:04X}"))
    return "".join("\\u" + form.format(int.from_bytes(units[i : i + 2], "big")) for i in range(0, len(units), 2))
