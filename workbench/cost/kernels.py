"""Compiled code of the room: systolic cycles and the search over tiles of a matrix product.

Sources: systolic cycles after Samajdar et al., SCALE-Sim (arXiv 1811.02883); tiles, waves and re-reads after
Zhang et al., LLMCompass (ISCA 2024), and Parashar et al., Timeloop (ISPASS 2019); stalls between issue and data after
Huang et al., GPUMech (MICRO 2014): a core has only its staging memory full of bytes in flight (Little's law).
"""

from __future__ import annotations

import math

import numpy as np
from numba import njit

OS, WS, IS, CUBE = 0, 1, 2, 3
"""Dataflows: output, weight, input stationary; whole tile steps (cube, dot product)."""

(
    CORES, CLOCK, MACS, ROWS, COLS, ARRAYS, FLOW, QM, QN, QK, ACCUMULATOR, STAGING, BUFFER_A, BUFFER_B, PORT, CAST, STEP,
    LATENCY_SHARED, LATENCY_MEMORY, RATE_SHARED, RATE_WRITE, RATE_MEMORY, SHARED, SPLIT, STATIC, ETA_COMPUTE, ETA_MEMORY, LAUNCH,
    IS_VECTOR, STEP_WIDTH, SIZE,
) = range(31)  # fmt: skip
"""Columns of the packed card, see `workbench.cost.pack`."""

SPLIT_LATENCY = 20.0  # shared-level latencies that a split of K adds (write, meet, read, add); chosen on A100, H200, L40S bf16 products
STEP_K = 64.0  # products of K a software-pipelined step covers, unless a fixed tile says otherwise
MOST_SPLIT = 64.0


@njit(cache=True, nogil=True)
def systolic_cycles(flow, rows, cols, m, n, k):
    """Cycles of an m x n x k product on a rows x cols systolic array, fill and drain of every fold included.

    folds (rows + cols + K - 2) - 1 for output stationary, folds (2 rows + cols + M - 2) - 1 for weight and input
    stationary, with folds = ceil(M/R) ceil(N/C), ceil(K/R) ceil(N/C), ceil(K/R) ceil(M/C) [cycles]. Source: SCALE-Sim.
    """
    if m <= 0 or n <= 0 or k <= 0:
        return 0.0
    if flow == 0:
        return math.ceil(m / rows) * math.ceil(n / cols) * (rows + cols + k - 2.0) - 1.0
    if flow == 1:
        return math.ceil(k / rows) * math.ceil(n / cols) * (2.0 * rows + cols + m - 2.0) - 1.0
    return math.ceil(k / rows) * math.ceil(m / cols) * (2.0 * rows + cols + n - 2.0) - 1.0


@njit(cache=True, nogil=True)
def tile_cycles(card, tm, tn, ks):
    """Cycles of one tile on one core at full rate; ``ks`` is already padded to the quantum."""
    if card[FLOW] == 3:
        return tm * tn * ks / card[MACS]
    arrays = card[ARRAYS]
    scale = card[MACS] / (card[ROWS] * card[COLS] * arrays)  # a dtype's rate
    cycles = systolic_cycles(card[FLOW], card[ROWS], card[COLS], tm, tn, ks) / (arrays * scale)
    return max(cycles, tm * tn * ks / card[MACS])


@njit(cache=True, nogil=True)
def memory_bytes(card, tm, tn, m, n, k, operand, total, resident, written):
    """Traffic with the outermost memory [B]: compulsory bytes, and re-reads from the raster panel that fits the shared level.

    One operand is kept by panels in the shared level while the other streams past it: it is read again for every panel.
    """
    if resident:
        return 0.0
    wave = math.sqrt(card[CORES])
    read = total[0] + total[1]
    if read > card[SHARED]:
        wide = max(tn * wave, math.floor(card[SHARED] / (k * operand[1])))
        tall = max(tm * wave, math.floor(card[SHARED] / (k * operand[0])))
        read = min(total[0] * math.ceil(n / wide) + total[1], total[0] + total[1] * math.ceil(m / tall))
    return read + (0.0 if written else total[2])


@njit(cache=True, nogil=True)
def evaluate(card, shape, operand, total, resident, written, tm, tn, split, part, bytes_):
    """Seconds of one tiling; fills ``part`` (compute, port, shared, memory, stalls, overhead) [s] and ``bytes_`` per level [B].

    ``shape`` is batch, m, n, k; ``operand`` the bytes an element of A, B, C; ``total`` their distinct bytes.
    The resources overlap, but not perfectly: their times join as a fourth-power norm, which is never below the largest.
    """
    batch, m, n, k = shape[0], shape[1], shape[2], shape[3]
    ks = math.ceil(k / split / card[QK]) * card[QK]
    units = batch * math.ceil(m / tm) * math.ceil(n / tn) * split
    per = max(1.0, units / card[CORES])
    if card[STATIC] > 0.0:
        per = math.ceil(units / card[CORES])
    fresh = (tm * operand[0] + tn * operand[1]) * ks
    width = max(4.0, operand[2])  # sums are kept in 4 bytes, wider where results are
    partial = width if split > 1.0 else operand[2]
    latency = card[LATENCY_SHARED] + (0.0 if resident else card[LATENCY_MEMORY])
    part[0] = per * tile_cycles(card, tm, tn, ks) / (card[CLOCK] * card[ETA_COMPUTE])
    part[1] = per * fresh / card[PORT]
    bytes_[0] = units * fresh
    sums = 2.0 * width * split * batch * m * n if split > 1.0 else 0.0
    bytes_[1] = units * fresh / card[CAST] + total[2] + sums
    part[2] = (bytes_[1] - total[2]) / card[RATE_SHARED] + total[2] / card[RATE_WRITE]
    bytes_[2] = memory_bytes(card, tm, tn, m, n, k, operand, total, resident, written)
    part[3] = bytes_[2] / (card[RATE_MEMORY] * card[ETA_MEMORY])
    part[4] = per * max(fresh * latency / card[STAGING], math.ceil(ks / card[STEP_WIDTH]) * card[STEP] / card[CLOCK])
    part[5] = card[LAUNCH] + latency + tm * tn * partial / card[PORT]
    if split > 1.0:
        part[5] += SPLIT_LATENCY * card[LATENCY_SHARED]
    most = max(max(part[0], part[1]), max(max(part[2], part[3]), part[4]))
    if most == 0.0:
        return part[5]
    square = 0.0
    for i in range(5):
        ratio = (part[i] / most) ** 2
        square += ratio * ratio
    return part[5] + most * math.sqrt(math.sqrt(square))


@njit(cache=True, nogil=True)
def tile_sizes(quantum, extent, out):
    """Fill ``out`` with candidates, the quantum times 1, 2, 3, 4, 6, 8, ... up to the first that covers ``extent``; return how many."""
    count = 0
    size = quantum
    while count < out.shape[0]:
        out[count] = size
        count += 1
        if size >= extent:
            break
        power = 2.0 ** math.floor(math.log2(size / quantum) + 1e-9) * quantum
        if size > power:
            size = 2.0 * power
        elif power >= 2.0 * quantum:
            size = 1.5 * power
        else:
            size = 2.0 * power
    return count


@njit(cache=True, nogil=True)
def feasible(card, operand, tm, tn):
    """Whether a tile's sums fit the accumulator and its operand steps the (double-buffered) buffers."""
    step = card[QK]
    return (
        tm * tn * max(4.0, operand[2]) <= card[ACCUMULATOR]
        and (tm * operand[0] + tn * operand[1]) * step * 2.0 <= card[STAGING]
        and tm * operand[0] * step <= card[BUFFER_A]
        and tn * operand[1] * step <= card[BUFFER_B]
    )


@njit(cache=True, nogil=True)
def lower_bound(card, shape, operand, total, resident, written, tm, tn):
    """Seconds no split of this tile can undercut; prunes the search.

    Unsplit, a core works through whole tiles; split, at best an even share of all of them, and pays the meeting of the parts.
    """
    tiles = shape[0] * math.ceil(shape[1] / tm) * math.ceil(shape[2] / tn)
    even = math.ceil(tiles / card[CORES]) if card[STATIC] > 0.0 else max(1.0, tiles / card[CORES])
    whole = bound_of_share(card, shape, operand, total, resident, written, tm, tn, tiles, shape[3] * even, 0.0)
    if card[SPLIT] == 0.0 or shape[3] < 2.0 * STEP_K:
        return whole
    most = min(MOST_SPLIT, shape[3] / STEP_K)
    share = max(tiles / card[CORES], 1.0 / most) * shape[3]
    sums = 4.0 * max(4.0, operand[2]) * shape[0] * shape[1] * shape[2]
    split = bound_of_share(card, shape, operand, total, resident, written, tm, tn, tiles, share, sums)
    return min(whole, split + SPLIT_LATENCY * card[LATENCY_SHARED])


@njit(cache=True, nogil=True)
def bound_of_share(card, shape, operand, total, resident, written, tm, tn, tiles, share, sums):
    """Seconds when the busiest core does ``share`` products of K a tile element [1] and ``sums`` bytes of partial sums move [B]."""
    latency = card[LATENCY_SHARED] + (0.0 if resident else card[LATENCY_MEMORY])
    fresh = share * (tm * operand[0] + tn * operand[1])
    moved = tiles * shape[3] * (tm * operand[0] + tn * operand[1]) / card[CAST] + sums
    compute = share * tm * tn / (card[MACS] * card[CLOCK] * card[ETA_COMPUTE])
    port = fresh / card[PORT]
    shared = moved / card[RATE_SHARED] + total[2] / card[RATE_WRITE]
    memory = 0.0 if resident else total[0] + total[1] + (0.0 if written else total[2])
    memory /= card[RATE_MEMORY] * card[ETA_MEMORY]
    stall = max(fresh * latency / card[STAGING], share / card[STEP_WIDTH] * card[STEP] / card[CLOCK])
    power = compute * compute * compute * compute + port * port * port * port + shared * shared * shared * shared
    power += memory * memory * memory * memory + stall * stall * stall * stall
    return card[LAUNCH] + latency + tm * tn * operand[2] / card[PORT] + math.sqrt(math.sqrt(power))


@njit(cache=True, nogil=True)
def search(card, shape, operand, total, resident, written, choice, part, bytes_):
    """Seconds of the best feasible tiling; fills ``choice`` (tm, tn, split), its parts and bytes. The smallest tile is always allowed."""
    tall = np.empty(24)
    wide = np.empty(24)
    rows = tile_sizes(card[QM], shape[1], tall)
    cols = tile_sizes(card[QN], shape[2], wide)
    trial_part = np.empty(6)
    trial_bytes = np.empty(3)
    bounds = np.empty(rows * cols)
    for i in range(rows):
        for j in range(cols):
            fits = i + j == 0 or feasible(card, operand, tall[i], wide[j])
            bounds[i * cols + j] = lower_bound(card, shape, operand, total, resident, written, tall[i], wide[j]) if fits else math.inf
    best = math.inf
    while True:  # tiles in the order of their bounds, until no bound undercuts the best time
        at = np.argmin(bounds)
        if bounds[at] >= best:
            return best
        bounds[at] = math.inf
        tm, tn = tall[at // cols], wide[at % cols]
        tiles = shape[0] * math.ceil(shape[1] / tm) * math.ceil(shape[2] / tn)
        split = 1.0
        while True:
            t = evaluate(card, shape, operand, total, resident, written, tm, tn, split, trial_part, trial_bytes)
            if t < best:
                best = t
                choice[0], choice[1], choice[2] = tm, tn, split
                part[:] = trial_part
                bytes_[:] = trial_bytes
            split *= 2.0
            if card[SPLIT] == 0.0 or split > MOST_SPLIT or shape[3] / split < STEP_K or tiles * split > 4.0 * card[CORES]:
                break


@njit(cache=True, nogil=True)
def idle_seconds(card, shape, seconds, chosen, part):
    """Seconds of a tiling in which cores stand without a tile: of what each core does for itself, the part that waves leave empty."""
    units = shape[0] * math.ceil(shape[1] / chosen[0]) * math.ceil(shape[2] / chosen[1]) * chosen[2]
    even = units / card[CORES]
    per = math.ceil(even) if card[STATIC] > 0.0 else max(1.0, even)
    own = part[0] ** 4 + part[1] ** 4 + part[4] ** 4
    every = own + part[2] ** 4 + part[3] ** 4
    return (seconds - part[5]) * own / every * (1.0 - even / per) if every > 0.0 else 0.0


@njit(cache=True, nogil=True)
def tile_rows(shape, operand, total, copies, column, cards, fixed, seconds, resource, level, detail, choice):
    """Price U products on S cards.

    ``shape`` [U, 4] (batch, m, n, k), ``operand`` [U, 3] bytes an element, ``total`` [U, 3] distinct bytes, ``copies`` [U, 2]
    how many working sets (output sets) compete for the shared level, ``column`` [U] the dtype's column in ``cards`` [S, D, SIZE],
    ``fixed`` [3] a tile and split to use instead of searching (0: search). Fills seconds [U, S], resource [U, S, 8] (by Bound),
    level [U, S, LEVELS], detail [U, S, 3] (launch, fill, idle cores) [s] and choice [U, S, 3]. A product without elements costs nothing.
    """
    part = np.empty(6)
    bytes_ = np.empty(3)
    for u in range(shape.shape[0]):
        for s in range(cards.shape[0]):
            card = cards[s, column[u]]
            if shape[u, 0] <= 0.0 or shape[u, 1] <= 0.0 or shape[u, 2] <= 0.0 or shape[u, 3] <= 0.0:
                continue
            room = card[SHARED]
            resident = (total[u, 0] + total[u, 1] + total[u, 2]) * copies[u, 0] <= room
            written = total[u, 2] * copies[u, 1] <= room
            if fixed[0] > 0.0:
                choice[u, s] = fixed
                t = evaluate(card, shape[u], operand[u], total[u], resident, written, fixed[0], fixed[1], fixed[2], part, bytes_)
            else:
                t = search(card, shape[u], operand[u], total[u], resident, written, choice[u, s], part, bytes_)
            seconds[u, s] = t
            resource[u, s, 2 if card[IS_VECTOR] > 0.0 else 1] = part[0]
            resource[u, s, 3] = part[1]
            resource[u, s, 4] = part[2]
            resource[u, s, 5] = part[3]
            resource[u, s, 6] = part[4] + part[5]
            level[u, s, :3] = bytes_
            detail[u, s, 0] = card[LAUNCH]
            detail[u, s, 1] = part[5] - card[LAUNCH]
            detail[u, s, 2] = idle_seconds(card, shape[u], t, choice[u, s], part)
