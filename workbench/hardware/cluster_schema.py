"""Keys of a cluster description: type, unit, default, meaning. Reading, checking and changing all use this one table."""

from __future__ import annotations

from collections.abc import Mapping

from workbench.hardware.schema import REQUIRED, Entry

TOPOLOGIES = ("ring", "full", "switch", "mesh", "torus", "fat_tree", "rail", "dragonfly")
POINT_TO_POINT = ("ring", "mesh", "torus")
"""Topologies whose cards are joined to neighbours: a bandwidth is that of one link, and a card has one to each neighbour."""
GRIDS = ("mesh", "torus")
MEDIA = ("memory", "bus", "network")
SPARSE = ("fat_tree", "dragonfly")
"""Topologies with leaves (leaf switches, groups): what stays inside one is not oversubscribed."""

TOP: Mapping[str, Entry] = {
    "name": Entry("text", REQUIRED, label="Name"),
    "npu": Entry("text", "", label="Card", help="The card's name in the catalogue, or the path of its description."),
    "npus": Entry("int", None, label="Cards", help="Cards in all, checked against the tiers; switches do not count.", low=1, high=1e6),
    "library": Entry("text", "ideal", label="Library", help="Protocols of the collectives: a name under data/cluster/libraries."),
    "launch_factor": Entry("float", 1.0, "", "launch factor", "Fitted: on the library's launch times.", 0.2, 5.0),
    "step_factor": Entry("float", 1.0, "", "step factor", "Fitted: on latencies of tiers and steps of protocols.", 0.2, 5.0),
    "error": Entry("float", None, "", "error", "Fitted: median relative error of messages left out of the fit.", 0.0, 2.0, zero_ok=True),
    "confidence": Entry("choice", "weak", label="Confidence", choices=("high", "medium", "weak", "invented")),
    "sources": Entry("texts", (), label="Sources"),
    "weak": Entry("texts", (), label="Weak numbers"),
}
TIER: Mapping[str, Entry] = {
    "name": Entry("text", REQUIRED, label="Name"),
    "size": Entry("int", REQUIRED, "", "size", "Members: cards of the innermost tier, instances of the tier below elsewhere.", 1, 4096),
    "topology": Entry("choice", "switch", label="topology", choices=TOPOLOGIES),
    "bandwidth_per_direction": Entry(
        "quantity", REQUIRED, "B/s", "bandwidth", "Of one port (ring, mesh, torus: of one link), each way.", low=1e8, high=4e12
    ),
    "ports": Entry("float", 1.0, "", "ports a card", "Ports of this tier a card has; 0.5: two cards share one.", 0.125, 32),
    "latency": Entry("quantity", REQUIRED, "s", "latency", "From a card to another across this tier.", 1e-7, 1e-4, zero_ok=True),
    "shape": Entry("text", "", label="shape", help="Extents of a mesh or torus, e.g. 4x4x4; their product is the size."),
    "leaf": Entry("int", None, "", "leaf", "Members below one leaf switch (fat tree) or in one group (dragonfly).", 1, 4096),
    "oversubscription": Entry(
        "float", 1.0, "", "oversubscription", "Bandwidth into the tier over bandwidth through it; 4 is written 4:1.", 1, 16, minimum=0.999
    ),
    "in_network_reduction": Entry("bool", False, label="in-network reduction", help="Its switches add (NVLS, SHARP)."),
    "medium": Entry("choice", None, label="medium", choices=MEDIA, help="Default: memory for the innermost tier, network above."),
    "efficiency": Entry("float", 1.0, "", "efficiency", "Usable share of the bandwidth.", 0.2, 1.0, maximum=1.0),
}
ALGORITHMS = (
    "ring", "rings", "dimensions", "tree", "halving-doubling", "direct", "in-network", "hierarchical", "hierarchical direct",
    "hierarchical mixed",
)  # fmt: skip
LIBRARY: Mapping[str, Entry] = {
    "name": Entry("text", REQUIRED, label="Name"),
    "algorithms": Entry("texts", ALGORITHMS, label="Algorithms", help="Those it has for reductions, gathers and broadcasts."),
    "message_launch": Entry(
        "quantity", 0.0, "s", "message launch", "Added to launches of send/receive and all-to-all.", 0.0, 1e-5, zero_ok=True
    ),
    "copy": Entry(
        "float", 0.0, "", "copy", "Time of a member's own part, only copied, over that of a part sent on.", 0.0, 1.0, zero_ok=True
    ),
    "chunks": Entry("int", 1, "", "chunks", "Pieces a hierarchical collective sends through its tiers as through a pipeline.", 1, 64),
    "sources": Entry("texts", (), label="Sources"),
    "weak": Entry("texts", (), label="Weak numbers"),
}
PROTOCOL: Mapping[str, Entry] = {
    "share": Entry("float", 1.0, "", "share", "Payload of the bandwidth, flags and copies taken off.", 0.1, 1.0, maximum=1.0),
    "launch": Entry("quantity", 0.0, "s", "launch", "Before the first byte moves: kernel, hand-shake.", 0.0, 1e-4, zero_ok=True),
    "step_memory": Entry(
        "quantity", 0.0, "s", "step", "Added to the latency of every step between cards that share memory.", 0.0, 1e-4, zero_ok=True
    ),
    "step_bus": Entry("quantity", 0.0, "s", "step", "The same across the bus of a host.", 0.0, 1e-4, zero_ok=True),
    "step_network": Entry("quantity", 0.0, "s", "step", "The same across a network.", 0.0, 1e-4, zero_ok=True),
    "message_share": Entry(
        "float", None, "", "message share", "Payload share of send/receive and all-to-all, where it differs.", 0.1, 1.0, maximum=1.0
    ),
    "messages": Entry("bool", True, label="messages", help="Also used for send/receive and all-to-all."),
    "in_network": Entry("bool", False, label="in network", help="The one that switches which add use; no other does."),
}
