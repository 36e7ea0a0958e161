"""Seconds of an all-reduce whose messages are compressed: the volume, and the work of encoding and decoding it.

What can be added while it is compressed (low rank, sketches) is reduced as it is, only smaller. Signs, quantised values and chosen
entries (top-k) cannot: either every card gathers the payloads of all and decodes them, which moves n/(2 r) of what a ring moves, or
each card gathers one part from all (all-to-all), adds, encodes the sum anew and all gather it. The cheaper of both is taken.

Sources: Seide et al., 1-bit SGD (Interspeech 2014) and Alistarh et al., QSGD (NeurIPS 2017) for payloads that do not add; Vogels et al.,
PowerSGD (NeurIPS 2019) for those that do; Tang et al., 1-bit Adam (ICML 2021), section 5, for the exchange and gather form.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from workbench.errors import Refused
from workbench.hardware.cluster import ClusterSpec
from workbench.network.curve import curve
from workbench.network.groups import Group
from workbench.operators.table import Kind


@dataclass(frozen=True)
class Codec:
    """A compression: ``ratio`` bytes become one, at ``rate`` uncompressed bytes a second either way, by kernels of ``launch`` seconds.

    ``adds``: payloads can be summed as they are. ``rate`` is that of one card: payloads of several cards are decoded one after another.
    ``launch``: 5 us as a GPU's kernel and the call that starts it take together, see ``runtime.launch_overhead`` of the catalogue.
    """

    ratio: float
    rate: float
    adds: bool = False
    launch: float = 5e-6


def compressed_s(cluster: ClusterSpec, group: Group, codec: Codec, bytes: ArrayLike) -> np.ndarray:
    """Return the time of a compressed all-reduce.

    Parameters
    ----------
    cluster : ClusterSpec
    group : Group
    codec : Codec
    bytes : array_like
        Uncompressed size of the reduced vector [B].

    Returns
    -------
    ndarray of float64
        [s]. With S bytes, n members, ratio r, rate C and launch L: added, ``2 (L + S/C) + allreduce(S/r)``; gathered,
        ``2 L + (1 + n) S/C + allgather(n S/r)``; exchanged, ``4 L + (3 + 1/n) S/C + alltoall(S/r) + allgather(S/r)``.

    Raises
    ------
    Refused
        A ratio below 1 or a rate that is not positive.
    """
    if not codec.ratio >= 1 or not codec.rate > 0:
        raise Refused("compression", f"ratio {codec.ratio:g}, rate {codec.rate:g} B/s", "give a ratio of at least 1 and a rate above 0")
    size = np.asarray(bytes, dtype=np.float64)
    small, once, n = size / codec.ratio, size / codec.rate, group.size
    if n == 1:
        return np.zeros_like(size)
    if codec.adds:
        return 2.0 * (codec.launch + once) + curve(cluster, Kind.ALL_REDUCE, group).seconds(small)
    gather = curve(cluster, Kind.ALL_GATHER, group)
    gathered = 2.0 * codec.launch + (1.0 + n) * once + gather.seconds(n * small)
    exchanged = 4.0 * codec.launch + (3.0 + 1.0 / n) * once + gather.seconds(small)
    exchanged = exchanged + curve(cluster, Kind.ALL_TO_ALL, group).seconds(small)
    return np.minimum(gathered, exchanged)


def pays_from(cluster: ClusterSpec, group: Group, codec: Codec, largest: float = 1e12) -> tuple[float, float] | None:
    """Return the range of sizes [B] in which compressing an all-reduce takes less time; None where it never does.

    Parameters
    ----------
    cluster : ClusterSpec
    group : Group
    codec : Codec
    largest : float
        Sizes from 1 B up to this one are looked at, 200 a factor of ten.

    Returns
    -------
    tuple of float or None
        First and last size that pays; the last is infinite where ``largest`` itself pays.
    """
    sizes = np.geomspace(1.0, largest, int(200 * np.log10(largest)) + 1)
    plain = curve(cluster, Kind.ALL_REDUCE, group).seconds(sizes)
    pays = np.flatnonzero(compressed_s(cluster, group, codec, sizes) < plain)
    if not len(pays):
        return None
    last = float(sizes[pays[-1]])
    return float(sizes[pays[0]]), np.inf if pays[-1] == len(sizes) - 1 else last
