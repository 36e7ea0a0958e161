"""Cards: the catalogue holds, names lead to cards, changes are checked, text comes back equal."""

from __future__ import annotations

import math

import pytest

from workbench.errors import InvalidSpec, UnreadableInput
from workbench.hardware.npu import catalogue, detect, load_npu
from workbench.hardware.text import read_yaml

PEAKS = {  # dense peaks of the data sheets [TFLOP/s]
    ("a100-sxm4-80gb", "bf16"): 312,
    ("a100-sxm4-80gb", "fp32"): 19.5,
    ("h100-sxm", "bf16"): 989,
    ("mi300x", "fp16"): 1307,
    ("v100-sxm2-32gb", "fp16"): 125,
    ("v100-sxm2-32gb", "fp32"): 15.7,
    ("ascend-910b2", "fp16"): 354,
    ("t4", "fp32"): 8.1,
    ("p100-pcie-16gb", "fp32"): 9.3,
}


@pytest.mark.parametrize("name", catalogue())
def test_every_card_holds_and_says_where_from(name):
    spec = load_npu(name)
    assert spec.name == name
    assert spec.sources
    assert not [note for note in spec.notes if note.code == "no-sources"]
    assert read_yaml(spec.to_yaml(), "again.yaml") == spec
    assert read_yaml(spec.to_yaml(), "again.yaml").digest == spec.digest
    for field in spec.fields():
        assert spec.get(field.path) == field.value
        assert field.low <= field.value <= field.high
        assert field.label


def test_the_invented_card_says_so():
    assert load_npu("npu-x").confidence == "invented"


@pytest.mark.parametrize(("card", "peak"), PEAKS.items(), ids=str)
def test_peaks_of_the_data_sheets(card, peak):
    name, dtype = card
    assert load_npu(name).peak_flops(dtype) == pytest.approx(peak * 1e12, rel=0.02)


@pytest.mark.parametrize(
    ("device", "card"),
    [
        ("NVIDIA A100-SXM4-80GB", "a100-sxm4-80gb"),
        ("NVIDIA A100-PG509-200", "a100-sxm4-40gb"),
        ("AMD Instinct MI300X", "mi300x"),
        ("Tesla V100-SXM2-32GB", "v100-sxm2-32gb"),
        ("Tesla V100-DGXS-32GB", "v100-sxm2-32gb"),
        ("NVIDIA H100 80GB HBM3", "h100-sxm"),
        ("Ascend910B2", "ascend-910b2"),
    ],
)
def test_device_names_of_real_traces(device, card):
    found = detect(device)
    assert found is not None
    assert found.name == card


@pytest.mark.parametrize("device", ["", "NVIDIA H100 NVL", "NVIDIA A100", "GeForce RTX 4090", "nvidia"])
def test_a_name_that_is_no_card_is_not_guessed(device):
    assert detect(device) is None


def test_unknown_names_list_the_nearest():
    with pytest.raises(InvalidSpec) as error:
        load_npu("a100-smx4-80gb")
    assert "a100-sxm4-80gb" in error.value.fix
    with pytest.raises(InvalidSpec) as error:
        load_npu("A100")
    assert "a100-sxm4-80gb" in error.value.fix, "a beginning names its cards, not those that look alike (a10, a40)"
    with pytest.raises(UnreadableInput):
        load_npu("nowhere/card.yaml")


def test_a_file_is_a_card(tmp_path):
    path = tmp_path / "mine.yaml"
    path.write_text(load_npu("npu-x").to_yaml().replace('name: "npu-x"', 'name: "mine"'))
    assert load_npu(path).name == "mine"


def test_changes_are_new_checked_specs():
    base = load_npu("npu-x")
    what = base.with_({"memory.l1.size": "512 KiB", "memory.hbm.bandwidth": "6.4 TB/s", "matrix.rows": 32})
    assert (what.get("memory.l1.size"), what.get("memory.hbm.bandwidth"), what.matrix.rows) == (524288.0, 6.4e12, 32)
    assert base.matrix.rows == 16
    assert what.digest != base.digest
    assert base.with_({"matrix.rows": 16}) == base
    assert base.with_si({"memory.l1.size": 524288.0}).get("memory.l1.size") == 524288.0
    assert load_npu("a100-sxm4-80gb").with_({"cores": 54}).confidence == "invented"  # nobody measured half an A100


def test_rates_per_clock_follow_the_clock():
    base = load_npu("ascend-910b2")
    half = base.with_({"clock": "0.9 GHz"})
    assert half.get("memory.l2.bandwidth") == base.get("memory.l2.bandwidth") / 2 == 2640 * 0.9e9
    assert half.get("memory.hbm.bandwidth") == base.get("memory.hbm.bandwidth")
    fixed = base.with_({"memory.l2.bandwidth": "5 TB/s"})
    assert fixed.get("memory.l2.bandwidth") == fixed.with_({"clock": "0.9 GHz"}).get("memory.l2.bandwidth") == 5e12
    assert fixed.get("memory.l2.write_bandwidth") == 2064 * 1.8e9  # the other direction stays what it was


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"memory.l1.sise": "1 KiB"}, "memory.l1.size"),
        ({"memory.hmb.size": "1 KiB"}, "memory.hbm.size"),
        ({"memory.l1.size": 512}, "bare number"),
        ({"memory.l1.size": "512 kB/s"}, "unit of B"),
        ({"cores": 0}, "out of range"),
        ({"cores": 1.5}, "whole number"),
        ({"matrix.dataflow": "oss"}, "os"),
        ({"matrix.staging": "l9"}, "level"),
        ({"memory.hbm.size": "1 MiB"}, "larger than hbm"),
        ({"calibration.bf16.compute": 1.5}, "calibration"),
        ({"nonsense": 1}, "not a field"),
        ({"power.sustained_clock": "2 GHz"}, "above the clock"),  # else products would run above the card's own roof
    ],
)
def test_changes_that_cannot_be_are_refused(changes, said):
    with pytest.raises(InvalidSpec) as error:
        load_npu("npu-x").with_(changes)
    assert said in str(error.value)


def test_get_names_the_nearest_path():
    with pytest.raises(InvalidSpec, match=r"memory\.hbm\.bandwidth"):
        load_npu("npu-x").get("memory.hbm.bandwith")


@pytest.mark.parametrize(
    "changes", [{"memory.hbm.bandwidth": "1e-300 B/s"}, {"clock": "1e30 Hz"}, {"cores": 1e300}, {"vector.lanes": math.nan}]
)
def test_figures_whose_quotients_would_not_be_finite_are_refused(changes):
    with pytest.raises(InvalidSpec, match="out of range"):
        load_npu("npu-x").with_(changes)


@pytest.mark.parametrize(
    ("asked", "meant"),
    [("hbm.bandwidth", "memory.hbm.bandwidth"), ("memory.l1.capacity", "memory.l1.size"), ("memory.hbm.bandwith", "memory.hbm.bandwidth")],
)
def test_an_unknown_path_names_the_one_meant(asked: str, meant: str) -> None:
    with pytest.raises(InvalidSpec, match=f"did you mean '{meant}'"):
        load_npu("npu-x").with_({asked: "1 TB/s"})
