"""Command on the catalogue of models: ``models``."""

from __future__ import annotations

import click

from workbench.cli_output import show


@click.command()
@click.argument("name", required=False)
@click.option("--batch", type=click.IntRange(1), default=1, show_default=True, help="Samples of a microbatch.")
@click.option("--tokens", type=click.IntRange(1), help="Tokens of a sample; default: the model's.")
@click.option("--attention", type=click.Choice(["flash", "unfused"]), default="flash", show_default=True, help="Whether scores are kept.")
@click.option("--json", "as_json", is_flag=True, help="Print everything as JSON (schema: workbench schema models).")
def models(name: str | None, batch: int, tokens: int | None, attention: str, as_json: bool) -> None:
    """List the models that plans can be asked for, or what the blocks of one (a name or a YAML description) hold and compute."""
    from workbench.models.describe import list_models, load_model
    from workbench.study.document import to_json
    from workbench.study.documents_models import models_document
    from workbench.study.terminal_models import models_text

    specs = [load_model(one) for one in ([name] if name else list_models())]
    document = models_document(specs, batch, tokens, attention)
    if as_json:
        click.echo(to_json(document))
    else:
        show(models_text(document))
