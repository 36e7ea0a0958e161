"""The catalogue: published figures, names in traces, plausible prices, weak figures marked; partitions as derived specs."""

from __future__ import annotations

import numpy as np
import pytest

from workbench.cost import matrix
from workbench.cost.pack import pack, resolve
from workbench.cost.vector import maps, streams
from workbench.data import data_path
from workbench.errors import InvalidSpec
from workbench.hardware.npu import catalogue, detect, load_npu
from workbench.hardware.text import read_yaml
from workbench.study.check import check_file
from workbench.study.predict import predict
from workbench.study.prediction import Prediction
from workbench.study.scenario import Scenario
from workbench.study.workload import Workload
from workbench.trace.open import open_trace

TERA, GIGA, GIB = 1e12, 1e9, 2.0**30
PUBLISHED = {  # dtype, dense peak [TFLOP/s or TOP/s], memory [B], its bandwidth [B/s]
    "t4": ("fp16", 65, 16e9, 320e9),  # NVIDIA T4 datasheet
    "a10": ("bf16", 125, 24e9, 600e9),  # NVIDIA A10 datasheet
    "a40": ("bf16", 149.7, 48e9, 696e9),  # NVIDIA A40 datasheet
    "l4": ("bf16", 121, 24e9, 300e9),  # NVIDIA L4 datasheet (242 with sparsity)
    "l40s": ("bf16", 362, 48e9, 864e9),  # NVIDIA L40S datasheet
    "p100-pcie-16gb": ("fp32", 9.3, 16e9, 732e9),  # NVIDIA P100 datasheet
    "v100-sxm2-32gb": ("fp16", 125, 32e9, 900e9),  # NVIDIA V100 datasheet
    "v100-pcie-32gb": ("fp16", 112, 32e9, 900e9),
    "a100-sxm4-40gb": ("bf16", 312, 40e9, 1555e9),  # NVIDIA A100 datasheet
    "a100-sxm4-80gb": ("bf16", 312, 80e9, 2039e9),
    "a100-sxm-64gb": ("bf16", 312 * 124 / 108, 64e9, 1640e9),  # arXiv 2307.16885: 124 SMs
    "a100-pcie-40gb": ("bf16", 312, 40e9, 1555e9),
    "a100-pcie-80gb": ("bf16", 312, 80e9, 1935e9),
    "h100-sxm": ("bf16", 989, 80e9, 3350e9),  # NVIDIA H100 datasheet (1979 with sparsity)
    "h100-pcie": ("bf16", 756, 80e9, 2039e9),
    "h200-sxm": ("bf16", 989, 141e9, 4800e9),  # NVIDIA H200 datasheet
    "b200": ("fp8", 4500, 180e9, 7.7e12),  # NVIDIA Blackwell datasheets
    "mi210": ("fp16", 181, 64e9, 1638e9),  # AMD Instinct MI210 data sheet
    "mi250": ("fp16", 362 / 2, 128e9 / 2, 3277e9 / 2),  # AMD Instinct MI250 data sheet; one device is one of two dies
    "mi250x": ("fp16", 383 / 2, 128e9 / 2, 3277e9 / 2),
    "mi300x": ("fp16", 1307, 192e9, 5300e9),  # AMD Instinct MI300X data sheet
    "tpu-v2": ("bf16", 46, 16e9, 700e9),  # Jouppi et al., CACM 63(7), 2020
    "tpu-v3": ("bf16", 123, 32e9, 900e9),
    "tpu-v4": ("bf16", 275, 32e9, 1200e9),  # Jouppi et al., ISCA 2023
    "tpu-v5e": ("int8", 393, 16e9, 819e9),  # Google Cloud documentation
    "tpu-v5p": ("bf16", 459, 95e9, 2765e9),
    "ascend-310": ("int8", 16, 8e9, 51.2e9),  # Hot Chips 31, 2019 (16 is rounded from 16.4)
    "ascend-910a": ("fp16", 256, 32e9, 1200e9),  # Hot Chips 31, 2019 (256 is rounded from 262)
    "ascend-910b1": ("fp16", 364, 64e9, 1600e9),  # CANN platform files: cores, cube and clock; product pages
    "ascend-910b2": ("fp16", 354, 64e9, 1600e9),
    "ascend-910b4": ("int8", 491.5, 32e9, 800e9),
    "ascend-910c": ("fp16", 354, 64e9, 1600e9),  # one of two dies
    "gaudi2": ("fp8", 865, 96e9, 2450e9),  # Intel Gaudi 2 white paper
    "gaudi3": ("bf16", 1677, 128e9, 3700e9),  # stas00/ml-engineering; docs.habana.ai
    "mlu370-x8": ("int8", 256, 48e9, 614.4e9),  # Cambricon's announcement, March 2022
    "sw26010-pro": ("fp64", 13.8, 96e9, 307.2e9),  # reports of SC23
    "trainium1": ("bf16", 190, 32 * GIB, 820 * GIB),  # AWS Neuron documentation
    "trainium2": ("fp8", 1299, 96 * GIB, 2900e9),
}
ROUNDED = {"ascend-310": 0.03, "ascend-910a": 0.03}
LIMITED = ("t4", "mi300x", "l40s")  # sustain about half their peak: NeuSight (T4, 70 W), ml-engineering (MI300X), aiconfigurator (L40S)
ARRAYS = {  # systolic arrays a core and their edge: the papers and documents above
    "tpu-v2": (2, 1, 128), "tpu-v3": (2, 2, 128), "tpu-v4": (2, 4, 128), "tpu-v5e": (1, 4, 128), "tpu-v5p": (2, 4, 128),
    "gaudi2": (2, 1, 256), "gaudi3": (8, 1, 256), "trainium1": (2, 1, 128), "trainium2": (8, 1, 128),
}  # fmt: skip
NAMES = {
    "Tesla T4": "t4", "NVIDIA A10": "a10", "NVIDIA L4": "l4", "NVIDIA L40S": "l40s", "NVIDIA H100 PCIe": "h100-pcie",
    "NVIDIA A100 80GB PCIe": "a100-pcie-80gb", "NVIDIA A100-PCIE-40GB": "a100-pcie-40gb", "NVIDIA B200": "b200",
    "NVIDIA H200": "h200-sxm", "AMD Instinct MI210": "mi210", "AMD Instinct MI250X": "mi250x", "TPU v4": "tpu-v4",
    "TPU v5 lite": "tpu-v5e", "TPU v5p": "tpu-v5p", "TPU v3": "tpu-v3:core", "Ascend910_9382": "ascend-910c",
    "Ascend910B4": "ascend-910b4", "Ascend910A": "ascend-910a", "Ascend310": "ascend-310", "GAUDI3": "gaudi3", "HL-225": "gaudi2",
    "MLU370-X8": "mlu370-x8", "Trainium2": "trainium2",
    "NVIDIA A100-SXM4-40GB MIG 1g.5gb": "a100-sxm4-40gb:1g.5gb",
    "NVIDIA H100 80GB HBM3 MIG 1g.10gb+me": "h100-sxm:1g.10gb",
}  # fmt: skip


def test_every_card_but_the_invented_one_has_its_published_figures_here():
    assert set(PUBLISHED) == set(catalogue()) - {"npu-x"}


@pytest.mark.parametrize("name", PUBLISHED)
def test_published_figures(name):
    dtype, peak, size, bandwidth = PUBLISHED[name]
    spec = load_npu(name)
    outer = list(spec.memory)[-1]
    assert spec.peak_flops(dtype) == pytest.approx(peak * TERA, rel=ROUNDED.get(name, 0.02))
    assert spec.memory[outer].size == pytest.approx(size, rel=1e-6)
    assert spec.bandwidth(outer) == pytest.approx(bandwidth, rel=0.02)


@pytest.mark.parametrize("name", catalogue())
def test_every_card_loads_without_a_note_and_says_what_is_weak(name):
    """Dense peaks were checked against cores x arrays x clock x 2 x rate while reading; nothing was left to remark."""
    spec = load_npu(name)
    assert not spec.notes
    assert spec.weak
    assert name == "npu-x" or spec.matrix.peak or not spec.matrix.rate
    assert spec.host is not None
    document, code = check_file(name)
    assert code == 0
    assert f"confidence {spec.confidence}" in document.summary
    for text in spec.weak:
        assert any(text in note.text for note in document.notes)


@pytest.mark.parametrize(("name", "arrays"), ARRAYS.items(), ids=str)
def test_systolic_arrays(name, arrays):
    spec = load_npu(name)
    assert (spec.cores, spec.matrix.arrays_per_core, spec.matrix.rows) == arrays
    assert spec.matrix.cols == spec.matrix.rows
    assert (spec.matrix.depth, spec.matrix.dataflow) == (1, "os" if name.startswith("gaudi") else "ws")


def test_names_belong_to_one_card():
    seen: dict[str, str] = {}
    for name in catalogue():
        for alias in (name, *load_npu(name).aliases):
            assert seen.setdefault(alias.lower(), name) == name


@pytest.mark.parametrize(("device", "card"), NAMES.items(), ids=str)
def test_names_of_traces(device, card):
    found = detect(device)
    assert found is not None
    assert found.name == card


@pytest.mark.parametrize("device", ["AMD Instinct MI250X / MI250", "Ascend910B", "TPU v6 lite", "NVIDIA A100-SXM4-40GB MIG 9g.5gb"])
def test_names_of_more_than_one_card_or_none_are_not_guessed(device):
    assert detect(device) is None


@pytest.mark.parametrize("name", catalogue())
def test_a_large_product_and_a_long_stream_reach_what_cards_reach(name):
    """4096^3 takes 50-95 % of the peak, elementwise work 60-95 % of the bandwidth, nothing passes a roof."""
    spec = load_npu(name)
    dtype = next(dtype for dtype in ("bf16", "fp16", "fp32") if resolve(spec, dtype) == dtype)
    item, column = (4.0 if dtype == "fp32" else 2.0), np.zeros(1, dtype=np.int64)
    cards = pack([spec], [dtype])
    extents = np.array([[1, 4096, 4096, 4096], [1, 8192, 8192, 8192], [1, 128, 4096, 4096], [16, 512, 64, 512]])
    seconds = matrix.products(extents, np.full((4, 3), item), np.zeros(4, dtype=np.int64), cards)[0].seconds[:, 0]
    reached = 2.0 * extents.prod(axis=1) / seconds / spec.peak_flops(dtype)
    assert (0.4 if name in LIMITED else 0.5) < reached[0] < 0.95
    assert (reached < 1.0).all()
    elements = np.array([2.0**28])
    stream = streams(maps(elements, elements, 2.0 * item * elements, item * elements, column), cards)
    share = 3.0 * item * elements[0] / stream.seconds[0, 0] / spec.bandwidth(list(spec.memory)[-1])
    assert 0.6 < share < 0.95


@pytest.fixture(scope="module")
def workload() -> Workload:
    return Workload(open_trace([data_path("traces", "synthetic_ddp.json.gz")]))


def predicted(workload: Workload, name: str) -> Prediction:
    return predict(Scenario(workload, npu=load_npu(name), source=load_npu("a100-sxm4-80gb")))


@pytest.mark.parametrize("name", [*catalogue(), "h100-sxm:3g.40gb", "tpu-v3:core"])
def test_every_card_prices_a_training_step(workload, name):
    spec, found = load_npu(name), predicted(workload, name)
    assert np.isfinite(found.step_time_s)
    assert found.step_time_s > 0
    peak = max(spec.peak_flops(dtype) for dtype in (*spec.matrix.rate, *spec.vector.rate))
    assert (found.table.flops <= peak * found.cost.seconds[:, 0] * (1 + 1e-9)).all()
    said = [note for note in found.notes if note.where == spec.name and note.code in ("unvalidated-card", "weak-figures")]
    assert bool(said) == (spec.confidence != "high")
    assert all(text in said[0].text for text in spec.weak) if said else spec.confidence == "high"


# Partitions


def test_a_mig_profile_is_its_share_of_the_card():
    """3g.40gb of an H100: 60 of 132 SMs as nvidia-smi mig -lgip lists them, 4 of 8 memory slices (MIG User Guide)."""
    card, part = load_npu("h100-sxm"), load_npu("H100-SXM:3g.40gb")
    assert part.cores == 60
    assert part.peak_flops("bf16") == pytest.approx(card.peak_flops("bf16") * 60 / 132)
    assert part.get("memory.hbm.size") == 40e9
    assert part.get("memory.hbm.bandwidth") == 3350e9 / 2
    assert part.get("memory.l2.size") == 25 * 2**20
    assert part.get("memory.l2.bandwidth") == card.get("memory.l2.bandwidth") / 2
    for same in ("clock", "memory.shared.size", "memory.shared.bandwidth", "memory.hbm.latency", "vector.lanes", "host.bandwidth"):
        assert part.get(same) == card.get(same)
    assert (part.confidence, part.link) == ("medium", None)
    assert part.calibration["bf16"].error == pytest.approx(1.25 * card.calibration["bf16"].error)
    assert part.sources[0] == "derived from h100-sxm: 60 of 132 cores, 0.5 of its chip-wide memory"
    assert card == load_npu("h100-sxm")


@pytest.mark.parametrize("name", [name for name in catalogue() if load_npu(name).partitions])
def test_all_partitions_are_specs_and_grow_with_their_share(name):
    card = load_npu(name)
    for part in card.partitions:
        spec = card.partition(part.upper())
        assert spec == load_npu(f"{name}:{part}")
        assert read_yaml(spec.to_yaml(), "again.yaml") == spec
        assert not spec.notes
        assert spec.digest != card.digest
    profiles = [card.partitions[part] for part in card.partitions]
    assert [p.cores for p in profiles] == sorted(p.cores for p in profiles)
    assert [p.memory for p in profiles] == sorted(p.memory for p in profiles)
    if name.startswith(("a100", "h100", "h200")):  # seven of the smallest fit, and a profile's name states its memory [GB], rounded down
        assert 7 * profiles[0].cores <= card.cores
        outer = card.memory["hbm"].size
        assert all(abs(p.memory * outer / GIGA - int(part.split(".")[1][:-2])) < 1.0 for part, p in card.partitions.items())


def test_a_partition_by_shares():
    card = load_npu("a100-sxm4-80gb")
    part = card.partition(compute="3/7", memory="4/8")
    assert part.cores == 46  # 3/7 of 108 is 46.3
    assert part.get("memory.hbm.bandwidth") == 2039e9 / 2
    assert card.partition(compute=1 / 108, memory=1).cores == 1
    assert load_npu("npu-x").partition(compute=0.5).confidence == "invented"
    assert load_npu("mi300x").partition(compute=0.5, memory=0.5).confidence == "weak"


def test_a_smaller_partition_is_never_faster():
    specs = [load_npu(f"a100-sxm4-40gb:{part}") for part in load_npu("a100-sxm4-40gb").partitions] + [load_npu("a100-sxm4-40gb")]
    rng = np.random.default_rng(7)
    shape = np.concatenate((np.ones((40, 1)), 2.0 ** rng.integers(4, 13, (40, 3))), axis=1)
    seconds = matrix.products(shape, np.full((40, 3), 2.0), np.zeros(40, dtype=np.int64), pack(specs, ["bf16"]))[0].seconds
    assert (np.diff(seconds, axis=1) <= 1e-12).all()


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("h100-sxm:5g.40gb", "4g.40gb"),
        ("h100-sxm:3g.20gb", "3g.40gb"),
        ("t4:1g.5gb", "describes no partitions"),
        ("h100-smx:1g.10gb", "no card"),
    ],
)
def test_unknown_partitions_are_refused(name, said):
    with pytest.raises(InvalidSpec, match=said):
        load_npu(name)


@pytest.mark.parametrize(
    ("compute", "memory"), [(0, 1), (1.5, 1), ("8/7", 1), ("half", 1), (1, "1/0"), (1, -0.5), (True, 1), (float("nan"), 1)]
)
def test_shares_that_cannot_be_are_refused(compute, memory):
    with pytest.raises(InvalidSpec, match=r"a100-sxm4-80gb: (compute|memory)"):
        load_npu("a100-sxm4-80gb").partition(compute=compute, memory=memory)


def test_a_described_card_may_have_partitions(tmp_path):
    text = load_npu("npu-x").to_yaml().replace('name: "npu-x"', 'name: "mine"')
    path = tmp_path / "mine.yaml"
    path.write_text(text + 'partitions:\n  half: {cores: 16, memory: "1/2"}\n')
    assert load_npu(f"{path}:half").name == "mine:half"
    assert load_npu(path).with_({"cores": 8}).partitions == {}  # the shares were those of the unchanged card
    for wrong, said in (("cores: 64", "64 cores, but the card has 32"), ("cors: 16", "did you mean 'cores'"), ("cores: 0", "out of range")):
        path.write_text(text + f"partitions:\n  half: {{{wrong}, memory: 0.5}}\n")
        with pytest.raises(InvalidSpec, match=said):
            load_npu(path)
    path.write_text(text + 'partitions:\n  half: {cores: 16, memory: "3/2"}\n')
    with pytest.raises(InvalidSpec, match="out of range"):
        load_npu(path)
