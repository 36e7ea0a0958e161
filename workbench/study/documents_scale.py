"""The document of ``workbench scale --json``: a recording on many cards."""

from __future__ import annotations

import xarray as xr
from pydantic import Field

from workbench.study.document import Document


class CardsDocument(Document):
    """The step on one number of cards."""

    cards: int
    step_s: float
    alone_s: float = Field(description="without messages of data parallelism")
    messages_s: float = Field(description="all messages of data parallelism, waited for or not")
    exposed_s: float = Field(description="what the step waits for them")
    exposed_tier_s: dict[str, float] = Field(description="exposed_s by tier, attributed by how long its busiest link works")
    limiting_tier: str = Field(description="tier whose busiest link works longest; empty: nothing is sent")
    slowest: float = Field(description="compute of the slowest card over the mean")
    efficiency: float = Field(description="weak scaling against base_cards")
    overhead: float = Field(description="1 / efficiency - 1")


class ScaleDocument(Document):
    """Output of ``workbench scale --json``."""

    trace: str
    cluster: str
    efficiency: str = Field(description="kind of scaling, N0, and what is fixed")
    base_cards: int = Field(description="cards of the recording, N0")
    base_step_s: float
    gradient_bytes: float = Field(description="of a card and step [B]")
    messages: int = Field(description="a step")
    algorithm: str
    jitter: float
    straggler: float
    rows: list[CardsDocument]
    notes: list[str]


def scale_document(trace: str, found: xr.Dataset) -> ScaleDocument:
    """Return the document of what `workbench.study.scale_out.scale_out` found."""
    tiers = [str(name) for name in found.tier.values]
    names = ("step_s", "alone_s", "messages_s", "exposed_s", "slowest", "efficiency", "overhead")
    rows = [
        CardsDocument(
            cards=int(found.cards[i]), limiting_tier=str(found.limiting_tier.values[i]),
            exposed_tier_s=dict(zip(tiers, found.exposed_tier_s.values[i].tolist(), strict=True)),
            **{name: float(found[name].values[i]) for name in names},
        )
        for i in range(found.sizes["cards"])
    ]  # fmt: skip
    kept = ("cluster", "efficiency", "base_cards", "base_step_s", "gradient_bytes", "messages", "algorithm", "jitter", "straggler", "notes")
    return ScaleDocument(trace=trace, rows=rows, **{name: found.attrs[name] for name in kept})
