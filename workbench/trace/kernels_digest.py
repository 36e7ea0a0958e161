"""A fast digest of bytes: the accumulation of XXH3 (Y. Collet, xxHash, doc/xxhash_spec.md), eight 64-bit lanes over blocks of 1 KiB.

In a block each word is added to its neighbour's lane as it is, and to its own as a product of its halves after it was mixed with a key
that depends on its place; between blocks a lane is mixed by operations that can be undone. A change of one word therefore always changes
the state, and other changes are missed as seldom as 64-bit numbers agree by chance. It guards against accidents, not against forgery.
"""

from __future__ import annotations

import numpy as np
from numba import njit

BLOCK = 128  # words of 8 bytes
KEYS = 24
LANES = 8
_LOW = np.uint64(0xFFFFFFFF)
_HALF = np.uint64(32)
_FOLD = np.uint64(47)
_PRIME = np.uint64(0x9E3779B1)


@njit(cache=True, nogil=True)
def fold(words, keys, state):
    """Mix whole blocks of words (uint64) into the state (uint64 [LANES]); ``keys`` is uint64 [KEYS]."""
    lanes = state.copy()
    for block in range(len(words) // BLOCK):
        for stripe in range(16):
            at = BLOCK * block + 8 * stripe
            for i in range(8):
                word = words[at + i]
                mixed = word ^ keys[stripe + i]
                lanes[i ^ 1] += word
                lanes[i] += (mixed & _LOW) * (mixed >> _HALF)
        for i in range(8):
            lane = lanes[i]
            lanes[i] = (lane ^ (lane >> _FOLD) ^ keys[16 + i]) * _PRIME
    state[:] = lanes
