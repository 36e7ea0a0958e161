"""Whether figures of a card are such as silicon has ever had: generous ranges, each with the machines or reasons behind it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from types import MappingProxyType
from typing import TYPE_CHECKING

from workbench import units
from workbench.errors import Note

if TYPE_CHECKING:
    from workbench.hardware.spec import NpuSpec

Range = tuple[float, float, str, str]
"""Least, most [SI], unit, and why: what lies outside is doubted, never refused."""
FIGURES: Mapping[str, Range] = MappingProxyType(
    {
        "cores": (1, 2e6, "", "Cerebras WSE-3 has 900 000 cores, the largest GPU some 300"),
        "clock": (5e7, 1e10, "Hz", "FPGA accelerators run at some 100 MHz, no processor was ever sold above 6 GHz"),
        "matrix.macs": (1, 1e6, "", "TPU v1 has one array of 256 x 256, 65 536 multiply-adds a cycle"),
        "vector.lanes": (1, 1e5, "", "a TPU core has some 2 000 lanes, NEC SX-Aurora 256 x 32"),
        "runtime.launch_overhead": (0.0, 1e-2, "s", "a launch takes microseconds, through a remote driver a millisecond"),
        "power.tdp": (0.1, 1e5, "W", "phones' NPUs take a watt, a Cerebras CS-3 23 kW"),
        "link.bandwidth": (1e7, 1e14, "B/s", "from Ethernet of 100 Mbit/s to 1.8 TB/s of NVLink 5"),
        "link.latency": (0.0, 1e-2, "s", "a hop takes microseconds, across a campus some hundred"),
        "host.bandwidth": (1e7, 1e14, "B/s", "from USB 2 to NVLink-C2C of 450 GB/s"),
        "host.latency": (0.0, 1e-2, "s", "PCIe takes a microsecond"),
    }
)
LEVELS: Mapping[str, Range] = MappingProxyType(
    {
        "size": (1024, 1e12, "B", "L0 buffers have some KiB, and the largest on-chip memory is 44 GB (Cerebras WSE-3)"),
        "bandwidth": (1e9, 1e17, "B/s", "a register file passes some TB/s, all memory of a Cerebras WSE-3 21 PB/s"),
        "latency": (0.0, 1e-5, "s", "from a nanosecond of a register to a microsecond of memory behind a fabric"),
    }
)
OUTERMOST: Mapping[str, Range] = MappingProxyType(
    {
        "size": (16 * 2**20, 1e13, "B", "from edge accelerators without DRAM to 288 GB of HBM3E, or terabytes behind CXL"),
        "bandwidth": (1e9, 1e17, "B/s", "one channel of LPDDR gives some GB/s, 8 stacks of HBM3E 8 TB/s, on-chip memory petabytes"),
        "latency": (1e-9, 1e-5, "s", "DRAM takes 50 ns to a microsecond"),
    }
)


def doubted(spec: NpuSpec, where: Callable[[str], str]) -> tuple[Note, ...]:
    """Return a note for every figure no silicon has had; arguments as `workbench.hardware.check.cross_check`."""
    return tuple(
        Note("implausible", where(path), 1, f"{path} of {_text(value, of[2])} is {side} than any card has had", f"check the unit: {of[3]}")
        for path, value, of in _figures(spec)
        if (side := "less" if value < of[0] else "more" if value > of[1] else "")
    )


def _figures(spec: NpuSpec) -> Iterator[tuple[str, float, Range]]:
    values = {
        "cores": spec.cores, "clock": spec.clock, "matrix.macs": spec.matrix.macs_per_cycle, "vector.lanes": spec.vector.lanes,
        "runtime.launch_overhead": spec.runtime.launch_overhead, "power.tdp": spec.power.tdp,
        **{f"{name}.{key}": getattr(link, key) for name, link in (("link", spec.link), ("host", spec.host)) if link
           for key in ("bandwidth", "latency")},
    }  # fmt: skip
    yield from ((path, float(value), FIGURES[path]) for path, value in values.items() if value is not None)
    outer = list(spec.memory)[-1]
    for name, level in spec.memory.items():
        ranges = OUTERMOST if name == outer else LEVELS
        yield f"memory.{name}.size", level.size, ranges["size"]
        if level.latency or name != outer:
            yield f"memory.{name}.latency", level.latency, ranges["latency"]
        if level.bandwidth is not None:
            yield f"memory.{name}.bandwidth", spec.bandwidth(name), ranges["bandwidth"]


def _text(value: float, unit: str) -> str:
    return units.format(value, unit, 4) if unit else f"{value:g}"
