"""Keys of a model's description: type, default, meaning. Reading and the documentation of the language use this one table."""

from __future__ import annotations

from collections.abc import Mapping

from workbench.hardware.schema import REQUIRED, Entry

ACTIVATIONS = ("gelu", "relu", "silu", "swiglu", "geglu")
DTYPES = ("fp32", "tf32", "bf16", "fp16", "fp8")
INPUTS = ("tokens", "images", "features")


def _count(label: str, default: object = REQUIRED, most: float = 1e9) -> Entry:
    return Entry("int", default, "", label, "", 1, most, maximum=most)


def _flag(label: str, default: bool = False) -> Entry:
    return Entry("bool", default, label=label)


TOP: Mapping[str, Entry] = {
    "name": Entry("text", REQUIRED, label="Name"),
    "input": Entry("choice", "tokens", label="Input", choices=INPUTS),
    "width": _count("Width of the vectors that flow (hidden size); features of a sample", None),
    "tokens": _count("Tokens of a sample, where a question states none", None),
    "image": Entry("ints", (), label="Channels, height, width of an image"),
    "dtype": Entry("choice", "bf16", label="Type of the elements", choices=DTYPES),
    "published_parameters": Entry("float", None, "", "Parameters as published", low=1e3, high=1e13),
    "sources": Entry("texts", (), label="Sources"),
}
BLOCK: Mapping[str, Entry] = {
    "name": Entry("text", REQUIRED, label="Name"),
    "count": _count("Times it repeats", 1, 10_000),
    "layer": _flag("Counts among the layers that a pipeline divides", True),
}
LAYERS: Mapping[str, Mapping[str, Entry]] = {
    "embedding": {
        "vocab": _count("Tokens of the vocabulary"),
        "positions": _count("Learned positions", None),
        "types": _count("Learned segment types", None),
        "dropout": _flag("Dropout"),
        "tied": _flag("The head uses the same weight"),
    },
    "norm": {"type": Entry("choice", "layer", label="Type", choices=("layer", "rms", "batch"))},
    "residual": {"dropout": _flag("Dropout before the sum")},
    "activation": {"type": Entry("choice", "gelu", label="Type", choices=ACTIVATIONS[:3])},
    "attention": {
        "heads": _count("Heads of queries", most=4096),
        "kv_heads": _count("Heads of keys and values", None, 4096),
        "head_dim": _count("Width of a head", None, 4096),
        "causal": _flag("Tokens see only those before them", True),
        "window": _count("Tokens a query sees at most", None),
        "rotary": _flag("Rotary positions"),
        "bias": _flag("Biases of all projections"),
        "qkv_bias": _flag("Biases of the first projection"),
        "dropout": _flag("Dropout of the scores"),
    },
    "mlp": {
        "width": _count("Width between the products"),
        "activation": Entry("choice", "gelu", label="Activation", choices=ACTIVATIONS),
        "bias": _flag("Biases"),
    },
    "moe": {
        "experts": _count("Experts", most=10_000),
        "top_k": _count("Experts a token goes to", most=1000),
        "width": _count("Width of an expert"),
        "shared": _count("Width of experts that every token passes", None),
        "shared_gate": _flag("Their result is weighted by a gate"),
        "activation": Entry("choice", "swiglu", label="Activation", choices=ACTIVATIONS),
        "imbalance": Entry("float", 1.0, "", "Rows of the busiest expert over the mean", minimum=0.999, maximum=1000.0),
    },
    "head": {"vocab": _count("Tokens of the vocabulary"), "bias": _flag("Bias"), "tied": _flag("Uses the weight of the embedding")},
    "dense": {
        "out": _count("Width after it"),
        "bias": _flag("Bias", True),
        "activation": Entry("choice", None, label="Activation", choices=ACTIVATIONS[:3]),
        "per_sample": _flag("One row a sample"),
        "aside": _flag("What flows on goes past it"),
    },
    "conv": {
        "out": _count("Channels after it"),
        "kernel": _count("Side of the kernel", most=99),
        "stride": _count("Stride", 1, 99),
        "norm": _flag("Batch norm after it", True),
        "activation": _flag("ReLU after it", True),
        "first": _flag("Nothing needs the gradient of its input"),
    },
    "bottleneck": {"width": _count("Channels inside"), "stride": _count("Stride", 1, 99), "out": _count("Channels after it", None)},
    "pool": {
        "over": Entry("choice", "window", label="Over", choices=("window", "all")),
        "kernel": _count("Side of the window", None, 999),
        "stride": _count("Stride", 1, 99),
    },
    "patches": {
        "size": _count("Side of a patch", most=999),
        "width": _count("Width of its vector"),
        "class_token": _flag("A class token", True),
    },
    "tables": {
        "rows": Entry("text", REQUIRED, label="Rows of every table, separated by commas"),
        "width": _count("Width of a vector"),
        "lookups": _count("Rows looked up and added, a table and sample", 1),
    },
    "interaction": {"features": _count("Vectors that meet", most=10_000)},
}
"""Keys of every kind of layer."""
