"""Collectives of a cluster over size and group: seconds, which algorithm, how busy the links are."""

from __future__ import annotations

import csv
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from workbench.errors import Note, Refused
from workbench.hardware.cluster import ClusterSpec
from workbench.network.compression import Codec, compressed_s, pays_from
from workbench.network.curve import Curve, curve
from workbench.network.groups import Group, group_of
from workbench.operators.table import Kind
from workbench.study.collective_messages import Message
from workbench.study.document import note_documents
from workbench.study.documents_collective import (
    CollectiveDocument,
    CollectivesDocument,
    CompressionDocument,
    FabricFitDocument,
    RangeDocument,
)
from workbench.study.fabric_fit import FabricFit

BUS = {Kind.ALL_REDUCE: 2.0, Kind.ALL_GATHER: 1.0, Kind.REDUCE_SCATTER: 1.0, Kind.ALL_TO_ALL: 1.0}
"""Factor of (n - 1)/n in the bus bandwidth, NVIDIA nccl-tests, doc/PERFORMANCE.md."""


@dataclass(frozen=True)
class Placed:
    """How groups lie and what they may use: ``scattered`` rings hop to another instance with every message."""

    algorithm: str = ""
    protocol: str = ""
    scattered: bool = False
    alone: bool = False
    codec: Codec | None = None


def write_collectives(document: CollectivesDocument, path: str) -> None:
    """Write one row a message as CSV; the load of every tier in a column of its own."""
    tiers = list(document.rows[0].link_load) if document.rows else []
    plain = [name for name in CollectiveDocument.model_fields if name != "link_load"]
    with open(path, "w", newline="", encoding="utf-8") as target:
        writer = csv.writer(target)
        writer.writerow([*plain, *(f"load_{tier}" for tier in tiers)])
        for row in document.rows:
            cells = row.model_dump()
            writer.writerow([*("" if cells[name] is None else cells[name] for name in plain), *(row.link_load[tier] for tier in tiers)])


def collectives(
    cluster: ClusterSpec, messages: Iterable[Message], placed: Placed = Placed(), fit: FabricFit | None = None
) -> CollectivesDocument:
    """Price messages on a cluster.

    Parameters
    ----------
    cluster : ClusterSpec
    messages : iterable of Message
    placed : Placed
    fit : FabricFit, optional
        How the cluster was fitted, to be told.

    Returns
    -------
    CollectivesDocument
        In the order of the messages; ``ranges`` holds, once a group, which algorithm is the fastest for which sizes.

    Raises
    ------
    Refused
        A group larger than the cluster, or a choice that does not exist.
    """
    groups: dict[tuple[int, int], Group] = {}
    curves: dict[tuple[Kind, int, int], Curve] = {}
    rows, asked = [], list(messages)
    for message in asked:
        place = message.cards, message.stride
        group = groups[place] = groups.get(place) or _group(cluster, message, placed)
        key = message.kind, *place
        line = curves[key] = curves.get(key) or curve(cluster, message.kind, group, placed.algorithm, placed.protocol)
        compressed = None
        if placed.codec is not None and message.kind == Kind.ALL_REDUCE:
            compressed = float(compressed_s(cluster, group, placed.codec, message.bytes))
        rows.append(_row(cluster, message, line, compressed))
    return CollectivesDocument(
        cluster=cluster.name,
        digest=cluster.digest,
        cards=cluster.cards,
        library=cluster.library.name,
        rows=rows,
        ranges=[found for (kind, cards, _), line in curves.items() for found in _ranges(kind, cards, line)],
        compression=[] if placed.codec is None else [_pays(cluster, group, placed.codec) for group in groups.values()],
        fit=None if fit is None else _fit_document(fit),
        notes=note_documents([*cluster.notes, *_notes(cluster, asked)]),
    )


def _fit_document(fit: FabricFit) -> FabricFitDocument:
    return FabricFitDocument(fitted=fit.fitted, rows=fit.rows, before=fit.before, median=fit.median, mean=fit.mean, bias=fit.bias)


def _pays(cluster: ClusterSpec, group: Group, codec: Codec) -> CompressionDocument:
    found = pays_from(cluster, group, codec)
    first, last = found if found else (None, None)
    return CompressionDocument(cards=group.size, from_bytes=first, to_bytes=last)


def _group(cluster: ClusterSpec, message: Message, placed: Placed) -> Group:
    last = (message.cards - 1) * message.stride
    if last >= cluster.cards:
        raise Refused(
            cluster.name,
            f"{message.cards} cards, {message.stride} apart, do not fit its {cluster.cards} cards",
            "ask for fewer, or describe a larger cluster",
        )
    ranks: Sequence[int] = range(0, message.cards * message.stride, message.stride)
    if placed.scattered:
        inside = cluster.below[1]
        ranks = sorted(ranks, key=lambda rank: (rank % inside, rank // inside))
    return group_of(cluster, ranks, placed.alone)


def _row(cluster: ClusterSpec, message: Message, line: Curve, compressed: float | None) -> CollectiveDocument:
    seconds, which = float(line.seconds(message.bytes)), int(line.choice(message.bytes))
    load = {tier.name: float(value) for tier, value in zip(cluster.tiers, line.link_load(message.bytes), strict=True)}
    rate = message.bytes / seconds if seconds else 0.0
    around = BUS.get(message.kind, 0.0) * (message.cards - 1) / message.cards
    known = np.isfinite(message.measured_s) and message.measured_s > 0
    return CollectiveDocument(
        line=message.line, collective=message.kind.name.lower(), cards=message.cards, bytes=message.bytes, seconds=seconds,
        algorithm=line.algorithm[which], protocol=line.protocol[which], algorithm_bandwidth=rate,
        bus_bandwidth=rate * (around or 1.0), link_load=load, busiest=max(load, key=lambda name: load[name]),
        compressed_s=compressed,
        measured_s=message.measured_s if known else None, error=seconds / message.measured_s - 1 if known else None,
    )  # fmt: skip


def _ranges(kind: Kind, cards: int, line: Curve) -> Iterable[RangeDocument]:
    ends = [0.0, *(float(size) for size in line.crossings)]
    for k, start in enumerate(ends):
        yield RangeDocument(
            collective=kind.name.lower(),
            cards=cards,
            from_bytes=start,
            to_bytes=ends[k + 1] if k + 1 < len(ends) else None,
            algorithm=line.algorithm[k],
            protocol=line.protocol[k],
        )


def _notes(cluster: ClusterSpec, messages: Sequence[Message]) -> list[Note]:
    smaller = sorted({message.cards for message in messages if message.cards < cluster.cards})
    notes = []
    if smaller:
        sizes = ", ".join(str(n) for n in smaller[:6])
        text = f"groups of {sizes} of {cluster.cards} cards: from the first card on; all others are busy in groups of their own"
        notes.append(Note("group-smaller-than-cluster", cluster.name, len(smaller), text, "--alone: no other group communicates"))
    if cluster.weak:
        notes.append(
            Note("weak-numbers", cluster.name, len(cluster.weak), "; ".join(cluster.weak), "measure, and describe your own cluster")
        )
    return notes
