"""Cards ranked on several recordings: who leads where, and on which recordings the order is another."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import PurePath

import numpy as np
import xarray as xr
from rich.text import Text

from workbench import units


def order_text(dataset: xr.Dataset) -> Iterator[Text]:
    """Yield the order of the cards by step time: the one of most recordings, then each recording on which it is another.

    Parameters
    ----------
    dataset : xarray.Dataset
        A sweep; nothing is yielded unless its dims are ``npu`` and ``workload``, two of each at least. Recordings with a card
        that could not be priced are left out.
    """
    steps = dataset["step_time"]
    if set(steps.dims) != {"npu", "workload"} or min(steps.shape) < 2:
        return
    table = steps.transpose("workload", "npu").values
    whole = np.isfinite(table).all(axis=1) & dataset["valid"].transpose("workload", "npu").values.all(axis=1)
    cards = [str(name) for name in dataset["npu"].values]
    orders = {
        PurePath(str(path)).name: tuple(cards[i] for i in np.argsort(row, kind="stable"))
        for path, row, fine in zip(dataset["workload"].values, table, whole, strict=True)
        if fine
    }
    if not orders:
        return
    found = list(orders.values())
    usual = max(dict.fromkeys(found), key=found.count)
    others = {name: order for name, order in orders.items() if order != usual}
    text = f"fastest first: {', '.join(usual)}"
    yield Text(
        f"{text} on {'each of ' if not others else f'{found.count(usual)} of '}{units.count(len(orders), 'recording')}", style="bold"
    )
    yield from (Text(f"the order flips on {name}: {', '.join(order)}", style="yellow") for name, order in others.items())
