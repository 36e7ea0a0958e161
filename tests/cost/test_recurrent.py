"""Recurrent layers: steps that cannot overlap, weights read again or kept, work of the backward pass."""

from __future__ import annotations

import numpy as np
import pytest

from workbench.cost import matrix
from workbench.cost.cost import Bound
from workbench.cost.pack import pack
from workbench.cost.recurrent import recurrent
from workbench.hardware.npu import load_npu
from workbench.operators.formulas import recurrent as work

CARD = "v100-sxm2-32gb"


def priced(hidden, batch, steps, gates=4, backward=False, card=CARD, **rest):
    """Price one layer in fp16; FLOPs and bytes by the operators' own formula."""
    cards = pack([load_npu(card) if isinstance(card, str) else card], ["fp16"])
    weights = 2 * gates * hidden * hidden
    of = work(steps, batch, weights, 2.0, 2 * steps * batch * hidden, backward)
    moved = np.array([float(of.read - of.written)])
    return recurrent(
        np.array([[hidden, batch, steps]]), np.array([float(of.flops)]), moved, np.full(1, 2.0), np.zeros(1, int), cards, **rest
    )


def test_a_step_is_a_product_and_a_cell_of_its_own():
    """Ten more steps cost ten launches of a product and of a cell, and ten products; the inputs' product grows with them."""
    cards = pack([load_npu(CARD)], ["fp16"])
    one = np.full((1, 3), 2.0)
    step = matrix.products(np.array([[1, 32, 4 * 512, 512.0]]), one, np.zeros(1, int), cards, copies=(1.0, 1.0))[0].seconds[0, 0]
    launch = cards.launch[0, 0]
    more = priced(512, 32, 110).seconds[0, 0] - priced(512, 32, 100).seconds[0, 0]
    assert more > 10 * (step + launch)
    assert more < 10 * (step + launch) * 1.3


def test_time_grows_with_steps_and_not_with_a_batch_that_fits_a_tile():
    assert priced(1024, 16, 200).seconds[0, 0] / priced(1024, 16, 100).seconds[0, 0] == pytest.approx(2.0, rel=0.05)
    assert priced(1024, 32, 100).seconds[0, 0] < 1.2 * priced(1024, 16, 100).seconds[0, 0]


def test_backward_with_weights_adds_three_products_at_once():
    """Data gradient: a product a step, as forward; weight gradients: two large products after the last step."""
    forward, backward = priced(2048, 128, 50).seconds[0, 0], priced(2048, 128, 50, backward=True).seconds[0, 0]
    assert 1.0 < backward / forward < 2.0


def test_weights_that_fit_the_cores_are_kept_on_request():
    """Persistent RNN (Diamos et al.): 80 cores hold 8 MB, not 134 MB; a step then costs a meeting instead of two launches."""
    kept, stepwise = priced(1024, 16, 100, persistent=True), priced(1024, 16, 100)
    assert kept.seconds[0, 0] < 0.3 * stepwise.seconds[0, 0]
    assert np.array_equal(priced(4096, 16, 100, persistent=True).seconds, priced(4096, 16, 100).seconds)


@pytest.mark.parametrize("persistent", [False, True])
@pytest.mark.parametrize("card", [CARD, "ascend-910b2", "tpu-v4"])
def test_a_layer_stays_under_its_roof(card, persistent):
    spec = load_npu(card)
    flops = 4.0 * 4 * 1024**2 * 64 * 100
    out = priced(1024, 64, 100, card=card, persistent=persistent)
    assert out.seconds[0, 0] >= flops / max(spec.peak_flops("fp16"), spec.peak_flops("bf16"))  # a TPU runs it as bf16
    assert out.seconds[0, 0] >= out.resource[0, 0].max()
    assert out.resource[0, 0, Bound.LAUNCH] > 0


def test_a_meeting_costs_latency():
    spec = load_npu(CARD)
    slow = spec.with_({"memory.l2.latency": "1 us"})
    more = priced(512, 16, 100, card=slow, persistent=True).seconds[0, 0] - priced(512, 16, 100, persistent=True).seconds[0, 0]
    assert more >= 100 * 4 * (1e-6 - spec.memory["l2"].latency)
