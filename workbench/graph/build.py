"""Trace -> Graph: one function a rule. See the design, section 5, for what is right."""

from __future__ import annotations

import numpy as np

from workbench.errors import Refused
from workbench.graph.assemble import assemble
from workbench.graph.blocking import blocking_calls, launch_queue
from workbench.graph.edges import collect
from workbench.graph.events import event_edges
from workbench.graph.graph import Graph
from workbench.graph.host import host_nodes
from workbench.graph.links import link
from workbench.graph.meetings import with_meetings, with_transfers
from workbench.graph.nodes import columns, device_kinds
from workbench.graph.ranks import aligned, match_ranks, missing_peers
from workbench.graph.rows import select
from workbench.graph.steps import marks, measured, outside_note
from workbench.graph.units import price_units
from workbench.graph.unlaunched import repeat_note
from workbench.graph.waits import host_waits, sync_records
from workbench.operators.table import Dtype, OpTable
from workbench.trace.clean import clean
from workbench.trace.comm import comm, suspect_notes
from workbench.trace.steps import complete_steps
from workbench.trace.trace import Trace


def build_graph(trace: Trace) -> tuple[Graph, OpTable]:
    """Build the dependency graph of a recording, and its table of unique operators.

    Parameters
    ----------
    trace : Trace
        One or several ranks. Those of several are laid on one clock, and a message whose members are all recorded joins them: it
        starts its transfer when the last of them has arrived (`workbench.graph.ranks`).

    Returns
    -------
    graph : Graph
    table : OpTable

    Raises
    ------
    Refused
        Nothing to replay: no operators, calls or device work; or several ranks without a clock in common.

    Notes
    -----
    Measured durations replayed on the graph give the recorded steps. No node keeps a recorded time.
    """
    recorded = set(trace.notes)
    trace = clean(trace)
    table, op, unit, _ = price_units(trace)
    ranks = match_ranks(trace, table, op) if len(trace.ranks) > 1 else None
    if ranks is not None:
        trace, table = aligned(trace, ranks), with_transfers(table, op, ranks)
    rows = select(trace)
    if not (len(rows.calls.start) or len(rows.ops.start) or len(rows.device.start)):
        where = trace.ranks[0].path if trace.ranks else "trace"
        raise Refused(
            where, "the recording holds no operators, runtime calls or device work", "record with activities CPU and CUDA switched on"
        )
    correlation = trace.events.correlation[rows.calls.event]
    links = link(rows, rows.thread_rank[rows.calls.thread], correlation)
    records = sync_records(trace, rows.origin)
    blocking = blocking_calls(trace, rows, links)
    queue = launch_queue(trace, rows, links, blocking)
    waits, wait_notes = host_waits(rows, links, records, correlation, blocking)
    events, event_notes = event_edges(rows, links, records, correlation)
    steps = marks(trace, rows)
    host = host_nodes(rows, links, queue, waits, steps, self_time=not len(rows.device.start))
    device = rows.device.event
    messages = comm(trace)
    kind = device_kinds(trace.events.category[device], messages[device], op[device], table)
    nodes = columns(rows, links, host, steps, kind, op, unit)
    edges, edge_notes = collect(rows, links, queue, waits, events, host, steps, nodes)
    ok = complete_steps(trace) if len(trace.steps) else np.ones(len(steps.number), dtype=bool)
    device_step = nodes.step[nodes.first_device :]
    seconds = measured(steps, device_step, rows.device.end)
    notes = (
        *(n for n in trace.notes if n not in recorded),
        *links.notes,
        *repeat_note(links.call >= 0, op[device], table.has_shapes & (table.dtype != Dtype.UINT8)),
        *wait_notes,
        *event_notes,
        *edge_notes,
        *outside_note(device_step, rows.device.end - rows.device.start),
        *suspect_notes(trace, messages),
        *(ranks.notes if ranks is not None else missing_peers(trace, messages)),
    )
    if ranks is not None:
        nodes, edges = with_meetings(nodes, edges, ranks)
    return assemble(nodes, edges, steps, seconds, ok, notes), table
