"""Command on the cache of opened traces: ``cache``."""

from __future__ import annotations

import click


@click.command()
@click.option("--clear", is_flag=True, help="Remove everything in it.")
@click.option("--json", "as_json", is_flag=True, help="Print it as JSON (schema: workbench schema cache).")
def cache(clear: bool, as_json: bool) -> None:
    """Say where opened traces are kept and how large that is; a file that was opened before opens at once.

    WORKBENCH_CACHE moves the folder, WORKBENCH_CACHE=off switches it off, WORKBENCH_CACHE_BYTES limits it.
    """
    from workbench.study.document import to_json
    from workbench.study.documents_cache import cache_document

    found = cache_document(clear=clear)
    if as_json:
        click.echo(to_json(found))
        return
    if found.folder is None:
        click.echo("the cache of opened traces is switched off (WORKBENCH_CACHE)")
        return
    if clear:
        click.echo(f"removed {found.removed} opened traces")
    held = f"{found.entries} opened traces, {found.bytes / 1e6:.1f} MB of at most {found.limit_bytes / 1e6:.0f} MB"
    click.echo(f"{found.folder}: {held}" + ("" if found.writable else "; it cannot be written, so traces are read every time"))
