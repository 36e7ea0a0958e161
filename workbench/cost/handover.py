"""The way of tiles between a matrix core and a vector core that share no buffer: through a level of the chip.

On cards whose cube and vector cores are separate (Ascend 910B and 910C) sums leave the cube core for L2, a flag tells the vector
core, which reads them, and the other way round: fused epilogues, attention scores, weights that are dequantised on the way in.
Interval analysis of the pair after Huang et al., GPUMech (MICRO 2014), with tiles in the place of instructions: two stages, a trip
between them, and so many tiles in flight as there are buffers (Little, Operations Research 9, 1961). Source of the hardware's side:
Huawei, Ascend C operator development guide, basic architecture: "separated", AIC and AIV exchange data through global memory;
"coupled" cards (310, 910A) do not.

A card says so by ``vector.exchange``, the level; without it the units share a core's own memory and nothing here applies.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

TRIPS = 2.0  # latencies of the exchange level a tile waits: its last write must land, its first read come back
DEPTH = 2.0  # tiles in flight between the two cores: double buffering


@dataclass(frozen=True)
class Handover:
    """What the exchange adds; arrays of one shape.

    ``stall`` is the time in which the slower core waits for the other although both have work, ``fill`` the first tile's way in
    and the last one's out [s], ``moved`` the bytes written to and read from the exchange level by all cores [B].
    """

    stall: np.ndarray
    fill: np.ndarray
    moved: np.ndarray


def handover(
    matrix_s: ArrayLike,
    vector_s: ArrayLike,
    tiles: ArrayLike,
    tile_bytes: ArrayLike,
    cores: ArrayLike,
    rate: ArrayLike,
    latency: ArrayLike,
    depth: float = DEPTH,
    turns: ArrayLike = 1.0,
) -> Handover:
    """Return what handing tiles over costs a core pair beyond its slower stage.

    A tile takes a = matrix_s / tiles on one core, b = vector_s / tiles on the other and m = tile_bytes / (rate / cores) plus
    `TRIPS` latencies on each way between them, of which there are ``turns``. With ``depth`` tiles in flight on each way the pair
    finishes one every max(a, b, turns x m, (a + b + turns x (m + TRIPS latency)) / (depth x turns)): either core, the level
    itself, or the tiles in flight set the pace. What exceeds max(a, b) is stall.

    Parameters
    ----------
    matrix_s, vector_s : array_like
        Work of the busiest matrix core and of the vector cores paired with it [s].
    tiles : array_like
        Tiles that the pair exchanges.
    tile_bytes : array_like
        Bytes of one tile, mean of the turns [B]; it is written and read at the same time, by different cores.
    cores : array_like
        Core pairs that share the level.
    rate : array_like
        Sustained bandwidth of the level in either direction [B/s].
    latency : array_like
        Of the level [s].
    depth : float
        Tiles in flight on each way.
    turns : array_like
        Ways a tile goes: 1 to an epilogue, 2 for attention scores (there, and back as weights), 3 with its output.

    Returns
    -------
    Handover
        Nothing where there are no tiles.
    """
    a, b, count, each, pairs, rates, delay, ways = np.broadcast_arrays(
        *(np.asarray(value, dtype=np.float64) for value in (matrix_s, vector_s, tiles, tile_bytes, cores, rate, latency, turns))
    )
    some = np.maximum(count, 1.0)
    slower = np.maximum(a, b) / some
    trip = ways * (each * pairs / rates + TRIPS * delay)
    pace = np.maximum(np.maximum(slower, ways * each * pairs / rates), ((a + b) / some + trip) / np.minimum(depth * ways, some))
    busy = count > 0
    stall = np.where(busy, (pace - slower) * some, 0.0)
    fill = np.where(busy & (count > 1), (a + b) / some + trip - pace, 0.0)
    return Handover(stall, np.maximum(fill, 0.0), np.where(busy, 2.0 * count * ways * each * pairs, 0.0))
