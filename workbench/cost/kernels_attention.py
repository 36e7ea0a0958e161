"""Compiled code of fused attention: query tiles against streamed keys and values, online softmax, split keys.

Sources: tiles, one pass over keys and values a tile: Dao et al., FlashAttention (NeurIPS 2022) and FlashAttention-2
(arXiv 2307.08691); a matrix unit that works while the core computes the softmax of the other half of a tile: Shah et al.,
FlashAttention-3 (arXiv 2407.08608); keys split among cores and combined afterwards: Dao et al., Flash-Decoding (2023);
stalls of tiles in flight after Huang et al., GPUMech (MICRO 2014); list scheduling after Graham, Bounds on Multiprocessing
Timing Anomalies (SIAM J. Appl. Math. 1969).
"""

from __future__ import annotations

import math

import numpy as np
from numba import njit

(
    CORES, CLOCK, MACS, COMPUTE, MEMORY, LAUNCH, PORT, STAGING, SUMS, SCORES, RATE_SHARED, RATE_MEMORY, LATENCY_SHARED, LATENCY_MEMORY,
    SHARED, ROWS, QUANTUM_K, QUANTUM_N, SPECIAL, LANES, ASYNC, STEP, SPLIT, CARD,
) = range(24)  # fmt: skip
"""Columns of a card: compute and memory are sustained shares, special and lanes operations a cycle and core, rows the fewest of a tile."""
(
    GROUPS, PACKED, LINES, STREAM, MEAN, MOST, MASKED, WINDOW, SUM, HEAD, VALUE, FIRST, SECOND, CONVERTED, LINE_BYTES, STREAM_BYTES,
    TRAFFIC, OWN, NEW, APPEND, EXTRA, FIXED, LIMIT, PORTABLE, COPIES, ROW,
) = range(26)  # fmt: skip
"""Columns of an operator, see `workbench.cost.attention.operators`."""
(
    CORE, MATRIX, VECTOR, LOCAL, SHARED_TIME, MEMORY_TIME, FILL, LAUNCHES, IDLE, STREAMED, OUTSIDE, SPLITS, TILE, BLOCK, STEPS, PARTS,
) = range(16)  # fmt: skip
"""Parts of a time [s], bytes, and what was chosen."""

LARGEST = 128.0  # rows and columns of a tile; larger ones are not built
FEWEST = 16.0  # the least: one quantum of the matrix instructions (m16n8k16 of PTX, 16x16 cubes)
HELD = 0.75  # part of the registers that holds sums and scores, where they share one file with operands and addresses
STAGES = 3.0  # blocks of keys and values in flight
OVERLAP = 2.0  # norm that joins products and softmax of tiles in flight; chosen, as all constants here, on one half of public rows
OPERATIONS = 6.0  # scale, mask, maximum, subtract, sum, rescale: vector operations a (query, key) pair
TRIPS = 8.0  # dependent latencies of a tile: its index, page, queries, keys, values, last wait, sums, write
RESIDENT = 4.0  # most tiles of a core in flight
EQUAL = 0.9  # tiles whose mean is so near the longest count as equal
TAIL = 0.5  # part of the longest tile by which unequal tiles miss an even share
COMBINE = 10.0  # shared-level latencies of combining split keys
RESIDENT_SHARE = 0.65  # of the usable shared level that one operator's operands keep when it is called again
SCATTER = 3.0  # the append of rows by index reaches a third of the shared level's rate
REREAD = 16.0  # times a portable kernel reads a block from local memory: every fragment of rows again, both operands
PORTABLE_ROWS = 64.0


@njit(cache=True, nogil=True)
def missing(ratio):
    """Share of accesses that miss when ``ratio`` cache sizes are walked in circles: m = 1 - exp(-ratio m), 0 up to a ratio of 1.

    Random replacement: a line survives the ratio x m replacements of a round with probability exp(-ratio m).
    Source: Che, Tung and Wang (IEEE JSAC 2002), in the form of Martina et al. (INFOCOM 2014) for random replacement.
    """
    if ratio <= 1.0:
        return 0.0
    share = 1.0
    for _ in range(64):
        last = share
        share = 1.0 - math.exp(-ratio * share)
        if last - share < 1e-3 * share:
            break
    return share


@njit(cache=True, nogil=True)
def missing_all(ratio, out):
    """Fill ``out`` [N] with `missing` of every ratio."""
    for i in range(len(ratio)):
        out[i] = missing(ratio[i])


@njit(cache=True, nogil=True)
def tile_rows(card, op):
    """Rows of a tile: the fewest that occupy every array (twice for an asynchronous unit), doubled up to what there is and what fits."""
    most = PORTABLE_ROWS if op[PORTABLE] > 0.0 else max(LARGEST, card[ROWS])
    while most > FEWEST and not fits(card, op, most, FEWEST):
        most *= 0.5
    rows = card[ROWS] * (2.0 if card[ASYNC] > 0.0 else 1.0)
    while rows < op[LINES] * op[PACKED] and rows < most:
        rows *= 2.0
    return max(min(rows, most), FEWEST)


@njit(cache=True, nogil=True)
def fits(card, op, rows, block):
    """Whether the sums of a tile and the scores of a block fit their buffers, and the tile with its blocks in flight the staging."""
    outputs = rows * op[SUM] * 4.0
    scores = rows * block * 4.0
    if card[SCORES] > 0.0:  # scores leave the accumulator for the vector unit's buffer, where the output is kept
        held = max(scores, outputs) <= card[SUMS] and scores + outputs <= card[SCORES]
    else:
        held = scores + outputs <= HELD * card[SUMS]
    return held and rows * op[LINE_BYTES] + STAGES * block * op[STREAM_BYTES] <= card[STAGING]


@njit(cache=True, nogil=True)
def block_columns(card, op, rows):
    """Keys of a block: the largest power of two up to `LARGEST` that fits beside the tile."""
    block = LARGEST
    while block > FEWEST and not fits(card, op, rows, block):
        block *= 0.5
    return block


@njit(cache=True, nogil=True)
def step_times(card, op, rows, block, out):
    """Fill ``out`` with the seconds of one step (rows x block pairs): matrix, vector, local port, paced (tiles in flight), alone.

    Alone, a synchronous core does one after the other; in flight, products and softmax overlap as far as the norm of degree
    `OVERLAP` says. An asynchronous matrix unit overlaps them within one tile.
    """
    pairs = rows * block
    clock = card[CLOCK]
    head = op[FIRST] * math.ceil(op[HEAD] / card[QUANTUM_K]) * card[QUANTUM_K]
    value = op[SECOND] * math.ceil(op[VALUE] / card[QUANTUM_N]) * card[QUANTUM_N]
    matrix = pairs * (head + value) / (card[MACS] * card[COMPUTE] * clock)
    vector = (pairs * (1.0 / card[SPECIAL] + OPERATIONS / card[LANES]) + block * op[CONVERTED] / card[LANES]) / clock
    local = block * op[STREAM_BYTES] / card[PORT]
    hidden = card[ASYNC] > 0.0 and op[PORTABLE] == 0.0
    if op[PORTABLE] > 0.0:
        local *= REREAD
    paced = max((matrix**OVERLAP + vector**OVERLAP) ** (1.0 / OVERLAP), local)
    alone = paced if hidden else matrix + vector + (local if op[PORTABLE] > 0.0 else 0.0)
    out[0], out[1], out[2], out[3], out[4] = matrix, vector, local, paced, max(paced, alone) + card[STEP] / clock


@njit(cache=True, nogil=True)
def busiest(units, cores, resident, steps, mean, longest, equal, paced, alone, start):
    """Seconds of the busiest core.

    ``units`` tiles of ``mean`` steps (the longest of ``longest``), up to ``resident`` of them in flight on a core; ``start`` is
    the latency of a tile. Equal tiles go in whole waves; unequal ones are an even share and part of the longest (Graham).
    """
    share = units / cores
    chain = alone * longest + start
    if equal:
        waves = math.ceil(share)
        step = max(paced, alone / min(waves, resident))
        return max(chain, waves * step * steps + start * math.ceil(waves / resident))
    even = max(share, 1.0)
    step = max(paced, alone / min(even, resident))
    body = even * step * mean + start * max(1.0, even / resident)
    if share > 1.0:
        body += TAIL * alone * longest
    return max(chain, body)


@njit(cache=True, nogil=True)
def shape(card, op, rows, block, out):
    """Fill ``out`` [6] with what a tiling comes to: tiles, steps a tile (mean, longest), whether they count as equal, tiles in flight.

    Grouped heads share a tile where they make fewer ones. The last slot is the share of accesses that miss the shared level.
    """
    groups, span = op[GROUPS], rows
    tiles = groups * op[PACKED] * math.ceil(op[LINES] / rows)
    packed = groups * math.ceil(op[LINES] * op[PACKED] / rows)
    if packed < 0.9 * tiles and op[PORTABLE] == 0.0:
        tiles, span = packed, rows / op[PACKED]
    most, mean = op[MOST], op[MEAN]
    ragged = 1.0 if op[WINDOW] > 0.0 else 0.0  # a window begins and ends inside a block
    equal = op[MASKED] == 0.0
    if not equal:
        span = min(span, op[LINES])
        most = min(op[STREAM], op[WINDOW] + span) if op[WINDOW] > 0.0 else most
        mean = min(mean + 0.5 * span, most)
        equal = mean >= EQUAL * most
    longest = min(math.ceil(op[STREAM] / block), math.ceil(max(most - ragged, 1.0) / block) + ragged)
    held = math.floor(card[STAGING] / (rows * op[LINE_BYTES] + block * op[STREAM_BYTES]))
    sums = card[SCORES] if card[SCORES] > 0.0 else card[SUMS]
    held = min(RESIDENT, held, math.floor(sums / (rows * (op[SUM] + block) * 4.0)))
    out[0], out[1], out[2] = tiles, longest if equal else min(mean / block + 0.5 + 0.5 * ragged, longest), longest
    out[3], out[4] = 1.0 if equal else 0.0, max(held, 1.0)
    out[5] = missing((op[OWN] + op[NEW]) * op[COPIES] / (card[SHARED] * RESIDENT_SHARE)) if card[SHARED] > 0.0 else 1.0


@njit(cache=True, nogil=True)
def evaluate(card, op, best):
    """Seconds of one operator on one card by its best split of keys; fills ``best`` (see `PARTS`)."""
    step, of = np.empty(5), np.empty(6)
    rows = tile_rows(card, op)
    block = block_columns(card, op, rows)
    step_times(card, op, rows, block, step)
    shape(card, op, rows, block, of)
    tiles, steps, longest, equal, miss = of[0], of[1], of[2], of[3] > 0.0, of[5]
    latency = card[LATENCY_SHARED] + (card[LATENCY_MEMORY] if miss > 0.5 else 0.0)
    outer = card[RATE_MEMORY] * card[MEMORY]
    memory = op[OWN] * miss / outer
    append = max(op[APPEND] * miss / outer, op[APPEND] * SCATTER / card[RATE_SHARED])
    least = math.inf
    split = 1.0 if op[FIXED] == 0.0 else min(op[FIXED], longest)
    while True:
        units = tiles * split
        each = math.ceil(longest / split)
        own = each if equal else min(max(steps / split, min(1.0, steps)), each)
        core = busiest(units, card[CORES], of[4], each, own, each, equal, step[3], step[4], TRIPS * latency)
        streamed = units * own * block * op[TRAFFIC]
        shared = streamed / card[RATE_SHARED]
        fill, launches = latency + append, 1.0 + op[EXTRA]
        if split > 1.0:
            partial = units * min(rows, op[LINES] * op[PACKED]) * op[SUM] * 8.0
            fill += COMBINE * card[LATENCY_SHARED] + partial / card[RATE_SHARED]
            launches += 1.0
        total = launches * card[LAUNCH] + fill + math.sqrt(math.sqrt(core**4 + shared**4 + memory**4))
        if total < least:
            least = total
            even = math.ceil(units / card[CORES]) if equal else max(units / card[CORES], 1.0)
            busy = even * own
            best[CORE], best[MATRIX], best[VECTOR], best[LOCAL] = core, busy * step[0], busy * step[1], busy * step[2]
            best[SHARED_TIME], best[MEMORY_TIME], best[FILL], best[LAUNCHES] = shared, memory, fill, launches * card[LAUNCH]
            best[IDLE], best[STREAMED] = 1.0 - min(1.0, units / card[CORES] / even), streamed
            best[OUTSIDE] = (op[OWN] + op[APPEND]) * miss
            best[SPLITS], best[TILE], best[BLOCK], best[STEPS] = split, rows, block, busy
        split *= 2.0
        if op[FIXED] > 0.0 or card[SPLIT] == 0.0 or split > min(longest, op[LIMIT]):
            return least


@njit(cache=True, nogil=True)
def price(rows, cards, column, seconds, parts):
    """Price U operators [U, ROW] on S cards [S, D, CARD]; fills seconds [U, S] and parts [U, S, PARTS]."""
    for u in range(rows.shape[0]):
        for s in range(cards.shape[0]):
            seconds[u, s] = evaluate(cards[s, column[u]], rows[u], parts[u, s])
