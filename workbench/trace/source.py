"""The bytes of a file, decompressed as they are read; what a file is, from its first bytes."""

from __future__ import annotations

import hashlib
import zlib
from pathlib import Path
from typing import BinaryIO

from workbench.errors import UnreadableInput

GZIP = b"\x1f\x8b"
UTF8_BOM = b"\xef\xbb\xbf"
INPUT_BYTES = 1 << 20  # compressed bytes read at once


class Source:
    """A file as one stream of plain bytes: gzip (of any number of members) is undone, decided by content.

    Parameters
    ----------
    path : Path
        The file. `UnreadableInput` if it is missing, a directory or not permitted.

    Attributes
    ----------
    fault : str
        Why the stream ended early (empty: it did not).
    """

    def __init__(self, path: Path) -> None:
        self.path, self.fault, self.size = path, "", 0
        self._hash = hashlib.sha256()
        self._file = _open(path)
        head = self._file.read(2)
        self._file.seek(0)
        self._inflate = zlib.decompressobj(31) if head == GZIP else None
        self._pending = b""

    def close(self) -> None:
        """Close the file."""
        self._file.close()

    def readinto(self, view: memoryview) -> int:
        """Fill the front of ``view``; return how many bytes [0 at the end]."""
        try:
            count = (self._file.readinto(view) or 0) if self._inflate is None else self._inflated(view)  # type: ignore[attr-defined]
        except OSError as error:
            raise UnreadableInput(str(self.path), f"reading stopped: {error.strerror}", "copy the file again") from None
        self._hash.update(view[:count])
        self.size += count
        return count

    def whole(self) -> bytearray:
        """Return all plain bytes that are left."""
        out, view = bytearray(), memoryview(bytearray(INPUT_BYTES))
        while count := self.readinto(view):
            out += view[:count]
        return out

    @property
    def compressed(self) -> bool:
        """Whether the file is gzip."""
        return self._inflate is not None

    def whole_digest(self) -> str:
        """Return the digest of all plain bytes, none of which are kept."""
        view = memoryview(bytearray(INPUT_BYTES))
        while self.readinto(view):
            pass
        return self.digest()

    def digest(self) -> str:
        """Return the SHA-256 of all bytes read so far, 32 hexadecimal digits."""
        return self._hash.hexdigest()[:32]

    def _inflated(self, view: memoryview) -> int:
        done = 0
        while done < len(view) and not self.fault:
            assert self._inflate is not None
            if self._inflate.eof:
                self._pending = (self._inflate.unused_data or self._pending).lstrip(b"\0")
                self._pending = self._pending or self._file.read(INPUT_BYTES).lstrip(b"\0")
                if not self._pending:
                    return done
                self._inflate = zlib.decompressobj(31)
            if not self._pending:
                self._pending = self._file.read(INPUT_BYTES)
                if not self._pending:
                    self.fault = "the gzip stream is truncated"
                    break
            try:
                piece = self._inflate.decompress(self._pending, len(view) - done)
            except zlib.error as error:
                self.fault = f"the gzip stream is damaged ({error})"
                break
            self._pending = self._inflate.unconsumed_tail
            view[done : done + len(piece)] = piece
            done += len(piece)
        return done


def _open(path: Path) -> BinaryIO:
    where = str(path)
    try:
        if path.is_dir():
            raise UnreadableInput(where, "is a directory, not a trace file", "name the trace files in it")
        if not path.is_file():
            what = "is not a regular file" if path.exists() else "does not exist"
            raise UnreadableInput(where, what, "check the path")
        return path.open("rb")
    except OSError as error:
        raise UnreadableInput(where, f"cannot be opened: {error.strerror}", "check the path and its permissions") from None
    except ValueError as error:
        raise UnreadableInput(repr(where), f"is not a path: {error}", "check the path") from None


def first_bytes(path: Path, size: int = 1 << 16) -> bytes:
    """Return the first plain bytes of a file. Raises `UnreadableInput`."""
    source = Source(path)
    try:
        view = memoryview(bytearray(size))
        return bytes(view[: source.readinto(view)])
    finally:
        source.close()


def kind_of(head: bytes) -> str:
    """Return "object" or "array" for JSON text, else "": what the first plain bytes of a file begin."""
    text = head.removeprefix(UTF8_BOM).lstrip(b" \t\r\n")
    return {b"{": "object", b"[": "array"}.get(text[:1], "")


def line_and_column(path: Path, offset: int) -> tuple[int, int]:
    """Return line and column (from 1) of a byte of the plain text; the file is read again up to there."""
    source, line, last, at = Source(path), 1, -1, 0
    view = memoryview(bytearray(1 << 20))
    try:
        while at < offset and (count := source.readinto(view)):
            piece = bytes(view[: min(count, offset - at)])
            line += piece.count(b"\n")
            newline = piece.rfind(b"\n")
            last = at + newline if newline >= 0 else last
            at += len(piece)
    finally:
        source.close()
    return line, offset - last
