"""Cards ranked on recordings: by hand, and through the command line."""

from __future__ import annotations

import numpy as np
import pytest
import xarray as xr
from click.testing import CliRunner

from workbench.cli import cli
from workbench.data import data_path
from workbench.study.terminal_order import order_text


def space(steps: list[list[float]], valid: list[list[bool]] | None = None) -> xr.Dataset:
    dims, coords = ("workload", "npu"), {"workload": ["x/one.json", "x/two.json", "x/three.json"], "npu": ["a", "b"]}
    fine = np.ones((3, 2), dtype=bool) if valid is None else np.array(valid)
    return xr.Dataset({"step_time": (dims, np.array(steps)), "valid": (dims, fine)}, coords)


@pytest.mark.parametrize(
    ("steps", "valid", "said"),
    [
        ([[1, 2], [3, 4], [5, 6]], None, ["fastest first: a, b on each of 3 recordings"]),
        ([[1, 2], [4, 3], [5, 6]], None, ["fastest first: a, b on 2 of 3 recordings", "the order flips on two.json: b, a"]),
        ([[1, 2], [4, 3], [5, 6]], [[True, True], [False, True], [True, True]], ["fastest first: a, b on each of 2 recordings"]),
        ([[1, np.nan], [np.nan, 3], [np.nan, 6]], None, []),
    ],
)
def test_orders_by_hand(steps: list[list[float]], valid: list[list[bool]] | None, said: list[str]) -> None:
    assert [text.plain for text in order_text(space(steps, valid))] == said


def test_several_recordings_are_an_axis() -> None:
    traces = [str(data_path("traces", f"synthetic_{name}.json.gz")) for name in ("ddp", "launch_bound")]
    done = CliRunner().invoke(cli, ["sweep", *traces, "--axis", "npu=npu-x,h100-sxm"])
    assert done.exit_code == 0, done.output
    assert "4 cells" in done.output
    assert "fastest first: h100-sxm, npu-x on each of 2 recordings" in " ".join(done.output.split())
