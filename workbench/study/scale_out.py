"""Data-parallel scale-out of a recording: the step on N cards of a cluster, overlap from the graph, efficiency, what is exposed by tier.

A recording of one card gets its gradients' messages: buckets in the order the gradients become ready, each after its last gradient and
the bucket before it. A recording of a data-parallel job keeps its messages; those of all its cards get the time of the larger group, and
at the recorded number of cards everything lasts as recorded. Cards that run the same program arrive together: one stands for all
(`workbench.scale.fold`); differences of speed enter as the slowest of them (`workbench.scale.fold_slow`). The batch of a card stays.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import xarray as xr

from workbench import units
from workbench.errors import InvalidSpec, Refused
from workbench.hardware.cluster import ClusterSpec
from workbench.network.compression import Codec, compressed_s
from workbench.network.curve import Curve, curve
from workbench.network.groups import Group, strided
from workbench.operators.table import Kind
from workbench.replay.replay import step_times
from workbench.scale.efficiency import weak
from workbench.scale.fold_buckets import BUCKET_BYTES
from workbench.scale.fold_slow import slowest
from workbench.study.plan_price import enough
from workbench.study.recorded_on import with_source
from workbench.study.scale_out_found import Scaled, scaled
from workbench.study.scenario import Scenario
from workbench.study.steps import kept_steps
from workbench.trace.trace import Trace


def scale_out(
    workload: Scenario | Trace,
    cluster: ClusterSpec,
    cards: Sequence[int],
    *,
    gradient_bytes: float | str | None = None,
    bucket_bytes: float | str = BUCKET_BYTES,
    algorithm: str = "",
    codec: Codec | None = None,
    jitter: float = 0.0,
    straggler: float = 1.0,
) -> xr.Dataset:
    """Predict the step of a recording on more cards.

    Parameters
    ----------
    workload : Scenario or Trace
        The recording, as recorded or on another card.
    cluster : ClusterSpec
        How cards are joined; its outermost tier is grown where more are asked for.
    cards : sequence of int
        Numbers of cards.
    gradient_bytes : float or str, optional
        Size of all gradients of a card [B], where the recording does not say it.
    bucket_bytes : float or str
        Gradients that are sent together [B]; "inf": all at once, after the last of them.
    algorithm : str
        Of the all-reduce, e.g. "ring" or "hierarchical"; the fastest the library has.
    codec : Codec, optional
        Compression of the gradients.
    jitter : float
        Coefficient of variation of a card's compute from step to step [1].
    straggler : float
        Compute time of one of the cards over that of the others [1].

    Returns
    -------
    Dataset
        Dimensions ``cards`` and ``tier``. step_s, alone_s (without messages of data parallelism), messages_s, exposed_s [s], slowest
        (compute of the slowest card over the mean), efficiency (weak scaling), overhead, limiting_tier by cards; exposed_tier_s,
        attributed by how long each tier's busiest link works. Attributes say what N0 is, what is fixed and all notes.

    Raises
    ------
    Refused, InvalidSpec
        A recording without gradients or sizes, a cluster, group or number that cannot be.
    """
    counts = _counts(cards)
    scenario = with_source(workload if isinstance(workload, Scenario) else Scenario(workload))  # type: ignore[arg-type]
    total = units.parse(gradient_bytes, "B", "gradient_bytes") if isinstance(gradient_bytes, str) else gradient_bytes
    bucket = _bucket(bucket_bytes)
    found = scaled(scenario, total, bucket)
    odd = [n for n in counts if n % found.replica]
    if odd:
        raise Refused(
            "cards", f"{odd[0]} cards hold no whole number of replicas of {found.replica} cards", f"give multiples of {found.replica}"
        )
    large = enough(cluster, max(*counts, found.base_cards))
    every = np.array(sorted({*counts, found.base_cards}), dtype=np.int64)
    factor = np.array([slowest(int(n), jitter, straggler if n > 1 else 1.0) for n in every])
    spent = np.stack([_messages(found, large, int(n), algorithm, codec) for n in every], axis=1)
    step, alone = _steps(found, spent, factor), _steps(found, np.zeros_like(spent), factor)
    busy = np.stack([_busy(found, large, int(n), algorithm, codec) for n in every])
    return _dataset(found, large, every, np.isin(every, counts), step, alone, spent, factor, busy, (jitter, straggler, algorithm, bucket))


def _counts(cards: Sequence[int]) -> tuple[int, ...]:
    counts = tuple(int(n) for n in cards)
    if not counts or min(counts) < 1 or max(counts) > 10_000_000:
        raise InvalidSpec("cards", f"{list(cards)[:8]} are no numbers of cards", "give e.g. 8, 64, 1024")
    return counts


def _bucket(given: float | str) -> float:
    if isinstance(given, str):
        return float("inf") if given.strip().lower() in ("inf", "all") else units.parse(given, "B", "bucket_bytes")
    return float(given)


def _line(cluster: ClusterSpec, kind: int, group: Group, algorithm: str) -> Curve:
    chosen = algorithm if Kind(kind) in (Kind.ALL_REDUCE, Kind.ALL_GATHER, Kind.REDUCE_SCATTER) else ""
    return curve(cluster, Kind(kind), group, chosen)


def _messages(found: Scaled, cluster: ClusterSpec, cards: int, algorithm: str, codec: Codec | None) -> np.ndarray:
    """Return the time of every message on N cards, float64 [M] [s]; as recorded at the recorded number."""
    out = np.zeros(len(found.message))
    if cards == found.replica:
        return out
    group = strided(cluster, cards // found.replica, found.replica)
    for kind in np.unique(found.kind).tolist():
        rows = found.kind == kind
        if codec is not None and kind == Kind.ALL_REDUCE and not np.isfinite(found.base_s[rows]).any():
            out[rows] = compressed_s(cluster, group, codec, found.bytes[rows])
            continue
        out[rows] = _line(cluster, kind, group, algorithm).seconds(found.bytes[rows])
        recorded = np.isfinite(found.base_s[rows])
        if recorded.any():
            before = curve(cluster, Kind(kind), strided(cluster, found.base_cards)).seconds(found.bytes[rows])
            ratio = out[rows] / before if cards != found.base_cards or algorithm else 1.0
            out[rows] = np.where(recorded, found.base_s[rows] * ratio, out[rows])
    return out


def _busy(found: Scaled, cluster: ClusterSpec, cards: int, algorithm: str, codec: Codec | None) -> np.ndarray:
    """Return how long the busiest link of every tier works for all messages, float64 [T] [s]."""
    out = np.zeros(len(cluster.tiers))
    if cards == found.replica:
        return out
    group = strided(cluster, cards // found.replica, found.replica)
    for kind in np.unique(found.kind).tolist():
        size = found.bytes[found.kind == kind] / (codec.ratio if codec else 1.0)
        line = _line(cluster, kind, group, "" if codec else algorithm)
        out += (line.link_load(size) * line.seconds(size)[:, None]).sum(axis=0)
    return out


def _steps(found: Scaled, spent: np.ndarray, factor: np.ndarray) -> np.ndarray:
    """Return the step time for every number of cards, float64 [C] [s]: median of the steps that count."""
    many, cases = len(found.graph), len(factor)
    row = np.zeros(many, dtype=np.int32)
    weight = found.node_s.copy()
    row[found.compute] = 1
    row[found.message] = 2 + np.arange(len(found.message))
    weight[found.message] = 1.0
    value = np.concatenate((np.ones((1, cases)), factor[None, :], spent))
    steps = step_times(found.graph, weight, value, row)
    return np.asarray(np.median(steps[:, kept_steps(found.graph.step_complete)], axis=1))


def _dataset(
    found: Scaled, cluster: ClusterSpec, every: np.ndarray, asked: np.ndarray, step: np.ndarray, alone: np.ndarray, spent: np.ndarray,
    factor: np.ndarray, busy: np.ndarray, options: tuple[float, float, str, float],
) -> xr.Dataset:  # fmt: skip
    at = int(np.flatnonzero(every == found.base_cards)[0])
    measured = weak(every, step, found.base_cards, float(step[at]))
    exposed = np.maximum(step - alone, 0.0)
    share = np.divide(busy, busy.sum(axis=1, keepdims=True), out=np.zeros_like(busy), where=busy.sum(axis=1, keepdims=True) > 0)
    names = np.array([tier.name for tier in cluster.tiers])
    limiting = np.where(busy.any(axis=1), names[np.argmax(busy, axis=1)], "")
    steps = max(len(found.graph.step_numbers), 1)
    keep = np.flatnonzero(asked)
    jitter, straggler, algorithm, bucket = options
    second = {"units": "s"}
    notes = [str(note) for note in found.notes]
    return xr.Dataset(
        {
            "step_s": ("cards", step[keep], second),
            "alone_s": ("cards", alone[keep], second),
            "messages_s": ("cards", spent.sum(axis=0)[keep] / steps, second),
            "exposed_s": ("cards", exposed[keep], second),
            "slowest": ("cards", factor[keep]),
            "efficiency": ("cards", measured.value[keep]),
            "overhead": ("cards", measured.overhead[keep]),
            "limiting_tier": ("cards", limiting[keep]),
            "exposed_tier_s": (("cards", "tier"), (exposed[:, None] * share)[keep], second),
        },
        {"cards": every[keep], "tier": names},
        {"efficiency": str(measured), "base_cards": found.base_cards, "base_step_s": float(step[at]), "cluster": cluster.name,
         "gradient_bytes": found.gradient_bytes, "messages": len(found.message) // steps, "jitter": jitter, "straggler": straggler,
         "algorithm": algorithm or "fastest", "bucket_bytes": bucket, "notes": notes},
    )  # fmt: skip
