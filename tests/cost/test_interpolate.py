"""Between a vendor's times: laws that interpolation reproduces exactly, refusals, errors of entries left out, evidence."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.cost.tables import table
from workbench.cost.cost import Evidence
from workbench.cost.estimate import estimate
from workbench.cost.interpolate import ASSUMED_ERROR, BEYOND, between, unmatched
from workbench.cost.vendor import VendorTimes, read_vendor
from workbench.hardware.npu import load_npu
from workbench.operators.table import DIMS, Dtype, Kind


def vendor(tmp_path, rows: list[tuple[str, str, int, int, int, float]]):
    path = tmp_path / "vendor.csv"
    path.write_text("op,dtype,m,n,k,latency_us\n" + "\n".join(",".join(map(str, row)) for row in rows) + "\n")
    return read_vendor(path)


def ask(times, *shapes: tuple[int, ...], dtype: Dtype = Dtype.BF16):
    rows = table([(Kind.GEMM, dtype, (1, *shape)) for shape in shapes])
    return between(times, rows, np.arange(len(rows)))


def test_a_power_law_comes_out_exactly(tmp_path):
    """log t linear in log work: t = 3 us (m / 64) ** 0.7 at every power of two gives the same law at every m between."""
    law = lambda m: 3.0 * (m / 64) ** 0.7  # noqa: E731
    times = vendor(tmp_path, [("gemm", "bf16", m, 512, 512, law(m)) for m in (64, 128, 256, 512, 1024, 2048, 4096)])
    found = ask(times, (100, 512, 512), (777, 512, 512), (1500, 512, 512))
    assert found.seconds * 1e6 == pytest.approx([law(100), law(777), law(1500)])
    assert not found.beyond.any()
    assert found.error == pytest.approx(0, abs=1e-9)  # entries left out in turn come out exactly too


def test_the_stated_error_is_that_of_entries_left_out(tmp_path):
    random = np.random.default_rng(0)
    rows = [("gemm", "bf16", 64 * i, 512, 512, 3 * i * float(np.exp(random.uniform(-0.2, 0.2)))) for i in range(1, 60)]
    error = ask(vendor(tmp_path, rows), (100, 512, 512)).error[0]
    # e-th entry against the mean of two neighbours: |u1 - (u2 + u3) / 2| of uniform +-0.2, 80 % quantile 0.2 by simulation
    u = random.uniform(-0.2, 0.2, (3, 100_000))
    assert np.log1p(error) == pytest.approx(np.quantile(abs(u[0] - (u[1] + u[2]) / 2), 0.8), rel=0.35)


def test_few_entries_have_an_assumed_error(tmp_path):
    times = vendor(tmp_path, [("gemm", "bf16", 64, 512, 512, 3), ("gemm", "bf16", 128, 512, 512, 6)])
    assert ask(times, (96, 512, 512)).error[0] == pytest.approx(ASSUMED_ERROR)


@pytest.mark.parametrize(
    ("shape", "why"),
    [
        ((64 * 5, 512, 512), "more than twice the work of the largest"),
        ((10, 512, 512), "a sixth of the smallest"),
        ((96, 4096, 64), "as much work, but n is eight times as large"),
        ((0, 512, 512), "no work at all"),
    ],
)
def test_refusals(tmp_path, shape, why):
    times = vendor(tmp_path, [("gemm", "bf16", 64, 512, 512, 3), ("gemm", "bf16", 128, 512, 512, 6)])
    assert np.isnan(ask(times, shape).seconds).all(), why
    assert np.isnan(ask(times, (96, 512, 512), dtype=Dtype.FP16).seconds).all()


def test_beyond_the_table_the_error_grows(tmp_path):
    times = vendor(tmp_path, [("gemm", "bf16", m, 512, 512, m / 20) for m in (64, 128, 256)])
    found = ask(times, (384, 512, 512), (512, 512, 512))
    assert found.beyond.all()
    assert found.seconds * 1e6 == pytest.approx([384 / 20, 512 / 20])
    assert found.error[1] > found.error[0] > ASSUMED_ERROR


def test_a_window_or_head_size_is_never_interpolated(tmp_path):
    path = tmp_path / "vendor.csv"
    path.write_text(
        "op,dtype,B,H,S,D,latency_us\nattention,bf16,1,8,1024,64,10\nattention,bf16,1,8,4096,64,160\nattention,bf16,1,8,2048,128,90\n"
    )
    rows = table([(Kind.ATTENTION_FORWARD, Dtype.BF16, (1, 8, 8, 2048, 2048, d, d, 0, 0)) for d in (64, 96)])
    found = between(read_vendor(path), rows, np.arange(2))
    assert found.seconds[0] == pytest.approx(40e-6)  # t ~ pairs
    assert np.isnan(found.seconds[1])


def test_evidence_and_interval_in_an_estimate(tmp_path):
    times = vendor(tmp_path, [("gemm", "bf16", m, 512, 512, m / 20) for m in (64, 128, 256)])
    rows = table([(Kind.GEMM, Dtype.BF16, (1, m, 512, 512)) for m in (128, 100, 400, 4000)] + [(Kind.SOFTMAX, Dtype.BF16, (64, 64))])
    cost = estimate(rows, [load_npu("npu-x")], vendor=times)
    assert cost.evidence.tolist() == [Evidence.VENDOR, Evidence.INTERPOLATED, Evidence.MODEL, Evidence.MODEL, Evidence.MODEL]
    assert cost.seconds[1, 0] == pytest.approx(5e-6)
    assert cost.low_s[1, 0] == pytest.approx(5e-6 / (1 + ASSUMED_ERROR))
    assert cost.high_s[1, 0] == pytest.approx(5e-6 * (1 + ASSUMED_ERROR))
    assert "between the vendor's times" in cost.reasons[cost.note_code[1]]
    assert unmatched(times, rows) == ("gemm|bf16|(1, 64, 512, 512)", "gemm|bf16|(1, 256, 512, 512)")


def test_without_a_model_the_table_reaches_a_little_further(tmp_path):
    """A dtype the card cannot run by any model: what the vendor states is all there is."""
    times = vendor(tmp_path, [("gemm", "fp64", m, 512, 512, m / 20) for m in (64, 128, 256)])
    rows = table([(Kind.GEMM, Dtype.FP64, (1, 400, 512, 512))])
    spec = load_npu("npu-x")  # has no fp64
    assert np.isnan(estimate(rows, [spec]).seconds).all()
    cost = estimate(rows, [spec], vendor=times)
    assert cost.evidence[0] == Evidence.EXTRAPOLATED
    assert cost.seconds[0, 0] == pytest.approx(20e-6)


def test_measured_tables_interpolate_within_their_stated_error(shared):
    """Real times: of every seventh A100 product, taken out, about 80 % lie within the error stated of the rest."""
    from workbench.study.operators_csv import read_operators

    asked = {"where": {"device": "A100-SXM4", "source": "vidur", "dtype": "fp16"}}
    path = shared / "measured" / "compute" / "gemm.csv"
    found = read_operators(path, **asked)
    out = np.arange(len(found.table)) % 7 == 0
    entries = {("gemm", "fp16", tuple(found.table.dims[row, :4].tolist())): found.table.measured_s[row] for row in np.flatnonzero(~out)}

    got = between(VendorTimes("t", entries, {}, ""), found.table, np.flatnonzero(out))
    inside = ~np.isnan(got.seconds) & ~got.beyond
    miss = np.abs(np.log(got.seconds[inside] / found.table.measured_s[out][inside]))
    assert inside.mean() > 0.5
    assert 0.65 < (miss <= np.log1p(got.error[inside])).mean() < 0.95
    assert np.median(miss) < 0.15


sizes = st.lists(st.integers(1, 4096), min_size=2, max_size=12, unique=True)


def law(entries: dict[tuple[int, int, int], float]):
    return VendorTimes("t", {("gemm", "bf16", (1, *shape)): seconds for shape, seconds in entries.items()}, {}, "")


@settings(max_examples=80, deadline=None)
@given(sizes, st.lists(st.floats(1e-6, 1e-3), min_size=12, max_size=12), st.integers(1, 4096))
def test_never_outside_its_neighbours(rows, seconds, m):
    """Whatever the table says, a time between two entries lies between theirs; beyond, within a factor `BEYOND` of the last."""
    entries = {(row, 512, 512): seconds[at] for at, row in enumerate(rows)}
    found = ask(law(entries), (m, 512, 512))
    if np.isnan(found.seconds[0]):
        return
    assert min(seconds) / BEYOND <= found.seconds[0] * (1 + 1e-9)
    assert found.seconds[0] <= max(seconds) * BEYOND * (1 + 1e-9)
    if not found.beyond[0]:
        regime = [row for row in rows if (row == 1) == (m == 1)]
        low, high = max(row for row in regime if row <= m), min(row for row in regime if row >= m)
        ends = sorted((entries[low, 512, 512], entries[high, 512, 512]))
        assert ends[0] * (1 - 1e-9) <= found.seconds[0] <= ends[1] * (1 + 1e-9)


@settings(max_examples=80, deadline=None)
@given(sizes, st.floats(0.05, 1.0), st.lists(st.integers(2, 4096), min_size=2, max_size=6))
def test_a_table_that_grows_with_work_gives_times_that_do(rows, power, asked):
    times = law({(row, 512, 512): 1e-6 * row**power for row in rows})
    order = sorted(asked)
    found = ask(times, *((m, 512, 512) for m in order)).seconds
    known = found[~np.isnan(found)]
    assert (np.diff(known) >= -1e-9 * known[:-1]).all()


@pytest.mark.parametrize(
    ("kind", "stated", "dims", "why"),
    [
        ("gemm", [(1, 1, 4096, 4096), (1, 4, 4096, 4096)], (1, 2, 4096, 4096), "one row is a vector product"),
        ("attention_forward", [(1, 8, 8, 1, 512, 64, 64), (1, 8, 8, 4, 2048, 64, 64)], (1, 8, 8, 2, 1024, 64, 64), "decode and prefill"),
        ("attention_forward", [(1, 8, 8, 64, 64, 64, 64), (1, 8, 1, 256, 256, 64, 64)], (1, 8, 8, 128, 256, 64, 64), "heads a key head"),
        ("conv_forward", [(1, 32, 56, 56, 32, 3, 3), (1, 128, 56, 56, 128, 3, 3)], (1, 64, 56, 56, 64, 3, 3), "dense on one side only"),
    ],
)
def test_a_regime_is_never_crossed(kind, stated, dims, why):
    """Entries on the other side of it are no neighbours: what is left may lie beyond, never between."""
    of = Kind[kind.upper()]
    padded = lambda shape, groups: (*shape, *((1, 1, 1, 1, 1, 1, groups, 1, 1) if "groups" in DIMS[of] else ()),  # noqa: E731
                                    *([0] * 20))[: len(DIMS[of])]  # fmt: skip
    first, second = padded(stated[0], 1), padded(stated[1], stated[1][1])
    times = VendorTimes("t", {(kind, "bf16", first): 1e-5, (kind, "bf16", second): 4e-5}, {}, "")
    rows = table([(of, Dtype.BF16, padded(dims, 1))])
    found = between(times, rows, np.arange(1))
    assert np.isnan(found.seconds[0]) or found.beyond[0], why


def test_depthwise_layers_are_neighbours_over_channels():
    made = lambda c: (1, c, 56, 56, c, 3, 3, 1, 1, 1, 1, 1, 1, c, 1, 1, *([0] * 20))[: len(DIMS[Kind.CONV_FORWARD])]  # noqa: E731
    times = VendorTimes("t", {("conv_forward", "fp16", made(c)): c * 1e-7 for c in (32, 64, 128)}, {}, "")
    found = between(times, table([(Kind.CONV_FORWARD, Dtype.FP16, made(96))]), np.arange(1))
    assert found.seconds[0] == pytest.approx(96e-7, rel=1e-6)
