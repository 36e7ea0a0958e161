"""Seconds of a collective over its size: the lower envelope of straight lines, one an algorithm and protocol.

Every algorithm takes ``steps x latency + bytes / bandwidth`` (Hockney, The communication challenge for MPP, Parallel Computing 1994), so
the best choice over all sizes is the lower envelope of lines: never negative, never falling with size, with a floor at zero bytes, and
the sizes where one algorithm overtakes another are where lines cross. A hierarchical collective whose message is cut into ``c`` chunks
takes the sum of its tiers once and the longest c - 1 times more (a pipeline), a line as well.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import ArrayLike

from workbench.errors import Refused
from workbench.hardware.cluster import ClusterSpec, Library, ProtocolSpec
from workbench.network.groups import Group
from workbench.network.traffic import Site, Traffic, algorithms
from workbench.operators.table import Kind

MESSAGES = (Kind.SEND_RECV, Kind.ALL_TO_ALL)
"""Kinds in which members send what others alone receive."""


@dataclass(frozen=True)
class Curve:
    """Lines of the choices a library has for one collective of one group, cheapest choices only.

    Lines are ordered from small sizes to large: falling slope, growing start. ``busy[k, t]`` is the share of the busiest link of tier t
    that line k uses while bytes flow [s/B].
    """

    algorithm: tuple[str, ...]
    protocol: tuple[str, ...]
    start_s: np.ndarray  # float64 [K] [s]
    per_byte_s: np.ndarray  # float64 [K] [s/B]
    busy: np.ndarray  # float64 [K, T] [s/B]

    def seconds(self, bytes: ArrayLike) -> np.ndarray:
        """Return the time of messages [s].

        Parameters
        ----------
        bytes : array_like
            Size of the whole message of one member: the reduced vector, the gathered output, the scattered input, what one member
            sends to all, or to its peer [B].
        """
        return envelope(_sizes(bytes), self.start_s, self.per_byte_s)[0]

    def choice(self, bytes: ArrayLike) -> np.ndarray:
        """Return the line that is best for messages: an index of ``algorithm`` and ``protocol``."""
        return envelope(_sizes(bytes), self.start_s, self.per_byte_s)[1]

    def link_load(self, bytes: ArrayLike) -> np.ndarray:
        """Return the share of its bandwidth that the busiest link of every tier carries meanwhile, shape [..., T]; at most 1."""
        size = _sizes(bytes)
        seconds, line = envelope(size, self.start_s, self.per_byte_s)
        moved = self.busy[line] * size[..., None]
        return np.divide(moved, seconds[..., None], out=np.zeros_like(moved), where=seconds[..., None] > 0)

    @property
    def crossings(self) -> np.ndarray:
        """Sizes [B] from which the next line is the better one, float64 [K - 1]."""
        return np.diff(self.start_s) / -np.diff(self.per_byte_s)


def envelope(size: np.ndarray, start_s: np.ndarray, per_byte_s: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the least of lines at every size, and which it is.

    Parameters
    ----------
    size : ndarray
        [B].
    start_s, per_byte_s : ndarray, shape (K,)
        Lines of a lower envelope, slopes falling [s], [s/B].

    Returns
    -------
    seconds : ndarray of float64
        [s], shape of ``size``.
    line : ndarray of int64
    """
    steps = np.diff(start_s) / -np.diff(per_byte_s)
    line = np.searchsorted(steps, size, side="right")
    return start_s[line] + per_byte_s[line] * size, line


def curve(cluster: ClusterSpec, kind: Kind, group: Group, algorithm: str = "", protocol: str = "") -> Curve:
    """Return how long a collective of a group takes on a cluster.

    Parameters
    ----------
    cluster : ClusterSpec
    kind : Kind
        A collective.
    group : Group
    algorithm, protocol : str
        Names to keep to; all when empty.

    Returns
    -------
    Curve

    Raises
    ------
    Refused
        A kind that is no collective, or a choice the group or the library does not have.
    """
    return _curve(cluster, kind, group, algorithm, protocol)


@lru_cache(maxsize=4096)
def _curve(cluster: ClusterSpec, kind: Kind, group: Group, algorithm: str, protocol: str) -> Curve:
    tiers = len(cluster.tiers)
    if group.size == 1:
        return Curve(("none",), ("none",), np.zeros(1), np.zeros(1), np.zeros((1, tiers)))
    site = Site(cluster, group)
    names, starts, slopes, busy = [], [], [], []
    offered: set[str] = set()
    for traffic in algorithms(kind, site):
        for way in cluster.library.protocols:
            if not _has(cluster.library, kind, traffic, way):
                continue
            offered.update((traffic.algorithm, way.name))
            if algorithm not in ("", traffic.algorithm) or protocol not in ("", way.name):
                continue
            for chunks in {1, cluster.library.chunks if not traffic.together else 1}:
                start, slope, flow = _line(site, traffic, way, chunks, kind in MESSAGES)
                names.append((traffic.algorithm, way.name))
                starts.append(start)
                slopes.append(slope)
                busy.append(flow)
    if not names:
        asked = " and ".join(filter(None, (algorithm, protocol))) or kind.name.lower()
        raise Refused(
            cluster.name,
            f"no way to do {kind.name.lower()} of {group.size} cards by {asked}",
            f"choose among {', '.join(sorted(offered))}" if offered else "price it with the cost model",
        )
    keep = _lowest(np.array(starts), np.array(slopes))
    chosen = [names[k] for k in keep]
    return Curve(
        tuple(a for a, _ in chosen), tuple(p for _, p in chosen), np.array(starts)[keep], np.array(slopes)[keep], np.array(busy)[keep]
    )


def _has(library: Library, kind: Kind, traffic: Traffic, way: ProtocolSpec) -> bool:
    """Whether a library does a collective by an algorithm and a protocol."""
    if kind in MESSAGES:
        return way.messages and not way.in_network
    return traffic.in_network == way.in_network and traffic.algorithm in library.algorithms


def _line(site: Site, traffic: Traffic, way: ProtocolSpec, chunks: int, messages: bool) -> tuple[float, float, np.ndarray]:
    """Start [s], slope [s/B] and flow over the busiest link of every tier [s/B] of one choice."""
    cluster, share = site.cluster, way.message_share if messages and way.message_share else way.share
    launch = way.launch + (cluster.library.message_launch if messages else 0.0)
    step = np.array([tier.latency + way.step(cluster.medium(t)) for t, tier in enumerate(cluster.tiers)])
    wait = cluster.step_factor * step * np.array(traffic.steps)
    start = cluster.launch_factor * launch + wait.sum()
    flow = np.array([_flow(site, traffic, t) for t in range(len(cluster.tiers))])
    carried = flow / share
    inner = cluster.tiers[0]
    own = cluster.library.copy * traffic.copied / (inner.bandwidth_per_direction * inner.ports * inner.efficiency * share)
    if traffic.together:
        return start, carried.max() + own, flow
    return start + (chunks - 1) * wait.max(), (carried.sum() + (chunks - 1) * carried.max()) / chunks + own, flow


def _flow(site: Site, traffic: Traffic, t: int) -> float:
    """Seconds that the busiest link of tier t works for a byte of the message [s/B].

    What leaves an instance of the tier below goes through its ports, shared with the groups beside this one, but through no more than
    the cards that drive them have; what leaves a leaf, through the links above it.
    """
    tier, group = site.cluster.tiers[t], site.group
    port = tier.bandwidth_per_direction * tier.efficiency
    ports = port * tier.ports * site.cluster.below[t] / group.beside[t]
    driven = port * max(1.0, tier.ports) * traffic.lanes[t]
    return max(traffic.out[t] / min(driven, ports), traffic.up[t] / ports)


def _lowest(start: np.ndarray, slope: np.ndarray) -> list[int]:
    """Return the lines of the lower envelope over sizes from 0, from small sizes to large."""
    order = sorted(range(len(start)), key=lambda k: (start[k], slope[k]))
    kept: list[int] = []
    for k in order:
        if kept and slope[k] >= slope[kept[-1]]:
            continue  # starts later and climbs no slower
        while len(kept) > 1 and _cross(start, slope, kept[-2], k) <= _cross(start, slope, kept[-2], kept[-1]):
            kept.pop()
        kept.append(k)
    return kept


def _cross(start: np.ndarray, slope: np.ndarray, one: int, other: int) -> float:
    return float((start[other] - start[one]) / (slope[one] - slope[other]))


def _sizes(bytes: ArrayLike) -> np.ndarray:
    size = np.asarray(bytes, dtype=np.float64)
    if np.any(~(size >= 0)) or np.any(np.isinf(size)):
        raise Refused("collective", "a negative or unknown size", "give bytes, 0 or more")
    return size
