"""What of a stated rate is sustained: one accessor for products, streams and hand-overs; stated by the card, else by how data moves."""

import numpy as np
import pytest

from tests.cost.tables import table
from workbench.cost import kernels, sustained
from workbench.cost.cost import Bound
from workbench.cost.estimate import estimate
from workbench.cost.pack import pack
from workbench.errors import InvalidSpec
from workbench.hardware.npu import load_npu
from workbench.hardware.text import read_yaml
from workbench.operators.table import Dtype, Kind


def test_a_stated_share_reaches_products_streams_and_hand_overs():
    """L2 of an Ascend 910B2: 2640 B/clk read and 2064 written at 1.8 GHz; 0.7 of them wherever they are used."""
    cards = pack([load_npu("ascend-910b2").with_({"memory.l2.efficiency": 0.7})], ["bf16"])
    read, written = 0.7 * 2640 * 1.8e9, 0.7 * 2064 * 1.8e9
    assert cards.matrix[0, 0, kernels.RATE_SHARED] == pytest.approx(read)
    assert cards.matrix[0, 0, kernels.RATE_WRITE] == pytest.approx(written)
    assert cards.shared_rate[0] == pytest.approx(read)
    assert cards.side.exchange[0] == pytest.approx(min(read, written))


def test_a_level_of_a_die_has_a_share_of_its_own():
    """MI300X: eight L2, one a die, inside a cache of the chip."""
    spec = load_npu("mi300x")
    first = kernels.MIDDLE + 2
    whole = pack([spec.with_({"memory.l2.efficiency": 1.0})], ["bf16"]).matrix[0, 0, first]
    assert whole == pytest.approx(8 * spec.bandwidth("l2"))
    assert pack([spec], ["bf16"]).matrix[0, 0, first] == pytest.approx(sustained.CROSSBAR * whole)


def test_what_nobody_stated_goes_by_how_data_moves():
    """A cache that threads of a GPU ask, against scratchpads that copy engines fill; the first states one rate for reads and writes."""
    gpu, tpu = load_npu("a100-sxm4-80gb"), load_npu("tpu-v4")
    assert sustained.bandwidth(gpu, "l2") == pytest.approx(0.6 * 5120 * 1.41e9)
    assert sustained.bandwidth(gpu, "l2", write=True) == pytest.approx(0.3 * 5120 * 1.41e9)
    for write in (False, True):
        assert sustained.bandwidth(tpu, "cmem", write) == pytest.approx(0.85 * tpu.bandwidth("cmem"))
    assert sustained.compute_share(gpu) == 0.8
    assert sustained.compute_share(tpu) == 0.9


def test_the_outermost_level_states_the_share_of_streams():
    """A long copy runs at the stated share of the bandwidth; a fit of the card goes before it."""
    bare = load_npu("tpu-v4").with_({"memory.hbm.efficiency": 0.7})
    assert pack([bare], ["bf16"]).memory_rate[0, 0] == pytest.approx(0.7 * bare.bandwidth("hbm"))
    long = table([(Kind.COPY, Dtype.FP16, (1 << 28, 0))])
    moved = estimate(long, [bare]).level_bytes[0, 0, 2]
    assert moved / estimate(long, [bare]).seconds[0, 0] == pytest.approx(0.7 * bare.bandwidth("hbm"), rel=0.02)
    fitted = load_npu("a100-sxm4-80gb")
    stated = fitted.with_({"memory.hbm.efficiency": 0.5})
    assert pack([stated], ["bf16"]).memory_rate == pytest.approx(pack([fitted], ["bf16"]).memory_rate)


def test_more_of_a_level_is_never_slower():
    rows = table([(Kind.GEMM, Dtype.FP16, (1, m, n, k)) for m, n, k in ((4096, 4096, 512), (128, 8192, 8192), (1024, 512, 64))])
    cards = [load_npu("ascend-910b2").with_({"memory.l2.efficiency": share}) for share in np.linspace(0.2, 1.0, 9)]
    assert (np.diff(estimate(rows, cards).seconds, axis=1) <= 1e-15).all()


@pytest.mark.parametrize("share", [0.0, -0.1, 1.01])
def test_a_share_lies_between_nothing_and_all(share):
    with pytest.raises(InvalidSpec):
        load_npu("ascend-910b2").with_({"memory.l2.efficiency": share})


def test_a_stated_share_is_written_and_read_again():
    spec = load_npu("ascend-910b2")
    assert spec.memory["l2"].efficiency == 0.9
    assert read_yaml(spec.to_yaml(), "card.yaml") == spec


def test_assumed_shares_are_said_where_no_fit_stands_behind_them():
    (note,) = sustained.assumed(load_npu("tpu-v4"))
    assert note.code == "assumed-efficiency"
    assert "cmem 0.85" in note.text and "matrix unit 0.9" in note.text
    (note,) = sustained.assumed(load_npu("tpu-v4").with_({"memory.hbm.efficiency": 0.8}))
    assert "cmem 0.85" in note.text, "what the outermost level states says nothing of those inside"
    (note,) = sustained.assumed(load_npu("ascend-910b2"))
    assert "l2" not in note.text
    assert sustained.assumed(load_npu("a100-sxm4-80gb")) == ()


def test_cubes_of_a_recorded_card_are_fed(shared):
    """Products of a training step on 24 AI cores at 1.85 GHz: counters say the cube is busy 0.86-0.89 of the time, so L2 does not bound
    them; nothing but the share of L2, taken from an operator of the vector cores, was measured on them."""
    from workbench.operators.counters import read_counters
    from workbench.study.counters import compare_counters

    found = compare_counters(read_counters(shared / "traces" / "ascend" / "kernel_details.csv"), load_npu("ascend-910b1"))
    large = [row for row in found.rows if row.kind == "gemm" and (row.measured_s or 0) > 4e-5]
    assert len(large) == 9
    assert {row.model_bound for row in large} == {Bound.MATRIX.name.lower()}
    assert max(abs(row.error or 0) for row in large) < 0.15
