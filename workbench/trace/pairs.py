"""Events written as two records, where they begin and where they end, become one.

Source: Trace Event Format, "Duration Events": an end closes the innermost event of its thread that is open; arguments of both are the
event's. Ends that carry a name close the innermost of that name.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from workbench.trace import kernels
from workbench.trace.kernels_json import BEGIN, END, Arguments, Columns
from workbench.trace.part import group
from workbench.trace.scanner import Records


def paired(records: Records) -> Records:
    """Return the records with begins and ends joined; what has no partner is left out, and counted as ``unpaired``."""
    if not ({"B", "E"} & records.phases.keys()):
        return records
    c = records.columns
    begins, ends = c.dur == BEGIN, c.dur == END
    halves = np.flatnonzero(begins | ends)
    lane, _ = group(c.pid, c.tid)
    partner = np.full(len(c.start), -1, np.int64)
    order = halves[np.lexsort((halves, c.start[halves], lane[halves]))]
    kernels.partners(order, lane, c.name, begins, ends, np.empty(len(order), np.int64), partner)
    whole = partner >= 0
    kept = ~(begins | ends) | whole
    dur = c.dur.copy()
    dur[whole] = c.start[partner[whole]] - c.start[whole]
    place = np.cumsum(kept) - 1
    place[~kept] = -1
    place[partner[whole]] = place[whole]
    columns = Columns(*(column[kept] for column in c._replace(dur=dur)))
    a = records.args
    event = place[a.event].astype(np.int32)
    rows = np.flatnonzero(event >= 0)
    rows = rows[np.argsort(event[rows], kind="stable")]
    args = Arguments(event[rows], a.key[rows], a.value[rows], a.is_text[rows])
    lost = len(halves) - 2 * int(whole.sum())
    return replace(records, columns=columns, args=args, counters={**records.counters, "unpaired": lost})
