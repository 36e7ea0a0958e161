"""Layouts of images from the strides that a profiler recorded beside the shapes."""

from __future__ import annotations

import json
from dataclasses import replace

import numpy as np

from workbench.operators.call import Call
from workbench.operators.describe_matrix import LAYOUT
from workbench.operators.kinds import rule_for
from workbench.operators.layouts import Layout, layout_of_strides
from workbench.trace.trace import Trace

STRIDES = ("Input Strides", "Input strides", "Input_strides")
"""Arguments that hold the strides of an operator's tensors, as JSON text in the form of the shapes."""


def learn_layouts(trace: Trace, of: np.ndarray, calls: list[Call]) -> None:
    """Give calls of convolutions the layout of their image as a fact; calls that differ in it get entries of their own.

    Parameters
    ----------
    trace : Trace
    of : int32 [E]
        Call of each event (-1: none), changed in place.
    calls : list of Call
        Extended in place.
    """
    key = next((key for key in STRIDES if key in trace.args), None)
    if key is None:
        return
    images = {i: at for i, call in enumerate(calls) if (at := _image(call)) is not None}
    strides = trace.text_arg(key)
    rows = np.flatnonzero(np.isin(of, list(images)) & (strides >= 0))
    if not len(rows):
        return
    pairs, back = np.unique(np.stack([of[rows], strides[rows]]), axis=1, return_inverse=True)
    known: dict[tuple[int, Layout], int] = {}
    number = pairs[0].copy()
    for i, (old, text) in enumerate(pairs.T.tolist()):
        layout = _layout(calls[old], images[old], trace.strings[text])
        if layout != Layout.NHWC:  # channels first is what stays unstated
            continue
        if (old, layout) not in known:
            known[old, layout] = len(calls)
            calls.append(replace(calls[old], facts=(*calls[old].facts, (LAYOUT, int(layout)))))
        number[i] = known[old, layout]
    of[rows] = number[back.reshape(-1)]


def _image(call: Call) -> int | None:
    """Position of the image among a convolution's arguments: the input, else the gradient of the output."""
    entry = rule_for(call.name) or {}
    if entry.get("rule") not in ("convolution", "convolution_backward"):
        return None
    at = entry.get("x", entry.get("dy"))
    return at if isinstance(at, int) and call.tensor(at) is not None else None


def _layout(call: Call, at: int, text: str) -> Layout:
    try:
        strides = json.loads(text)[at]
    except (ValueError, IndexError, TypeError, KeyError):
        return Layout.UNSTATED
    image = call.tensor(at)
    if image is None or not isinstance(strides, list) or not all(isinstance(step, int) for step in strides):
        return Layout.UNSTATED
    return layout_of_strides(image.shape, strides)
