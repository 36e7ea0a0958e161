"""The command ``workbench rewrites``: what fusing, retyping, capturing and other edits of a recording would save."""

from __future__ import annotations

from typing import Any

import click

from workbench.cli_output import show
from workbench.cli_scenario import scenario_of, scenario_options


@click.command()
@click.argument("traces", nargs=-1, required=True)
@scenario_options
@click.option("--propose/--no-propose", default=None, help="Try what the recording invites (default: where no --rewrite is given).")
@click.option("--limit", type=click.IntRange(1), default=20, show_default=True, help="Most proposals to try.")
@click.option("--top", type=click.IntRange(0), default=20, show_default=True, help="Rows of the table.")
@click.option("--json", "as_json", is_flag=True, help="Print everything as JSON (schema: workbench schema rewrites).")
def rewrites(traces: tuple[str, ...], propose: bool | None, limit: int, top: int, as_json: bool, **asked: Any) -> int:
    """List edits of a recording with what each would save of the step, alone and together; those that cost, too.

    TRACES are one file, or all files of one job, execution traces included. Each --rewrite is tried by itself; without any, what the
    recording invites is. Exit code 1: nothing could be tried.
    """
    from workbench.study.documents_rewrites import rewrites_document
    from workbench.study.report import to_json
    from workbench.study.rewrites import rewrites as run
    from workbench.study.terminal_rewrites import rewrites_text
    from workbench.trace.open import open_trace

    edits = asked.pop("rewrite")
    recording = open_trace(list(traces), salvage=asked.pop("salvage"))
    study = run(scenario_of(recording, rewrite=(), **asked), edits, propose=not edits if propose is None else propose, limit=limit)
    document = rewrites_document(", ".join(traces), study)
    if as_json:
        click.echo(to_json(document))
    else:
        show(rewrites_text(document, top))
    return 1 if edits and not document.rewrites else 0
