"""Compiled code of the room: systolic cycles, the time of one tiling of a matrix product, and the search over tilings.

Sources: systolic cycles and buffer accesses after Samajdar et al., SCALE-Sim (arXiv 1811.02883); tiles, waves and re-reads after
Zhang et al., LLMCompass (ISCA 2024), and Parashar et al., Timeloop (ISPASS 2019); stalls between issue and data after
Huang et al., GPUMech (MICRO 2014): a core has only its staging memory full of bytes in flight (Little's law).

`times` holds every term of a product. The search knows nothing of them but that none falls when one of its arguments after ``job``
grows: a term may change without a change below it. Both are written without branches (but on ``job``, which do not vary) so that
loops over tiles compile to vector instructions; `Job` keeps rates as seconds a byte, for a division costs as much as ten products.

The search is exact over every tile of whole quanta that fits and every split of K: of the sizes that cut an axis into as many tiles
only the smallest counts, for it does least, and a tile's splits are priced only where a bound over all of them undercuts the best.
(An axis longer than `WHOLE` quanta is thinned: its sizes grow by a few per cent.)
"""

from __future__ import annotations

# long: functions that call each other compiled lie in one file
import math
from typing import NamedTuple

import numpy as np
from numba import njit

OS, WS, IS, CUBE = 0, 1, 2, 3
"""Dataflows: output, weight, input stationary; whole tile steps (cube, dot product)."""

(
    CORES, CLOCK, MACS, ROWS, COLS, ARRAYS, FLOW, QM, QN, QK, ACCUMULATOR, STAGING, BUFFER_A, BUFFER_B, PORT, CAST, STEP,
    LATENCY_SHARED, LATENCY_MEMORY, RATE_SHARED, RATE_WRITE, RATE_MEMORY, SHARED, SPLIT, STATIC, ETA_COMPUTE, ETA_MEMORY, LAUNCH,
    IS_VECTOR, STEP_WIDTH, DEPTH, PORT_A, PORT_B, PORT_SUM, IN_FLIGHT, SINGLE, DOUBLING, REACH, MIDDLE,
) = range(39)  # fmt: skip
"""Columns of the packed card, see `workbench.cost.pack`."""
MIDDLE_COUNT, MIDDLE_RATE, MIDDLE_SIZE = 1, 2, 4
"""From MIDDLE on, for each level between cores and the shared one: capacity, instances (0: no such level), rate of all, multicast."""
SIZE = MIDDLE + MIDDLE_SIZE
"""Columns of a card with at most one such level; each further one adds MIDDLE_SIZE."""
FIRST_MIDDLE, MORE_MIDDLES = 6, 8
"""Where `record` puts the bytes of the first level between, and from where on those of the others."""

SPLIT_LATENCY = 20.0  # shared-level latencies that a split of K adds (write, meet, read, add); chosen on A100, H200, L40S bf16 products
WALK_BYTES = 32.0  # of a row that one translated address serves: a sector of a cache
WALKS = 16.0  # page walks of a core under way at once; chosen on fp32 products of P100 alone, the one measured card that states a reach
STEP_K = 64.0  # products of K a software-pipelined step covers, unless a fixed tile says otherwise
MOST_SPLIT = 64.0  # bounds the search by judgement: more parts add sums than hide latency; K bounds it first below 64 STEP_K
WAVES = 4.0  # waves of cores up to which K is split
UNBOUND = 1e30  # a rate nobody stated
WHOLE = 2048.0  # quanta along an axis up to which every size is tried
THIN = 100.0  # beyond, sizes grow by log(quanta) / THIN
TILES = 128 * 128 + 40  # most tiles tried; no multiple of a page, so that parts of the scratch array do not share lines of a cache
FAST = {"nnan", "nsz", "contract"}  # no division becomes a product: counts are rounded up


class Level(NamedTuple):
    """A level between the cores and the outermost memory, as a job sees it."""

    read: float  # [s/B] of all instances together
    cast: float  # 1 / cores served by a read
    instances: float
    wave: float  # 1 / tiles a side that the cores of an instance work on at once
    fit_m: float  # panels its capacity makes of m and n, 0 where both operands fit
    fit_n: float


class Job(NamedTuple):
    """A product on a card: all that does not depend on the tiling. Rates are kept as seconds a byte or a multiply-add."""

    batch: float
    m: float
    n: float
    k: float
    a: float  # bytes an element
    b: float
    c: float
    width: float  # of sums
    all_a: float  # distinct bytes
    all_b: float
    all_c: float
    cores: float
    core: float  # 1 / cores
    static: float
    most: float  # splits
    flow: float
    rows: float
    cols: float
    depth: float
    fold: float  # [s] a cycle of a systolic core, 0 for a cube
    mac: float
    port: float
    port_a: float
    port_b: float
    port_sum: float
    feeds: float  # 1: a rate of the array's own buffers is stated
    write: float
    memory: float
    fixed: float  # [s] launch and latency
    parting: float  # [s] a split adds
    stall: float  # [s] waited a byte of staging
    least_stall: float  # [s] waited a product of K
    step: float  # [s] a step
    qk: float
    step_k: float
    single: float  # 1: load and compute of a core do not overlap
    doubling: float  # 1: tiles and splits are powers of two, tiles also thrice one
    outer_read: float  # share not found in the shared level
    outer_write: float
    shared: Level
    middles: float  # levels between the cores and the shared one
    inner: Level  # the first of them


class Times(NamedTuple):
    """One tiling: busy seconds of what overlaps, seconds of what does not, and traffic [B]."""

    compute: float
    port: float
    shared: float
    memory: float
    stall: float
    serial: float
    local_bytes: float
    shared_bytes: float
    memory_bytes: float


@njit(cache=True, nogil=True, error_model="numpy", fastmath=FAST, forceinline=True)
def fold_cycles(flow, rows, cols, m, n, k, whole):
    """`systolic_cycles` of a product that is not empty; not ``whole``: the part that a split of K divides, at the least."""
    down = m if flow == 0 else k
    across = m if flow == 2 else n
    along = k if flow == 0 else (m if flow == 1 else n)
    fill = cols - 2.0 + (rows if flow == 0 else 2.0 * rows)
    folds = np.ceil(down / rows)
    if not whole:
        folds = folds if flow == 0 else down / rows
        fill = 0.0 if flow == 0 else fill
    return folds * np.ceil(across / cols) * (fill + along) - 1.0


@njit(cache=True, nogil=True)
def systolic_cycles(flow, rows, cols, m, n, k):
    """Cycles of an m x n x k product on a rows x cols systolic array, fill and drain of every fold included.

    folds (rows + cols + K - 2) - 1 for output stationary, folds (2 rows + cols + M - 2) - 1 for weight and input
    stationary, with folds = ceil(M/R) ceil(N/C), ceil(K/R) ceil(N/C), ceil(K/R) ceil(M/C) [cycles]. Source: SCALE-Sim.
    """
    return 0.0 if m <= 0 or n <= 0 or k <= 0 else fold_cycles(flow, rows, cols, m, n, k, True)


@njit(cache=True, nogil=True, error_model="numpy", fastmath=FAST, forceinline=True)
def feeds(job, tm, tn, ks):
    """Bytes a tile moves between the array and its buffers of A, of B and of sums [B].

    An operand passes once for every block of the other that the array works on, the stationary one once. Sums are read and
    written once for every step of a cube, every fold of K on a systolic array, and stay in an output stationary one. Source: SCALE-Sim.
    """
    flow = job.flow
    a = tm * (1.0 if flow == 2 else np.ceil(tn / job.cols))
    b = tn * (1.0 if flow == 1 else np.ceil(tm / (job.cols if flow == 2 else job.rows)))
    passes = 1.0 if flow == 0 else (2.0 * np.ceil(ks / job.depth) if flow == 3 else 2.0 * np.ceil(ks / job.rows) - 1.0)
    return a * job.a * ks, b * job.b * ks, tm * tn * job.width * passes


@njit(cache=True, nogil=True, error_model="numpy", fastmath=FAST, forceinline=True)
def reads(job, level, regions, tall, wide):
    """Bytes of A and B that the instances of a level fetch from outside [B].

    The results are divided among ``regions`` instances in squares. In each, one operand is kept by panels, at least as wide as
    what its cores work on at once, while the other streams past: it is read again for every panel.
    """
    share = 1.0 / np.sqrt(regions)
    again_a = np.ceil(share * max(1.0, min(wide * level.wave, level.fit_n)))
    again_b = np.ceil(share * max(1.0, min(tall * level.wave, level.fit_m)))
    return min(job.all_a * again_a + job.all_b, job.all_a + job.all_b * again_b) / share


@njit(cache=True, nogil=True, error_model="numpy", fastmath=FAST, forceinline=True)
def through(job, level, asked, tall, wide, most):
    """Bytes that the instances of a level between give to what ``asked`` for so many, and the bytes they fetch from outside [B]."""
    given = asked * level.cast
    regions = max(1.0, min(level.instances / (job.batch * most), tall * wide))
    return given, min(given, reads(job, level, regions, tall, wide))


@njit(cache=True, nogil=True, error_model="numpy", fastmath=FAST, forceinline=True)
def row_level(row):
    """`Level` of a row of levels."""
    return Level(row[0], row[1], row[2], row[3], row[4], row[5])


@njit(cache=True, nogil=True, error_model="numpy", fastmath=FAST, forceinline=True)
def times(job, rest, tm, tn, tall, wide, per, ks, units, split, most, whole, deep):
    """Every term of a tiling; none may fall when an argument after ``job`` grows (``most`` aside), for `bound` calls it too.

    ``tall`` x ``wide`` tiles of ``tm`` x ``tn`` results are cut along K in ``split`` (a bound: up to ``most``) parts of ``ks``
    products: ``units`` in all, ``per`` on the busiest core. Not ``whole``: nothing of K is rounded up.
    """
    side = tm * job.a + tn * job.b
    share = per * ks
    compute = share * tm * tn * job.mac
    if job.fold > 0.0:
        compute = max(compute, per * fold_cycles(job.flow, job.rows, job.cols, tm, tn, ks, whole) * job.fold)
    port = share * side * job.port
    if job.feeds > 0.0:
        a, b, sums = feeds(job, tm, tn, ks)
        port = max(port, per * max(a * job.port_a, max(b * job.port_b, sums * job.port_sum)))
    fetched = local = units * ks * side
    shared = 0.0
    if job.middles > 0.0:
        given, fetched = through(job, job.inner, fetched, tall, wide, most)
        shared = given * job.inner.read
    if deep:
        for i in range(int(job.middles) - 1):
            level = row_level(rest[i])
            given, fetched = through(job, level, fetched, tall, wide, most)
            shared = max(shared, given * level.read)
    parted = 1.0 if split > 1.0 else 0.0
    fetched = fetched * job.shared.cast + parted * split * (2.0 * job.width * job.batch * job.m * job.n)
    shared = max(shared, fetched * job.shared.read + job.all_c * job.write)
    outside = reads(job, job.shared, 1.0, tall, wide) * job.outer_read + job.all_c * job.outer_write
    rounds = ks / job.step_k
    stall = max(share * max(side * job.stall, job.least_stall), per * (np.ceil(rounds) if whole else rounds) * job.step)
    drain = tm * tn * (job.width if split > 1.0 else job.c) * job.port
    serial = job.fixed + drain + parted * job.parting + job.single * compute
    return Times(compute, port, shared, outside * job.memory, stall, serial, local, fetched + job.all_c, outside)


@njit(cache=True, nogil=True, error_model="numpy", fastmath=FAST, forceinline=True)
def power(job, t):
    """Fourth power of the seconds of what overlaps: imperfectly, as a fourth-power norm, never below the longest [s^4]."""
    compute = t.compute * t.compute * (1.0 - job.single)
    port, shared, memory, stall = t.port * t.port, t.shared * t.shared, t.memory * t.memory, t.stall * t.stall
    return compute * compute + port * port + shared * shared + memory * memory + stall * stall


@njit(cache=True, nogil=True, error_model="numpy", fastmath=FAST, forceinline=True)
def evaluate(job, rest, tm, tn, tall, wide, split, deep):
    """`Times` of a tiling; ``tall`` and ``wide`` are the tiles along m and n."""
    units = job.batch * tall * wide * split
    even = units * job.core
    whole = np.ceil(even)  # of a product with a rounded reciprocal: off by one at most, put right
    whole += (1.0 if whole * job.cores < units else 0.0) - (1.0 if (whole - 1.0) * job.cores >= units else 0.0)
    per = max(1.0, even + job.static * (whole - even))
    ks = np.ceil(job.k / (split * job.qk)) * job.qk
    return times(job, rest, tm, tn, tall, wide, per, ks, units, split, split, True, deep)


@njit(cache=True, nogil=True, error_model="numpy", fastmath=FAST, forceinline=True)
def bound(job, rest, tm, tn, tall, wide, most, deep):
    """`Times` that no split of 2 to ``most`` undercuts: an even share, at least of the most split tile, and the sums of two parts."""
    units = job.batch * tall * wide * most
    return times(job, rest, tm, tn, tall, wide, max(1.0, units * job.core), job.k / most, units, 2.0, most, False, deep)


@njit(cache=True, nogil=True, error_model="numpy")
def seconds_of(job, t):
    """Seconds of a tiling: what does not overlap, and the norm of what does."""
    return t.serial + math.sqrt(math.sqrt(power(job, t)))


@njit(cache=True, nogil=True, error_model="numpy", fastmath=FAST)
def axis(quantum, extent, limit, room, at):
    """Write sizes up to ``limit`` (at least one quantum) and, TILES further, tiles along an axis; return where they end.

    The smallest size for each count of tiles.
    """
    whole = np.ceil(extent / quantum)
    top = max(1.0, np.floor(limit / quantum))
    growth = 1.0 if whole <= WHOLE else 1.0 + math.log(whole) / THIN
    middle = np.floor(math.sqrt(whole))
    if growth == 1.0:
        few = int(min(middle, top))
        for i in range(few):
            room[at + i], room[TILES + at + i] = (1.0 + i) * quantum, np.ceil(whole / (1.0 + i))
        at += few
        few = int(np.ceil(whole / middle)) - 1
        for i in range(few):
            room[at + i], room[TILES + at + i] = np.ceil(whole / (few - i)) * quantum, float(few - i)
        at += few
        while room[at - 1] > top * quantum:
            at -= 1
        return at
    size = 1.0
    while size <= min(middle, top):
        room[at], room[TILES + at] = size * quantum, np.ceil(whole / size)
        at += 1
        size = max(size + 1.0, np.ceil(size * growth))
    count = np.ceil(whole / middle) - 1.0
    while count >= 1.0:
        size = np.ceil(whole / count)
        if size > top:
            break
        room[at], room[TILES + at] = size * quantum, count
        at += 1
        count = min(count - 1.0, np.floor(count / growth))
    return at


@njit(cache=True, nogil=True, error_model="numpy")
def ladder(quantum, extent, limit, room, at):
    """As `axis`, of sizes that are a power of two of quanta or thrice one: what a power of two of equal warps works on."""
    whole = np.ceil(extent / quantum)
    top = max(1.0, np.floor(limit / quantum))
    size, following, covered = 1.0, 2.0, False
    while size <= top and not covered:
        room[at], room[TILES + at] = size * quantum, np.ceil(whole / size)
        at += 1
        covered = size >= whole
        size, following = following, 2.0 * size if size > 1.0 else 3.0
    return at


@njit(cache=True, nogil=True)
def feasible(card, operand, tm, tn):
    """Whether a tile's sums fit the accumulator and its operand steps the (double-buffered) buffers."""
    step = card[QK]
    return (
        tm * tn * max(4.0, operand[2]) <= card[ACCUMULATOR]
        and (tm * operand[0] + tn * operand[1]) * step * (2.0 - card[SINGLE]) <= card[STAGING]
        and tm * operand[0] * step <= card[BUFFER_A]
        and tn * operand[1] * step <= card[BUFFER_B]
    )


@njit(cache=True, nogil=True, error_model="numpy")
def tiles(card, job, room):
    """Write feasible tiles (tm, tn, tiles along m, along n at 0, 1, 2, 3 TILES); return how many. The smallest is always among them."""
    step = card[STAGING] / (card[QK] * (2.0 - card[SINGLE]))
    tall = min(min(card[ACCUMULATOR] / (job.width * card[QN]), (step - card[QN] * job.b) / job.a), card[BUFFER_A] / (card[QK] * job.a))
    wide = min(min(card[ACCUMULATOR] / (job.width * card[QM]), (step - card[QM] * job.a) / job.b), card[BUFFER_B] / (card[QK] * job.b))
    first, second = 4 * TILES, 6 * TILES
    if job.doubling > 0.0:
        rows = ladder(card[QM], job.m, tall, room, first)
        cols = ladder(card[QN], job.n, wide, room, second) - second
    else:
        rows = axis(card[QM], job.m, tall, room, first)
        cols = axis(card[QN], job.n, wide, room, second) - second
    found = 0
    for i in range(first, rows):
        tm, count = room[i], room[TILES + i]
        most = min(card[ACCUMULATOR] / (job.width * tm), (step - tm * job.a) / job.b)
        while cols > 1 and room[second + cols - 1] > most:
            cols -= 1
        for j in range(cols):
            room[found + j], room[TILES + found + j] = tm, room[second + j]
            room[2 * TILES + found + j], room[3 * TILES + found + j] = count, room[second + TILES + j]
        found += cols
    return found


@njit(cache=True, nogil=True, error_model="numpy", fastmath=FAST)
def search(card, job, rest, room, choice):
    """Fill ``choice`` (tm, tn, split) with the fastest feasible tiling; ``room`` [9 * TILES] is scratch."""
    if job.middles > 1.0:
        scan(card, job, rest, room, choice, True)
    else:
        scan(card, job, rest, room, choice, False)


@njit(cache=True, nogil=True, error_model="numpy", fastmath=FAST, forceinline=True)
def scan(card, job, rest, room, choice, deep):
    """`search` of cards with (``deep``) and without several levels between: a loop over these keeps loops over tiles from vectors."""
    found = tiles(card, job, room)
    most = max(2.0, job.most)
    for p in range(found):
        tm, tn, tall, wide = room[p], room[TILES + p], room[2 * TILES + p], room[3 * TILES + p]
        t = evaluate(job, rest, tm, tn, tall, wide, 1.0, deep)
        room[4 * TILES + p], room[5 * TILES + p] = power(job, t), t.serial
        t = bound(job, rest, tm, tn, tall, wide, most, deep)
        room[6 * TILES + p], room[7 * TILES + p] = power(job, t), t.serial
    best = math.inf
    for p in range(found - 1, -1, -1):
        best = least(room, p, best, choice, room[p], room[TILES + p], 1.0)
    for p in range(found - 1, -1, -1):
        left = best - room[7 * TILES + p]
        if left <= 0.0 or room[6 * TILES + p] >= left * left * left * left:
            continue
        tm, tn, tall, wide = room[p], room[TILES + p], room[2 * TILES + p], room[3 * TILES + p]
        splits = int(min(most, np.floor(WAVES * job.cores / (job.batch * tall * wide)))) - 1
        if job.doubling > 0.0:
            split = 2.0
            while split <= splits + 1.0:
                t = evaluate(job, rest, tm, tn, tall, wide, split, deep)
                room[4 * TILES], room[5 * TILES] = power(job, t), t.serial
                best = least(room, 0, best, choice, tm, tn, split)
                split *= 2.0
            continue
        for i in range(splits):
            t = evaluate(job, rest, tm, tn, tall, wide, 2.0 + i, deep)
            room[4 * TILES + i], room[5 * TILES + i] = power(job, t), t.serial
        for i in range(splits):
            best = least(room, i, best, choice, tm, tn, 2.0 + i)


@njit(cache=True, nogil=True, forceinline=True)
def least(room, p, best, choice, tm, tn, split):
    """Return the lesser of ``best`` [s] and the tiling whose power and serial seconds lie at 4 and 5; keep which."""
    left = best - room[5 * TILES + p]
    power = room[4 * TILES + p]
    if left <= 0.0 or power >= left * left * left * left:
        return best
    choice[0], choice[1], choice[2] = tm, tn, split
    return room[5 * TILES + p] + math.sqrt(math.sqrt(power))


@njit(cache=True, nogil=True, error_model="numpy")
def level_of(shape, operand, total, size, count, rate, cast, cores):
    """`Level` of ``count`` instances that share ``size`` each [B]; ``cores`` of each work on one block of tiles."""
    every = total[0] + total[1] <= size
    m = 0.0 if every else shape[1] / max(1.0, np.floor(size / (shape[3] * operand[0])))
    n = 0.0 if every else shape[2] / max(1.0, np.floor(size / (shape[3] * operand[1])))
    return Level(1.0 / rate, 1.0 / cast, count, 1.0 / math.sqrt(cores), m, n)


@njit(cache=True, nogil=True)
def page_walks(card, shape, total, width):
    """Seconds a byte of staging waits for page walks, where the rows a core works on span more memory than it can translate at once.

    A row of A or B takes its part of what is stored (K elements; of a convolution's image less, for windows share it); a core whose
    accumulator is full of sums works on twice its root of them, whatever the tile. What lies beyond the reach is walked for each
    sector anew, `WALKS` at a time. Source of reaches: Jia et al., arXiv 1804.06826. The term rests on one card (P100): of the measured
    ones only it has rows long enough for its reach, so that nobody has seen `WALKS` hold elsewhere.
    """
    rows = math.sqrt(card[ACCUMULATOR] / width)
    spanned = rows * (total[0] / (shape[0] * shape[1]) + total[1] / (shape[0] * shape[2]))
    if card[REACH] <= 0.0 or spanned <= card[REACH]:
        return 0.0
    return (1.0 - card[REACH] / spanned) * card[LATENCY_MEMORY] / (WALK_BYTES * WALKS)


@njit(cache=True, nogil=True, error_model="numpy")
def prepare(card, shape, operand, total, read, written, rest):
    """Return the `Job` of a product on a card.

    ``read``, ``written``: shares of operands and of results not found in the shared level; ``rest`` is filled with the levels
    between the first one and the shared one, outward: [levels beyond the first, or more, fields of `Level`].
    """
    k, width = shape[3], max(4.0, operand[2])
    most = max(1.0, min(MOST_SPLIT, np.floor(k / STEP_K))) if card[SPLIT] > 0.0 else 1.0
    latency = card[LATENCY_SHARED] + read * card[LATENCY_MEMORY]
    cycle = 1.0 / (card[CLOCK] * card[ETA_COMPUTE])
    fold = 0.0 if card[FLOW] == 3 else cycle * card[ROWS] * card[COLS] / card[MACS]
    feeds = 1.0 if min(card[PORT_A], min(card[PORT_B], card[PORT_SUM])) < UNBOUND else 0.0
    stalled = latency / card[IN_FLIGHT] if card[IN_FLIGHT] > 0.0 else 0.0
    walk = page_walks(card, shape, total, width)
    shared = level_of(shape, operand, total, card[SHARED], 1.0, card[RATE_SHARED], card[CAST], card[CORES])
    inner, middles = shared, 0.0
    for at in range(MIDDLE, card.shape[0], MIDDLE_SIZE):
        if card[at + MIDDLE_COUNT] == 0.0:
            break
        of = level_of(shape, operand, total, card[at], card[at + 1], card[at + 2], card[at + 3], card[CORES] / card[at + 1])
        if at == MIDDLE:
            inner = of
        else:
            row = rest[int(middles) - 1]
            row[0], row[1], row[2], row[3], row[4], row[5] = of.read, of.cast, of.instances, of.wave, of.fit_m, of.fit_n
        middles += 1.0
    return Job(
        shape[0], shape[1], shape[2], k, operand[0], operand[1], operand[2], width, total[0], total[1], total[2],
        card[CORES], 1.0 / card[CORES], card[STATIC], most, card[FLOW], card[ROWS], card[COLS], card[DEPTH], fold, cycle / card[MACS],
        1.0 / card[PORT], 1.0 / card[PORT_A], 1.0 / card[PORT_B], 1.0 / card[PORT_SUM], feeds,
        1.0 / card[RATE_WRITE], 1.0 / (card[RATE_MEMORY] * card[ETA_MEMORY]), card[LAUNCH] + latency,
        SPLIT_LATENCY * card[LATENCY_SHARED], latency / card[STAGING] + walk, stalled, card[STEP] / card[CLOCK], card[QK], card[STEP_WIDTH],
        card[SINGLE], card[DOUBLING], read, written, shared, middles, inner,
    )  # fmt: skip


@njit(cache=True, nogil=True)
def idle_seconds(job, body, t, units):
    """Seconds in which cores stand without a tile: of what each core does for itself, the part that waves leave empty."""
    even = units / job.cores
    per = math.ceil(even) if job.static > 0.0 else max(1.0, even)
    own = t.compute**4 + t.port**4 + t.stall**4
    every = own + t.shared**4 + t.memory**4
    return body * own / every * (1.0 - even / per) if every > 0.0 else 0.0


@njit(cache=True, nogil=True)
def rest_rows(size):
    """Levels between that cards of ``size`` columns may have beyond the first, and at least one row."""
    return max(1, (size - SIZE) // MIDDLE_SIZE)


@njit(cache=True, nogil=True, error_model="numpy")
def tile_rows(shape, operand, total, cold, column, cards, fixed, seconds, resource, level, detail, choice):
    """Price U products on S cards.

    ``shape`` [U, 4] (batch, m, n, k), ``operand`` [U, 3] bytes an element, ``total`` [U, 3] distinct bytes, ``cold`` [U, S, 2]
    the shares of operands and of results that the shared level has lost since their last use, ``column`` [U] the dtype's column
    in ``cards`` [S, D, SIZE or more], ``fixed`` [3] a tile and split to use instead of searching (0: search). Fills seconds [U, S],
    resource [U, S, 8] (by Bound), level [U, S, LEVELS], detail [U, S, 3] (launch, fill, idle cores) [s] and choice [U, S, 3].
    A product without elements costs nothing.
    """
    room = np.empty(9 * TILES)
    rest = np.empty((rest_rows(cards.shape[2]), 6))
    for u in range(shape.shape[0]):
        if shape[u].min() <= 0.0:
            continue
        for s in range(cards.shape[0]):
            card = cards[s, column[u]]
            job = prepare(card, shape[u], operand[u], total[u], cold[u, s, 0], cold[u, s, 1], rest)
            if fixed[0] > 0.0:
                choice[u, s] = fixed
            else:
                search(card, job, rest, room, choice[u, s])
            tm, tn, split = choice[u, s]
            record(card, job, rest, tm, tn, split, seconds[u, s : s + 1], resource[u, s], level[u, s], detail[u, s])


@njit(cache=True, nogil=True, error_model="numpy")
def record(card, job, rest, tm, tn, split, seconds, resource, level, detail):
    """Fill what `tile_rows` returns of one product on one card."""
    tall, wide = np.ceil(job.m / tm), np.ceil(job.n / tn)
    t = evaluate(job, rest, tm, tn, tall, wide, split, True)
    seconds[0] = seconds_of(job, t)
    serial = t.serial - job.single * t.compute
    resource[2 if card[IS_VECTOR] > 0.0 else 1] = t.compute
    resource[3], resource[4], resource[5], resource[6] = t.port, t.shared, t.memory, t.stall + serial
    units = job.batch * tall * wide * split
    a, b, sums = feeds(job, tm, tn, np.ceil(job.k / (split * job.qk)) * job.qk)
    level[0], level[1], level[2] = t.local_bytes, t.shared_bytes, t.memory_bytes
    level[3], level[4], level[5] = units * a, units * b, units * sums
    fetched = t.local_bytes
    for i in range(int(job.middles)):
        given, fetched = through(job, job.inner if i == 0 else row_level(rest[i - 1]), fetched, tall, wide, split)
        level[FIRST_MIDDLE if i == 0 else MORE_MIDDLES + i - 1] = given
    detail[0], detail[1] = card[LAUNCH], serial - card[LAUNCH]
    detail[2] = idle_seconds(job, seconds[0] - serial, t, units)
