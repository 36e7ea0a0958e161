"""Plans as people write them, ``tp=8,pp=8,mb=1,schedule=interleaved,v=2``, and what is left open filled in from cards and batch."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import fields
from types import MappingProxyType
from typing import Any

from workbench import units
from workbench.errors import InvalidSpec
from workbench.hardware.check import unknown_key
from workbench.operators.blocks import Axis
from workbench.scale.plan import RECOMPUTE, SCHEDULES, ParallelPlan

SHORT = MappingProxyType(
    {"mb": "microbatch", "m": "microbatches", "v": "virtual_stages", "vpp": "virtual_stages", "sp": "sequence_parallel",
     "layers": "stage_layers", "bucket": "bucket_bytes"}
)  # fmt: skip
"""Short names of fields."""
LARGEST = 10_000_000


def parse_plan(text: str, where: str = "plan") -> dict[str, Any]:
    """Return the fields that a plan's text states.

    Parameters
    ----------
    text : str
        ``key=value`` separated by commas; keys are fields of `ParallelPlan` or `SHORT`; ``sp`` alone means yes.
        ``stage_layers`` are separated by colons or written ``12x6:8``, six stages... of ``count x layers``; ``order`` by colons.
    where : str
        Its place, for messages.

    Returns
    -------
    dict
        Values in their types, for ``ParallelPlan(**...)`` or `complete`.

    Raises
    ------
    InvalidSpec
        An unknown field (the nearest is named), one stated twice, or a value it cannot have.
    """
    known = tuple(field.name for field in fields(ParallelPlan))
    out: dict[str, Any] = {}
    for part in filter(None, (piece.strip() for piece in re.split(r"[,\s]+(?=[A-Za-z_])|,", text))):
        name, equals, value = (piece.strip() for piece in part.partition("="))
        name = SHORT.get(name.lower(), name.lower())
        if name not in known:
            raise unknown_key(name, (*known, *SHORT), where, "is not a field of a plan")
        if name in out:
            raise InvalidSpec(where, f"{name} is stated twice", "keep one of them")
        if not equals and name != "sequence_parallel":
            raise InvalidSpec(where, f"{name} has no value", f"write {name}=...")
        out[name] = _value(name, value if equals else "yes", f"{where}: {name}")
    return out


def _value(name: str, text: str, where: str) -> Any:
    if name == "sequence_parallel":
        if text.lower() not in ("yes", "no", "true", "false", "1", "0"):
            raise InvalidSpec(where, f"{text!r} is neither yes nor no", "write sp=yes or sp=no")
        return text.lower() in ("yes", "true", "1")
    if name in ("schedule", "recompute"):
        choices = SCHEDULES if name == "schedule" else RECOMPUTE
        if text.lower() not in choices:
            raise unknown_key(text.lower(), choices, where, f"is no {name}")
        return text.lower()
    if name == "bucket_bytes":
        return units.parse(text, "B", where)
    if name == "stage_layers":
        return tuple(count for piece in text.split(":") for count in _repeated(piece, where))
    if name == "order":
        try:
            return tuple(Axis(piece.strip().lower()) for piece in text.split(":"))
        except ValueError:
            raise InvalidSpec(where, f"{text!r} is no order of axes", "write e.g. order=tp:cp:dp:pp, from neighbours outward") from None
    return _whole(text, where)


def _repeated(piece: str, where: str) -> tuple[int, ...]:
    layers, _, times = piece.partition("x")
    return (_whole(layers, where),) * (_whole(times, where) if times else 1)


def _whole(text: str, where: str) -> int:
    if not re.fullmatch(r"\d{1,8}", text.strip()) or int(text) > LARGEST:
        raise InvalidSpec(where, f"{text[:40]!r} is no count", "write a whole number")
    return int(text)


def plan_text(plan: ParallelPlan) -> str:
    """Return a plan as text: degrees, microbatches, and what differs from the default. `parse_plan` reads it back."""
    default = ParallelPlan()
    said = [f"tp={plan.tp}", f"pp={plan.pp}", f"dp={plan.dp}"]
    said += [f"{axis}={getattr(plan, axis)}" for axis in ("cp", "ep") if getattr(plan, axis) > 1]
    said += [f"mb={plan.microbatch}", f"m={plan.microbatches}"]
    if plan.pp > 1:
        said.append(f"schedule={plan.schedule}")
    if plan.virtual_stages > 1:
        said.append(f"v={plan.virtual_stages}")
    said += ["sp=yes"] * plan.sequence_parallel
    said += [f"recompute={plan.recompute}"] * (plan.recompute != "none")
    said += [f"zero={plan.zero}"] * bool(plan.zero)
    if plan.stage_layers:
        said.append("layers=" + ":".join(map(str, plan.stage_layers)))
    if plan.bucket_bytes != default.bucket_bytes:
        said.append(f"bucket={units.format(plan.bucket_bytes, 'B')}".replace(" ", ""))
    if plan.prefetch != default.prefetch:
        said.append(f"prefetch={plan.prefetch}")
    if plan.order != default.order:
        said.append("order=" + ":".join(plan.order))
    return ",".join(said)


def complete(stated: Mapping[str, Any], cards: int, global_batch: int) -> ParallelPlan:
    """Fill in what a plan leaves open: dp from the cards, microbatches from the global batch, a schedule for virtual stages,
    two virtual stages for a schedule that needs them.

    Parameters
    ----------
    stated : mapping
        Fields as `parse_plan` returns them.
    cards : int
        All cards.
    global_batch : int
        Samples of a step on all of them.

    Returns
    -------
    ParallelPlan
        What does not come out even is left for `workbench.scale.verdict` to refuse.

    Raises
    ------
    InvalidSpec
        No cards, or an empty batch.
    """
    for what, value in (("cards", cards), ("global batch", global_batch)):
        if not 1 <= value <= LARGEST:
            raise InvalidSpec(what, f"{value} cannot be", f"give a whole number from 1 to {LARGEST}")
    given = dict(stated)
    beside = 1
    for axis in ("tp", "pp", "cp"):
        beside *= max(int(given.get(axis, 1)), 1)
    given.setdefault("dp", max(cards // beside, 1))
    given.setdefault("microbatch", 1)
    given.setdefault("microbatches", max(global_batch // max(given["dp"] * given["microbatch"], 1), 1))
    if given.get("virtual_stages", 1) > 1:
        given.setdefault("schedule", "interleaved")
    elif given.get("schedule") in ("interleaved", "zb-v"):
        given.setdefault("virtual_stages", 2)
    return ParallelPlan(**given)
