"""Decompression in a thread of its own: the next piece is inflated while the scanner reads the last (both let go of the interpreter)."""

from __future__ import annotations

from concurrent.futures import Future, ThreadPoolExecutor

from workbench.trace.source import Source

SMALLEST = 1 << 16  # bytes of a piece at least, so that handing it over costs little


class Ahead:
    """A source read one piece ahead; ``fault`` and ``size`` are those of the bytes handed out, as with `Source` itself.

    Parameters
    ----------
    source : Source
        Read by this object alone from now on.
    piece : int
        Bytes of plain text read ahead, and memory taken for them [B].
    """

    def __init__(self, source: Source, piece: int) -> None:
        self.path, self.fault, self.size = source.path, "", 0
        self._source = source
        self._piece = memoryview(bytearray(max(piece, SMALLEST)))
        self._at = self._count = 0  # what of the piece is handed out, what it holds
        self._ends = ""  # the fault the source ends with behind the piece
        self._thread = ThreadPoolExecutor(1)
        self._coming: Future[tuple[int, str]] | None = self._thread.submit(self._read)

    def readinto(self, view: memoryview) -> int:
        """Fill the front of ``view``; return how many bytes [0 at the end]. Raises `UnreadableInput`."""
        done = 0
        while done < len(view) and not self.fault:
            if self._at == self._count:
                if self._coming is None:
                    break
                self._count, self._ends = self._coming.result()
                self._at = 0
            size = min(len(view) - done, self._count - self._at)
            view[done : done + size] = self._piece[self._at : self._at + size]
            done, self._at = done + size, self._at + size
            if self._at == self._count:
                self._next()
        self.size += done
        return done

    def _next(self) -> None:
        """Ask for the next piece, the last being handed out; there is none after a fault and at the end."""
        self.fault = self._ends
        if self.fault or not self._count:
            self._coming = None
            self._thread.shutdown(wait=False)
        else:
            self._coming = self._thread.submit(self._read)

    def digest(self) -> str:
        """Return the SHA-256 of all bytes, 32 hexadecimal digits; once all are read."""
        return self._source.digest()

    def _read(self) -> tuple[int, str]:
        """Fill the piece; return how many bytes, and the fault that ends the source behind them."""
        count = self._source.readinto(self._piece)
        return count, self._source.fault
