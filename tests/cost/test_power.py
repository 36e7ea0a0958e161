"""Energy and the clock a power limit leaves: by hand, by an independent solver, and properties."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.cost.tables import table
from workbench.cost import power
from workbench.cost.cost import LEVELS
from workbench.cost.estimate import estimate
from workbench.cost.kernels_power import clock_share
from workbench.cost.models import dtype_columns, dtype_names
from workbench.cost.pack import pack
from workbench.cost.predictors import modelled
from workbench.hardware.npu import load_npu
from workbench.hardware.spec import NpuSpec
from workbench.operators.table import Dtype, Kind

STATED = {
    "power.energy.bf16": "0.8 pJ/FLOP", "power.vector_energy.fp32": "5 pJ/FLOP", "power.idle": "100 W", "memory.l1.energy": "2 pJ/B",
    "memory.l2.energy": "10 pJ/B", "memory.hbm.energy": "40 pJ/B", "memory.ub.energy": "1 pJ/B",
}  # fmt: skip
LARGE = (1, 8192, 8192, 8192)


def card(**more: str) -> NpuSpec:
    """The invented card with every energy stated: only then does its limit lower the clock."""
    return load_npu("npu-x").with_(STATED | {path.replace("__", "."): value for path, value in more.items()})


def without(spec: NpuSpec, field: str) -> NpuSpec:
    return replace(spec, power=replace(spec.power, **{field: None}))


def products(*shapes: tuple[int, ...], dtype: Dtype = Dtype.BF16):
    return table([(Kind.GEMM, dtype, shape) for shape in shapes])


@pytest.mark.parametrize(
    ("core", "watts", "floor", "share"),
    [
        (1.0, 8.0, 0.0, 1.0),  # below the limit
        (8.0, 1.0, 0.0, 0.5),  # power goes with the cube of the clock: (1/2)^3 x 8 J/s = 1 W
        (8.0, 1.0, 1.0, 0.125),  # at constant voltage, with the clock itself
        (1000.0, 125.0, 0.5, 0.5),  # the floor is just reached
        (1000.0, 25.0, 0.5, 0.1),  # below it: 0.5^2 x 1000 x 0.1 = 25
    ],
)
def test_share_of_the_clock_by_hand(core, watts, floor, share):
    """One second of work bound by the clock alone."""
    assert clock_share(core, 0.0, 1.0, 0.0, 0.0, watts, floor) == pytest.approx(share, rel=1e-9)


positive = st.floats(1e-3, 1e3)


def halved(excess: Callable[[float], float], low: float, high: float) -> float:
    """Return where a rising function crosses 0, by halving the interval until it has no width."""
    for _ in range(200):
        middle = (low + high) / 2.0
        low, high = (low, middle) if excess(middle) > 0.0 else (middle, high)
    return (low + high) / 2.0


@given(positive, positive, positive, st.floats(0, 1e3), st.floats(0, 1e3), positive, st.sampled_from([0.0, 0.65, 1.0]))
def test_the_equation_is_solved_and_power_keeps_to_the_limit(core, other, clocked, fixed, overhead, watts, floor):
    def time(x: float) -> float:
        return overhead + ((clocked / x) ** 4 + fixed**4) ** 0.25

    def excess(x: float) -> float:
        return (core * max(x, floor) ** 2 + other) / time(x) - watts

    x = clock_share(core, other, clocked, fixed, overhead, watts, floor)
    if excess(1.0) <= 0.0:
        assert x == pytest.approx(1.0, rel=1e-9)
    else:  # an independent solver
        assert x == pytest.approx(halved(excess, 1e-9, 1.0), rel=1e-6)
        assert excess(x) == pytest.approx(0.0, abs=1e-6 * watts)


@given(positive, positive, positive, positive, positive, st.floats(1.01, 10.0))
def test_less_power_never_clocks_higher_and_a_faster_memory_never_lengthens(core, other, clocked, fixed, watts, factor):
    def seconds(limit: float, still: float) -> float:
        x = clock_share(core, other, clocked, still, 0.0, limit, power.FLOOR)
        return float(((clocked / x) ** 4 + still**4) ** 0.25)

    assert seconds(watts / factor, fixed) >= seconds(watts, fixed) * (1 - 1e-9)
    assert seconds(watts, fixed / factor) <= seconds(watts, fixed) * (1 + 1e-9)


def test_energy_of_a_product_by_hand():
    """Idle power over its time, 0.8 pJ an operation, and bytes by level: far below the limit, nothing is capped."""
    made, spec = products((1, 64, 4096, 4096)), card(power__tdp="5 kW")
    cost = estimate(made, [spec])
    local, shared, memory = cost.level_bytes[0, 0, :3]
    by_hand = 100.0 * cost.seconds[0, 0] + made.flops[0] * 0.8e-12 + local * 2e-12 + shared * 10e-12 + memory * 40e-12
    assert cost.energy_j[0, 0] == pytest.approx(by_hand, rel=1e-12)
    assert cost.energy_why == ("",)
    assert cost.idle_w.tolist() == [100.0]


def test_a_full_matrix_unit_runs_at_the_sustained_clock():
    """0.8 pJ x 839 TFLOP/s is 671 W above idle; 400 W of 500 leave the clock (400 / 671)^(1/3)."""
    spec = card()
    peak = spec.unit_peak("matrix", "bf16") * 0.8e-12
    expected = (400.0 / peak) ** (1 / 3)
    assert power.sustained_clock(spec, "bf16") == pytest.approx(expected * spec.clock, rel=1e-9)
    assert power.sustained_clock(card(power__sustained_clock="1.2 GHz"), "bf16") == 1.2e9
    silent = load_npu("h100-sxm").with_({"power.tdp": "10 W"})  # states no energy: nothing says what the clock would have to be
    assert power.sustained_clock(silent, "bf16") == silent.clock


def test_a_limit_slows_full_products_and_leaves_memory_bound_ones():
    shapes = (LARGE, (1, 8, 8192, 8192))
    free, limited = (estimate(products(*shapes), [card(power__tdp=tdp)]) for tdp in ("5 kW", "300 W"))
    assert limited.seconds[0, 0] > 1.2 * free.seconds[0, 0]
    assert limited.seconds[1, 0] == free.seconds[1, 0]
    assert limited.energy_j[0, 0] / limited.seconds[0, 0] == pytest.approx(300.0, rel=1e-6)
    assert limited.energy_j[0, 0] < free.energy_j[0, 0]  # lower voltage
    assert (limited.resource_s[0, 0, 1:4] >= free.resource_s[0, 0, 1:4]).all()


@settings(max_examples=20, deadline=None)
@given(st.lists(st.integers(0, 13), min_size=3, max_size=3), st.floats(120.0, 900.0), st.floats(1.0, 3.0))
def test_less_power_is_never_faster_and_is_kept(exponents, watts, factor):
    made = products((1, *(2**e for e in exponents)))
    more, less = (estimate(made, [card(power__tdp=f"{limit!r} W")]) for limit in (watts * factor, watts))
    assert less.seconds[0, 0] >= more.seconds[0, 0] * (1 - 1e-12)
    for cost, limit in ((more, watts * factor), (less, watts)):
        assert cost.energy_j[0, 0] <= limit * cost.seconds[0, 0] * (1 + 1e-9)
        assert np.isfinite(made.flops / cost.energy_j[:, 0]).all()


def test_energy_adds_up_over_operators_and_cards():
    """Each operator's energy is its own, whatever else is in the table and whichever cards stand beside."""
    rows = [(Kind.GEMM, Dtype.BF16, LARGE), (Kind.ELEMENTWISE, Dtype.BF16, (1 << 24,)), (Kind.SOFTMAX, Dtype.FP32, (4096, 4096))]
    specs = [card(), card(power__tdp="250 W"), load_npu("h100-sxm")]
    whole = estimate(table(rows), specs).energy_j
    for u, row in enumerate(rows):
        for s, spec in enumerate(specs):
            np.testing.assert_allclose(whole[u, s], estimate(table([row]), [spec]).energy_j[0, 0], rtol=1e-12)


def test_what_nobody_states_is_named_and_never_lowers_a_clock():
    bare = without(load_npu("h100-sxm"), "process")
    cost = estimate(products(LARGE), [bare])
    assert np.isnan(cost.energy_j).all()
    assert "nor power.process" in cost.energy_why[0]
    scaled = bare.with_({"power.process": "5 nm"})
    known = estimate(products(LARGE), [scaled, scaled.with_({"power.tdp": "150 W"})])
    assert (known.seconds == cost.seconds).all()  # an estimate prices energy, never time
    assert "estimated" in known.energy_why[0] and "5 nm" in known.energy_why[0]
    assert known.energy_j[0, 1] == pytest.approx(150.0 * known.seconds[0, 1])
    nothing = estimate(products(LARGE), [without(scaled, "tdp")])
    assert np.isnan(nothing.energy_j).all() and "TDP" in nothing.energy_why[0]


def test_published_energies_by_process():
    """bf16 at 7 nm: 0.59 pJ a bare multiply-add (Jouppi et al. 2021, table 2); 45 nm takes 2.6 times as much (its geometric mean)."""
    seven, old = (load_npu("h100-sxm").with_({"power.process": process}) for process in ("7 nm", "45 nm"))
    assert power.operation_joules(seven, "bf16") == pytest.approx(0.59e-12 / 2 * power.AROUND_MATRIX)
    assert power.operation_joules(old, "bf16") == pytest.approx(2.6 * power.operation_joules(seven, "bf16"))
    near = seven.with_({"power.energy.bf16": "1 pJ/FLOP"})
    assert power.operation_joules(near, "fp16") == pytest.approx(0.72 / 0.59 * 1e-12)  # from the nearest stated one


def test_the_order_of_the_estimate_is_that_of_the_boards():
    """Sustained products of A100 draw about its 400 W (Antepara et al., SC 2025, see its clock fall below boost), streams less."""
    spec = load_npu("a100-sxm4-80gb")
    cost = estimate(table([(Kind.GEMM, Dtype.BF16, LARGE), (Kind.ELEMENTWISE, Dtype.BF16, (1 << 27,))]), [spec])
    watts = (cost.energy_j / cost.seconds)[:, 0]
    assert 320 < watts[0] <= 400
    assert 200 < watts[1] < 350


@pytest.mark.parametrize(("name", "least", "most"), [("tpu-v3", 175.0, 262.0), ("tpu-v4", 121.0, 192.0)])
def test_estimates_against_measured_power_of_tpus(name, least, most):
    """Production workloads drew so much (Jouppi et al., TPU v4, ISCA 2023, table 4): between streams and full products, within 30 %."""
    cost = estimate(table([(Kind.GEMM, Dtype.BF16, LARGE), (Kind.ELEMENTWISE, Dtype.BF16, (1 << 27,))]), [load_npu(name)])
    product, stream = (cost.energy_j / cost.seconds)[:, 0]
    assert most / 1.3 < product < 1.3 * most
    assert least / 1.3 < stream <= most * (1 + 1e-9)


def test_bytes_by_level_meet_the_energy_of_their_level():
    spec = card()
    made = products(LARGE)
    cards = pack([spec], dtype_names(made))
    of = power.joules(cards)
    assert dict(zip(LEVELS, of.byte[0].tolist(), strict=True)) == {
        "local": 2e-12, "shared": 1e-11, "memory": 4e-11, "operand_a": 0.0, "operand_b": 0.0, "accumulator": 0.0, "cluster": 0.0,
        "vector": 1e-12,
    }  # fmt: skip
    level = np.zeros((1, 1, len(LEVELS)))
    level[0, 0] = range(1, len(LEVELS) + 1)
    parts = power.dynamic(np.array([7.0]), np.array([True]), dtype_columns(made, cards), cards, level, of)
    assert parts[:, 0, 0] == pytest.approx([7 * 0.8e-12 + 1 * 2e-12 + 2 * 1e-11 + 8 * 1e-12, 3 * 4e-11])


def test_a_fit_does_not_count_the_limit_twice():
    """Times made with 80 % of the peak at full clock and a limit that costs large products a fifth: the fit finds the 80 %, not 64 %."""
    shapes = [(1, m, n, k) for m in (64, 512, 4096) for n in (512, 4096) for k in (512, 4096)]
    made, scalars = products(*shapes), np.array([[0.8, 0.8, 3e-6]])
    limited, free = card(power__tdp="350 W"), card(power__tdp="5 kW")
    times, unlimited = (modelled(spec, "bf16", made)(scalars)[:, 0] for spec in (limited, free))
    assert times[-1] > 1.15 * unlimited[-1]
    trials = np.array([[compute, 0.8, 3e-6] for compute in np.linspace(0.5, 1.0, 26)])
    misses = {
        spec.power.tdp: np.abs(np.log(modelled(spec, "bf16", made)(trials) / times[:, None])).mean(axis=0) for spec in (limited, free)
    }
    assert trials[np.argmin(misses[350.0]), 0] == pytest.approx(0.8)
    assert misses[350.0].min() < 1e-9 < misses[5000.0].min()  # without the limit no share explains large and small products alike


ATTENTION = (4, 32, 32, 2048, 2048, 128, 128, 0, 0)


@pytest.mark.parametrize(
    ("kind", "dims"),
    [
        (Kind.ATTENTION_FORWARD, ATTENTION),
        (Kind.CONV_FORWARD, (32, 256, 56, 56, 256, 3, 3, 1, 1, 1, 1, 1, 1, 1, 1, 1)),
        (Kind.SOFTMAX, (65536, 4096)),
        (Kind.NORM, (65536, 4096)),
        (Kind.ELEMENTWISE, (1 << 26,)),
    ],
)
def test_less_power_is_never_faster_whatever_the_kind(kind, dims):
    made = table([(kind, Dtype.BF16, dims)], flops=[4.0 * 4 * 32 * 2048 * 2048 * 128 if kind == Kind.ATTENTION_FORWARD else 5e11])
    limits = (5000.0, 500.0, 300.0, 200.0, 150.0)
    cost = [estimate(made, [card(power__tdp=f"{limit!r} W")]) for limit in limits]
    seconds = [found.seconds[0, 0] for found in cost]
    assert (np.diff(seconds) >= 0.0).all()
    assert all(found.energy_j[0, 0] <= limit * found.seconds[0, 0] * (1 + 1e-9) for found, limit in zip(cost, limits, strict=True))
