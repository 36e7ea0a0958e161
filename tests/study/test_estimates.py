"""The xarray door of operator times: every cell equals the estimate of its card alone; axes, tied axes and xarray spaces mean the same."""

from __future__ import annotations

import numpy as np
import pytest
import xarray as xr

from workbench import estimate, linspace, list_operators, load_npu, read_vendor, tied
from workbench.cost import estimate as pricing
from workbench.cost.cost import LEVELS, Bound, Evidence
from workbench.errors import InvalidSpec, Refused

BANDWIDTH, CORES = "npu.memory.hbm.bandwidth", "npu.cores"
ROWS = [
    {"op": "gemm", "dtype": "bf16", "B": 1, "M": 4096, "N": 4096, "K": 4096},
    {"op": "gemm", "dtype": "bf16", "B": 1, "M": 8, "N": 4096, "K": 4096},
    {"op": "softmax", "dtype": "fp32", "rows": 4096, "cols": 4096},
    {"op": "elementwise", "dtype": "bf16", "rows": 8192, "cols": 8192},
]


@pytest.fixture(scope="module")
def operators():
    return list_operators(ROWS)


def alone(operators, spec, **more):
    """The estimate of one card through the room below."""
    return pricing.estimate(operators.table, [spec], **more)


def same(cell: xr.Dataset, cost) -> None:
    """A cell of a space against the estimate of its card alone, to the last bit."""
    for name, array in (("seconds", cost.seconds), ("low", cost.low_s), ("high", cost.high_s), ("energy", cost.energy_j)):
        np.testing.assert_array_equal(cell[name].values, array[:, 0])
    np.testing.assert_array_equal(cell["bytes"].transpose("operator", "level").values, cost.level_bytes[:, 0])
    np.testing.assert_array_equal(cell["resource_seconds"].transpose("operator", "resource").values, cost.resource_s[:, 0])
    assert cell["bound"].values.tolist() == [Bound(code).name.lower() for code in cost.bound[:, 0]]
    assert cell["evidence"].values.tolist() == [Evidence(code).name.lower() for code in cost.evidence]


def test_one_card(operators):
    spec = load_npu("npu-x")
    found = estimate(operators, spec)
    same(found, alone(operators, spec))
    assert found["seconds"].dims == ("operator",)
    assert found.attrs["npu_digest"] == spec.digest
    assert found["level"].values.tolist() == list(LEVELS)
    assert {name: found[name].attrs["units"] for name in ("seconds", "energy", "bytes", "resource_seconds", "flops")} == {
        "seconds": "s", "energy": "J", "bytes": "B", "resource_seconds": "s", "flops": "FLOP"
    }  # fmt: skip
    same(estimate(operators.table, "npu-x"), alone(operators, spec))  # by name, and a table as it is


def test_every_cell_equals_the_estimate_of_its_card_alone(operators):
    spec = load_npu("npu-x")
    found = estimate(operators, spec, {BANDWIDTH: linspace("1 TB/s", "4 TB/s", 4), CORES: [16, 32, 48], "power.tdp": ["200 W", "1 kW"]})
    assert found["seconds"].dims == ("operator", BANDWIDTH, CORES, "npu.power.tdp")
    assert found[BANDWIDTH].attrs["units"] == "B/s"
    for bandwidth in found[BANDWIDTH].values.tolist():
        for cores in found[CORES].values.tolist():
            for tdp in found["npu.power.tdp"].values.tolist():
                changed = spec.with_si({"memory.hbm.bandwidth": bandwidth, "cores": cores, "power.tdp": tdp})
                same(found.sel({BANDWIDTH: bandwidth, CORES: cores, "npu.power.tdp": tdp}), alone(operators, changed))


def test_cards_side_by_side_do_not_touch_each_other(operators):
    """T4 has no bf16 and substitutes fp16, P100 has no matrix unit: what they lack changes nothing on the card beside them."""
    cards = [load_npu(name) for name in ("h100-sxm", "t4", "p100-pcie-16gb", "ascend-910b2")]
    found = estimate(operators, cards)
    assert found["npu"].values.tolist() == [spec.name for spec in cards]
    for spec in cards:
        same(found.sel(npu=spec.name), alone(operators, spec))
    assert "t4 has no bf16" in str(found["note"].values[0])
    assert "estimated" in found.attrs["notes"]  # energies of real cards are


def test_an_xarray_space_means_what_the_axes_mean(operators):
    spec = load_npu("npu-x")
    axes = estimate(operators, spec, {BANDWIDTH: ["1 TB/s", "2 TB/s"], CORES: [16, 32, 48]})
    space = xr.Dataset(coords={"memory.hbm.bandwidth": ("memory.hbm.bandwidth", [1.0, 2.0], {"units": "TB/s"}), "cores": [16, 32, 48]})
    xr.testing.assert_identical(estimate(operators, spec, space)["seconds"], axes["seconds"])
    own = xr.Dataset(coords={name: axes.coords[name] for name in (BANDWIDTH, CORES)})
    again = estimate(operators, spec, own)  # its own coordinates
    xr.testing.assert_identical(again["seconds"], axes["seconds"])
    array = xr.DataArray(np.zeros((2, 3)), coords=space.coords, dims=("memory.hbm.bandwidth", "cores"))
    xr.testing.assert_identical(estimate(operators, spec, array)["seconds"], axes["seconds"])


def test_a_field_may_vary_over_several_dimensions(operators):
    """Iso-area by hand: the size of L2 depends on cores and node; a label that is no field stays a label."""
    spec = load_npu("npu-x")
    size = xr.DataArray([[64.0, 32.0], [128.0, 96.0]], dims=("node", CORES), attrs={"units": "MiB"}, name="memory.l2.size")
    found = estimate(operators, spec, size.assign_coords({CORES: [16, 32], "node": ["old", "new"]}).to_dataset())
    assert found["npu.memory.l2.size"].dims == ("node", CORES)
    for node, cores, mebibytes in (("old", 32, 32), ("new", 16, 128)):
        changed = spec.with_({"memory.l2.size": f"{mebibytes} MiB", "cores": cores})
        same(found.sel({"node": node, CORES: cores}), alone(operators, changed))


def test_tied_axes_formulas_and_constraints_as_in_a_sweep(operators):
    spec = load_npu("npu-x")
    rows = tied({"matrix.rows": [8, 16, 32], "matrix.cols": [8, 16, 32], "cores": lambda rows: round(32 * 256 / rows**2)})
    found = estimate(operators, spec, {"edge": rows}, constraints={"small arrays only": lambda rows: rows < 32})
    assert found["valid"].values.tolist() == [True, True, False]
    assert found["reason_text"].values[found["reason"].values[2]] == "small arrays only"
    assert np.isnan(found["seconds"].isel(edge=2)).all()
    assert (found["evidence"].isel(edge=2) == "").all()
    same(found.isel(edge=0), alone(operators, spec.with_({"matrix.rows": 8, "matrix.cols": 8, "cores": 128})))


def test_cells_that_cannot_be_are_named(operators):
    """An L2 larger than the memory outside it contradicts itself; the cells beside it stand."""
    found = estimate(operators, "npu-x", {"memory.l2.size": ["96 MiB", "200 GB"]})
    assert found["valid"].values.tolist() == [True, False]
    assert "larger than hbm" in str(found["reason_text"].values[1])
    tiles = estimate(operators, "npu-x", {"memory.l1.size": ["16 KiB", "1 MiB"]}, tile="128x256x64")
    assert tiles["valid"].values.tolist() == [False, True]
    with pytest.raises(InvalidSpec, match="l1"):
        estimate(operators, load_npu("npu-x").with_({"memory.l1.size": "16 KiB"}), tile="128x256x64")


def test_a_card_that_cannot_be_priced_leaves_the_cells_beside_it(operators):
    """1 B of L1 holds no step of the smallest tile, which only pricing finds; the other cells are the estimates of their cards."""
    spec, sizes = load_npu("npu-x"), ["1 MiB", "1 B", "2 MiB", "2 B", "512 KiB"]
    found = estimate(operators, spec, {"memory.l1.size": sizes})
    assert found["valid"].values.tolist() == [True, False, True, False, True]
    for at in (0, 2, 4):
        same(found.isel({"npu.memory.l1.size": at}), alone(operators, spec.with_({"memory.l1.size": sizes[at]})))


def test_vendor_times_hold_in_every_cell_and_energy_follows_them(operators, tmp_path):
    path = tmp_path / "vendor.csv"
    path.write_text("op,dtype,M,N,K,time_us\ngemm,bf16,4096,4096,4096,1000\n", encoding="utf-8")
    spec = load_npu("npu-x")
    found = estimate(operators, spec, {"clock": ["1 GHz", "1.6 GHz"]}, vendor=read_vendor(path))
    assert found["seconds"].isel(operator=0).values.tolist() == [1e-3, 1e-3]
    assert (found["evidence"].isel(operator=0) == "vendor").all()
    activity = alone(operators, spec)
    idle = spec.power.idle or 0.0
    dynamic = activity.energy_j[0, 0] - idle * activity.seconds[0, 0]  # far from the limit at this time: the same work
    assert found["energy"].isel(operator=0).values[-1] == pytest.approx(dynamic + idle * 1e-3)


@pytest.mark.parametrize(
    ("npu", "axes", "said"),
    [
        ("npu-x", {"host_factor": [1, 2]}, "no axis of a card"),
        ("npu-x", {"memory.hbm.bandwith": ["1 TB/s"]}, "bandwidth"),
        ("npu-x", xr.Dataset({"bandwith": ("x", [1.0])}), "bandwith"),
        ("npu-x", xr.Dataset({"host_factor": ("x", [1.0])}), "no axis of a card"),
        ("npu-x", xr.Dataset({"memory.hbm.bandwidth": ("x", [1.0], {"units": "GiB"})}), "not in a unit of B/s"),
        (None, {"npu.cores": [8]}, "without a card"),
        (["npu-x", "npu-x"], None, "twice"),
        (["npu-x"], {"cores": [8]}, "several cards"),
        ("npu-y", None, "no card of this name"),
    ],
)
def test_what_cannot_be_asked_is_refused_with_its_name(operators, npu, axes, said):
    with pytest.raises((Refused, InvalidSpec), match=said):
        estimate(operators, npu, axes)


def test_too_large_a_space_is_refused_before_it_is_made(operators):
    with pytest.raises(Refused, match="above the budget"):
        estimate(operators, "npu-x", {"cores": range(1, 100_000), "clock": linspace("1 GHz", "2 GHz", 1000)})


def test_a_file_and_cards_by_name_on_an_axis(operators, tmp_path):
    path = tmp_path / "ops.csv"
    path.write_text("op,dtype,B,M,N,K\ngemm,bf16,1,4096,4096,4096\nmystery,bf16,1,1,1,1\n", encoding="utf-8")
    space = xr.Dataset(coords={"npu": ["npu-x", "sw26010-pro"], "cores": [4, 6]})
    found = estimate(path, space)
    assert found["seconds"].dims == ("operator", "npu", CORES)
    alone_ = pricing.estimate(operators.table, [load_npu("npu-x").with_({"cores": 6})])
    assert float(found["seconds"].sel({"npu": "npu-x", CORES: 6})[0]) == alone_.seconds[0, 0]
    assert np.isnan(found["energy"].sel(npu="sw26010-pro")).all()
    assert "no energy of sw26010-pro" in found.attrs["notes"]
    assert "mystery" in found.attrs["notes"] or "rows-left-out" in found.attrs["notes"]


def test_levels_of_the_deepest_card_have_names(tmp_path):
    """A card with three levels between its cores and its L2 beside one with none: bytes of each by name, 0 where a card lacks it."""
    level = '  s{}:\n    size: "{} MiB"\n    bandwidth: "8 TB/s"\n    scope: "chip"\n'
    text = load_npu("npu-x").to_yaml().replace("  l2:\n", "".join(level.format(at, 8 * at) for at in (1, 2, 3)) + "  l2:\n")
    deep = tmp_path / "deep.yaml"
    deep.write_text(text.replace('name: "npu-x"', 'name: "deep"'))
    rows = list_operators([{"op": "gemm", "dtype": "bf16", "M": 512, "N": 512, "K": 512}])
    found = estimate(rows, ["npu-x", str(deep)])["bytes"]
    assert found.level.values.tolist()[8:] == ["cluster_2", "cluster_3"]
    assert (found.sel(level=["cluster", "cluster_2", "cluster_3"]).values.ravel() > 0).tolist() == [False] * 3 + [True] * 3


@pytest.mark.parametrize(
    ("fixed", "options"),
    [
        ({"tile": "128x128x32", "unroll": 2, "double_buffer": False}, ["--tile", "128x128x32", "--unroll", "2", "--double-buffer", "off"]),
        ({"sparse": True}, ["--sparse"]),
        ({"copies": 2.0}, ["--copies", "2"]),
    ],
)
def test_python_and_the_command_line_fix_the_same(tmp_path, fixed, options):
    import json
    import subprocess
    import sys

    path = tmp_path / "ops.csv"
    path.write_text("op,dtype,M,N,K\ngemm,bf16,4096,2048,1024\n")
    run = [sys.executable, "-m", "workbench.cli", "estimate", "--npu", "a100-sxm4-80gb", str(path), "--json", *options]
    said = json.loads(subprocess.run(run, capture_output=True, text=True, check=True).stdout)["operators"][0]["seconds"]
    found, plain = (float(estimate(str(path), "a100-sxm4-80gb", **how).seconds[0]) for how in (fixed, {}))
    assert found == pytest.approx(said, rel=1e-12)
    assert found != pytest.approx(plain)
    with pytest.raises(Refused, match="tile"):
        estimate(str(path), "a100-sxm4-80gb", unroll=2)
