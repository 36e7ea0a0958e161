"""A question about plans as text, answered: what the command line asks, checked and put to the study."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields
from typing import Any

from workbench import units
from workbench.errors import InvalidSpec, Refused
from workbench.hardware.check import unknown_key
from workbench.hardware.cluster_text import load_cluster
from workbench.hardware.npu import load_npu
from workbench.models.describe import ModelSpec, load_model
from workbench.operators.blocks import Limit
from workbench.operators.table import Dtype
from workbench.scale.choices import Space
from workbench.scale.plan import SCHEDULES, ParallelPlan
from workbench.scale.plan_text import complete, parse_plan
from workbench.scale.verdict import verdict
from workbench.study.documents_plan import PlansDocument, inference_document, plan_document, search_document
from workbench.study.plan_inference import infer
from workbench.study.plan_search import search_plans
from workbench.study.plan_step import plan_step
from workbench.study.plan_system import System


@dataclass(frozen=True)
class Ask:
    """What is asked; texts as a person writes them, empty where nothing is said."""

    model_name: str
    cluster_name: str
    npu_name: str = ""
    cards: str = ""
    global_batch: int | None = None
    text: str = ""
    search: bool = False
    schedules: str = "1f1b,interleaved"
    top: int = 5
    tokens: int | None = None
    dtype: str = ""
    attention: str = "flash"
    memory: str = ""
    gradient_bytes: float = 2.0
    slow: Mapping[str, str] = field(default_factory=dict)
    scalars: Mapping[str, str] = field(default_factory=dict)
    price: float | None = None
    prompt: int | None = None
    context: int | None = None
    settings: Mapping[str, str] = field(default_factory=dict)


def answer(ask: Ask) -> PlansDocument:
    """Return the step of a plan, the best plans, or serving.

    Raises
    ------
    InvalidSpec, Refused
        What cannot be read, or a plan that cannot be.
    """
    model = load_model(ask.model_name)
    cluster = load_cluster(ask.cluster_name).with_({k: v for k, v in ask.settings.items() if k.startswith("tiers.")})
    name = ask.npu_name or cluster.npu
    if not name:
        raise Refused("npu", f"{cluster.name} names no card", "name one with --npu")
    npu = load_npu(name).with_({k: v for k, v in ask.settings.items() if not k.startswith("tiers.")})
    stated = parse_plan(ask.text, "--plan")
    counts = _counts(ask.cards, stated)
    how = _How(ask.attention, _dtype(ask.dtype), _system(ask.scalars))
    capacity = units.parse(ask.memory, "B", "--memory") if ask.memory else None
    built = model.build(1, ask.tokens)
    out = PlansDocument(
        model=model.name, parameters=built.parameters, npu=npu.name, cluster=cluster.name, step=None, search=None, inference=None
    )  # fmt: skip
    if ask.prompt is not None:
        plan = _judged(complete(stated, counts[0], ask.global_batch or counts[0]), built.limits, counts[0], None)
        served = infer(
            model, npu, cluster, plan, ask.prompt, ask.context, attention=how.attention, dtype=how.dtype, system=how.system
        )  # fmt: skip
        return out.model_copy(update={"inference": inference_document(served)})
    batch = _batch(ask, stated, counts)
    if ask.search:
        found = search_plans(
            model, npu, cluster, counts, batch, space=_space(ask, model), capacity=capacity, tokens=ask.tokens, top=ask.top,
            gradient_bytes=ask.gradient_bytes, stated=stated, attention=how.attention, dtype=how.dtype, system=how.system,
        )  # fmt: skip
        return out.model_copy(update={"search": search_document(found, capacity=capacity, price=ask.price)})
    plan = _judged(complete(stated, counts[0], batch), built.limits, counts[0], batch)
    step = plan_step(
        model, npu, cluster, plan, tokens=ask.tokens, gradient_bytes=ask.gradient_bytes, slow=_slow(ask.slow, plan.pp),
        attention=how.attention, dtype=how.dtype, system=how.system,
    )  # fmt: skip
    return out.model_copy(update={"step": plan_document(step, capacity=capacity, price=ask.price)})


@dataclass(frozen=True)
class _How:
    attention: str
    dtype: Dtype | None
    system: System


def _judged(plan: ParallelPlan, limits: Sequence[Limit], cards: int, batch: int | None) -> ParallelPlan:
    """Return a plan that can be; refused with all reasons where it cannot."""
    found = verdict(limits, plan, cards, global_batch=batch)
    if found.errors:
        raise Refused("plan", "; ".join(found.errors), "change the degrees it names")
    return plan


def _counts(text: str, stated: Mapping[str, Any]) -> tuple[int, ...]:
    if not text:
        if "dp" not in stated:
            raise Refused("--cards", "neither cards nor dp are stated", "give --cards N, or dp= in --plan")
        return (ParallelPlan(**{axis: stated[axis] for axis in ("dp", "tp", "pp", "cp") if axis in stated}).world,)
    parts = [part.strip() for part in text.split(",")]
    if not all(part.isdecimal() and 0 < int(part) <= 10_000_000 for part in parts):
        raise InvalidSpec("--cards", f"{text[:60]!r} are no counts of cards", "write e.g. 1024, or 256,1024")
    return tuple(int(part) for part in parts)


def _batch(ask: Ask, stated: Mapping[str, Any], counts: tuple[int, ...]) -> int:
    if ask.global_batch is not None:
        return ask.global_batch
    if not ask.search and "microbatches" in stated:
        plan = complete(stated, counts[0], 1)
        return plan.global_batch
    raise Refused("--global-batch", "samples of a step are not stated", "give --global-batch B (or m= in --plan)")


def _space(ask: Ask, model: ModelSpec) -> Space:
    names = tuple(part.strip().lower() for part in ask.schedules.split(",") if part.strip())
    for name in names:
        if name not in SCHEDULES:
            raise unknown_key(name, SCHEDULES, "--schedules", "is no schedule")
    recompute = ("none", "selective", "full") if ask.attention == "unfused" else ("none", "full")
    long = (ask.tokens or model.tokens) > 16_384
    return Space(schedules=names, recompute=recompute, most_cp=16 if long else 1)


def _dtype(text: str) -> Dtype | None:
    if not text:
        return None
    known = [dtype.name.lower() for dtype in Dtype if dtype != Dtype.UNKNOWN]
    if text.lower() not in known:
        raise unknown_key(text.lower(), known, "--dtype", "is no element type")
    return Dtype[text.upper()]


def _system(scalars: Mapping[str, str]) -> System:
    known = [one.name for one in fields(System) if one.name != "name"]
    values: dict[str, Any] = {}
    for name, text in scalars.items():
        if name not in known:
            raise unknown_key(name, known, "--system", "is no scalar of a system")
        values[name] = _number(text, f"--system {name}")
    return System(name="stated", **values) if values else System()


def _slow(given: Mapping[str, str], stages: int) -> list[float] | None:
    if not given:
        return None
    out = [1.0] * stages
    for stage, text in given.items():
        if not stage.isdecimal() or int(stage) >= stages:
            raise InvalidSpec("--slow", f"{stage!r} is no stage of {stages}", f"write e.g. 0=1.1, stages 0 to {stages - 1}")
        out[int(stage)] = _number(text, f"--slow {stage}")
    return out


def _number(text: str, where: str) -> float:
    try:
        return float(text)
    except ValueError:
        raise InvalidSpec(where, f"{text[:40]!r} is no number", "write e.g. 1.1") from None
