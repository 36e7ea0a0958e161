"""Command on parallel plans: ``plan``."""

from __future__ import annotations

from typing import Any

import click

from workbench.cli_output import finite, pairs, show


@click.command()
@click.option(
    "--model", "model_name", required=True, metavar="NAME_OR_FILE", help="A catalogue name (workbench models) or a YAML description."
)
@click.option("--cluster", "cluster_name", required=True, metavar="NAME_OR_FILE", help="A catalogue name or a YAML description.")
@click.option("--npu", "npu_name", default="", metavar="NAME_OR_FILE", help="Card; default: the one the cluster names.")
@click.option("--cards", default="", metavar="N[,N...]", help="Cards of the job; several: the front of a search is over all of them.")
@click.option("--global-batch", type=click.IntRange(1), help="Samples of a step on all cards.")
@click.option(
    "--plan", "text", default="", metavar="KEY=VALUE,...", help="tp=8,pp=8,mb=1,v=2,schedule=1f1b,sp=yes,recompute=full,zero=1 ..."
)
@click.option("--search", is_flag=True, help="Rank all plans; what --plan states is kept to.")
@click.option("--schedules", default="1f1b,interleaved", show_default=True, help="With --search: those to try.")
@click.option("--top", type=click.IntRange(1, 200), default=5, show_default=True, help="With --search: plans to show.")
@click.option("--tokens", type=click.IntRange(1), help="Tokens of a sample; default: the model's.")
@click.option("--dtype", default="", help="Type of the elements, e.g. bf16; default: the model's.")
@click.option("--attention", type=click.Choice(["flash", "unfused"]), default="flash", show_default=True, help="How attention runs.")
@click.option("--memory", default="", metavar="SIZE", help='Memory of a card that may be used, e.g. "64 GiB"; default: the card\'s.')
@click.option(
    "--gradient-bytes", type=click.FloatRange(0.5, 8), default=2.0, show_default=True, callback=finite, help="Of an element that is sent."
)
@click.option("--slow", multiple=True, metavar="STAGE=FACTOR", help="A stage whose compute takes so many times as long (a straggler).")
@click.option(
    "--system", "scalars", multiple=True, metavar="NAME=NUMBER", help="matrix, vector, network: factors on times; host_s: seconds a launch."
)
@click.option("--price", type=click.FloatRange(min=0), callback=finite, help="Of a card and hour: the cost of a step is shown.")
@click.option("--prompt", type=click.IntRange(1), help="Serve instead of train: tokens of a prompt.")
@click.option("--context", type=click.IntRange(0), help="With --prompt: tokens in the cache while a token is made.")
@click.option(
    "--set", "settings", metavar="PATH=VALUE", multiple=True, help="Change a field of the card (memory.hbm.bandwidth=...) or tiers...."
)
@click.option("--json", "as_json", is_flag=True, help="Print everything as JSON (schema: workbench schema plan).")
def plan(**asked: Any) -> None:
    """Predict the step of a training job under a parallel plan, or rank all plans; with --prompt, serving."""
    from workbench.study.document import to_json
    from workbench.study.plan_ask import Ask, answer
    from workbench.study.terminal_plan import plans_text

    as_json = asked.pop("as_json")
    asked["slow"], asked["scalars"], asked["settings"] = (
        pairs(asked[key], option) for key, option in (("slow", "--slow"), ("scalars", "--system"), ("settings", "--set"))
    )
    document = answer(Ask(**asked))
    if as_json:
        click.echo(to_json(document))
    else:
        show(plans_text(document))
