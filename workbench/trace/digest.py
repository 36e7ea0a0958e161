"""What tells contents apart in the cache: a digest of 256 bits, read at several GB a second."""

from __future__ import annotations

import hashlib
from pathlib import Path

import numpy as np

from workbench.trace import kernels_digest as kd

CHUNK = 1 << 20
_BYTES = 8 * kd.BLOCK
_KEYS = np.frombuffer(b"".join(hashlib.sha512(b"workbench %d" % i).digest() for i in range(kd.KEYS // 8)), np.uint64).copy()


def digest(data: np.ndarray) -> bytes:
    """Return the digest of an array of bytes [32 bytes].

    Parameters
    ----------
    data : ndarray of uint8
        Beginning at a multiple of 8 bytes.
    """
    state, whole = np.zeros(kd.LANES, np.uint64), len(data) // _BYTES * _BYTES
    kd.fold(data[:whole].view(np.uint64), _KEYS, state)
    rest = np.zeros(_BYTES, np.uint8)
    rest[: len(data) - whole] = data[whole:]
    kd.fold(rest.view(np.uint64), _KEYS, state)
    return _end(state, len(data))


def file_digest(path: Path) -> bytes:
    """Return the digest of a file's bytes [32 bytes]. Raises OSError."""
    state, buffer, size = np.zeros(kd.LANES, np.uint64), np.empty(CHUNK, np.uint8), 0
    with path.open("rb") as file:
        while (count := file.readinto(buffer.data)) == CHUNK:
            kd.fold(buffer.view(np.uint64), _KEYS, state)
            size += count
    full = count // _BYTES * _BYTES + _BYTES
    buffer[count:full] = 0
    kd.fold(buffer[:full].view(np.uint64), _KEYS, state)
    return _end(state, size + count)


def _end(state: np.ndarray, size: int) -> bytes:
    return hashlib.sha256(state.tobytes() + size.to_bytes(8, "little")).digest()
