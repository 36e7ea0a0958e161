"""A matched message split into waiting for its peers and transfer, by what its kind makes a member wait for."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from workbench.errors import Note
from workbench.graph.rank_clocks import Clocks
from workbench.graph.rank_match import Matches
from workbench.graph.rank_messages import Messages, Sense
from workbench.operators.table import Kind

NOISE_NS = 50_000
"""Ends of one message may differ by this much without contradicting it: clocks, and members that are told last [ns]."""
WIDE = 6
"""The same, as a multiple of the clocks' uncertainty."""


@dataclass(frozen=True)
class Split:
    """Waiting and transfer of every message; arrays of length N.

    A member may start its transfer when all messages ``arrives`` names for its match have arrived: the moment of meeting is
    the latest of their starts (less ``offset_ns`` of their rank) plus ``in_lag_ns``, and the member's transfer starts ``out_lag_ns`` later.
    """

    wait_ns: np.ndarray  # int64 [ns]
    transfer_ns: np.ndarray  # int64 [ns]; the recorded duration where nothing is known of the peers
    arrives: np.ndarray  # bool, others wait for this member
    waits: np.ndarray  # bool, this member waits for those
    in_lag_ns: np.ndarray  # int64 [ns]
    out_lag_ns: np.ndarray  # int64 [ns]
    last: np.ndarray  # int32, message of the member that arrived last (-1: not split)
    notes: tuple[Note, ...]

    @property
    def known(self) -> np.ndarray:
        """Bool [N]: the message is split."""
        return self.last >= 0


def split(m: Messages, matches: Matches, clocks: Clocks) -> Split:
    """Split every message all of whose members are recorded.

    Parameters
    ----------
    m : Messages
    matches : Matches
    clocks : Clocks

    Notes
    -----
    A synchronising collective needs no clock: nobody waits for the last to arrive, so the transfer is the shortest member's duration,
    and the others waited for the rest of theirs. The other kinds compare starts and ends on the common clock.
    """
    size = len(m)
    zero = np.zeros(size, np.int64)
    out = Split(
        zero.copy(),
        m.end - m.start,
        np.zeros(size, bool),
        np.zeros(size, bool),
        zero.copy(),
        zero.copy(),
        np.full(size, -1, np.int32),
        (),
    )
    own = clocks.row(m.rank)
    shift = clocks.offset_ns[own]
    start, end = m.start - shift, m.end - shift
    drift = -clocks.correction(m.rank, m.end)
    order = np.flatnonzero(matches.of >= 0)
    order = order[np.lexsort((order, matches.of[order]))]
    bounds = np.searchsorted(matches.of[order], np.arange(len(matches.first) + 1))
    apart = 0
    for c in np.flatnonzero(matches.complete).tolist():
        rows = order[bounds[c] : bounds[c + 1]]
        noise = max(NOISE_NS, WIDE * int(clocks.spread_ns[own[rows]].max()))
        apart += not _Match(rows, start[rows], end[rows], drift[rows], noise).into(out, m)
    text = "messages whose recorded times do not fit together on any clock keep their recorded time"
    notes = (Note("message-contradicted", "ranks", apart, text),) if apart else ()
    return replace(out, notes=notes)


@dataclass(frozen=True)
class _Match:
    """One message: its rows, and their times less the offset of their clock."""

    rows: np.ndarray
    start: np.ndarray  # int64 [ns]
    end: np.ndarray  # int64 [ns]
    drift: np.ndarray  # int64 [ns], what is to be added for the drift
    noise: int  # [ns]

    def into(self, out: Split, m: Messages) -> bool:
        """Split it by its kind; False where the times contradict it."""
        begin, finish = self.start + self.drift, self.end + self.drift
        sense = m.sense[self.rows]
        together = int(finish.max() - finish.min()) <= self.noise
        if sense[0] == Sense.ALL or (together and sense[0] != Sense.EXCHANGE):
            return self._together(out)
        if sense[0] in (Sense.SEND, Sense.RECEIVE):
            arrives = sense == Sense.SEND
            if not arrives.any() or arrives.all():
                return False
            both = begin[~arrives].max() <= finish[arrives].min()  # the sender was still at it: it may have waited as well
            return self._apart(out, np.ones(2, bool) if both else arrives, np.ones(2, bool) if both else ~arrives)
        root = m.rank[self.rows] == m.peer[self.rows].max()
        if sense[0] == Sense.FROM_ROOT and root.any():
            return self._apart(out, root, ~root)
        if sense[0] == Sense.TO_ROOT and root.any():
            return self._apart(out, np.ones(len(root), bool), root)
        everybody = sense[0] == Sense.EXCHANGE or m.kind[self.rows[0]] == Kind.SEND_RECV
        waits = np.ones(len(root), bool) if everybody else finish >= begin.max()
        return self._apart(out, np.ones(len(root), bool), waits)

    def _together(self, out: Split) -> bool:
        """All wait for all and end at once: the end of each is the same moment, whatever its clock says."""
        finish = self.end + self.drift
        if int((self.start + self.drift).max()) > int(finish.min()) + self.noise:
            return False
        length = self.end - self.start
        transfer = int(length.min())
        common = int(np.median(finish))
        rows = self.rows
        out.transfer_ns[rows], out.wait_ns[rows] = transfer, length - transfer
        out.arrives[rows] = out.waits[rows] = True
        out.in_lag_ns[rows], out.out_lag_ns[rows] = common - self.end, self.end - common
        out.last[rows] = rows[int(np.lexsort((rows, -self.start, length))[0])]
        return True

    def _apart(self, out: Split, arrives: np.ndarray, waits: np.ndarray) -> bool:
        """Some wait for some: the transfer of each is what follows the last arrival."""
        begin, finish = self.start + self.drift, self.end + self.drift
        late = int(np.flatnonzero(arrives)[int(np.argmax(begin[arrives]))])
        meeting = int(begin[late])
        if (finish[waits] < meeting - self.noise).any():
            return False
        length = self.end - self.start
        transfer = np.where(waits, np.clip(finish - meeting, 0, length), length)
        rows = self.rows
        out.transfer_ns[rows], out.wait_ns[rows] = transfer, length - transfer
        out.arrives[rows], out.waits[rows] = arrives, waits
        out.in_lag_ns[rows] = self.drift
        begun = self.end - transfer
        out.out_lag_ns[rows] = np.where(waits, np.minimum(begun - meeting, -self.drift), 0)
        out.last[rows] = rows[late]
        return True
