"""One slider move until every picture is painted: p95 <= 200 ms."""

from __future__ import annotations

import json
import statistics
from typing import Any

import pytest

from tests.browser.conftest import Screen, address, screen  # noqa: F401 (fixtures)

MOVES = 40
# Moves the slider as a hand would (one input event) and waits until the canvas, the roofline and the sweep have painted the answer.
MOVE = """async ([path, share]) => {
  const find = (root, selector) => { for (const e of root.querySelectorAll("*")) {
    if (e.matches(selector)) return e; if (e.shadowRoot) { const f = find(e.shadowRoot, selector); if (f) return f; } } return null; };
  const slider = find(document, `input[data-path="${path}"]`), canvas = find(document, "canvas[data-painted]");
  const old = canvas.dataset.predicted, plots = [...Bokeh.index.roots].flatMap((r) => { const out = []; const walk = (v) => {
    if (v.model && v.model.type === "Figure") out.push(v); for (const c of (v.children_views ? v.children_views() : [])) walk(c); };
    walk(r); return out; });
  const sources = new Set(plots.flatMap((p) => p.model.renderers.map((r) => r.data_source))), seen = new Set();
  const undo = [...sources].map((s) => { const f = () => seen.add(s.id); s.properties.data.change.connect(f);
    return () => s.properties.data.change.disconnect(f); });
  const begin = performance.now();
  slider.value = String(share * Number(slider.max));
  slider.dispatchEvent(new Event("input"));
  const frame = () => new Promise((r) => requestAnimationFrame(r));
  while (canvas.dataset.predicted === old || seen.size < 2) { await frame(); if (performance.now() - begin > 5000) break; }
  await frame(); await frame();
  undo.forEach((f) => f());
  return performance.now() - begin; }"""


@pytest.mark.benchmark
def test_slider_to_painted(screen: Screen, address: str, record_property: Any) -> None:  # noqa: F811
    screen.open(address)
    screen.page.wait_for_timeout(6000)
    for i in range(5):
        screen.page.evaluate(MOVE, ["memory.hbm.bandwidth", 0.3 + 0.05 * i])
        screen.page.wait_for_timeout(500)
    times = []
    for i in range(MOVES):
        times.append(screen.page.evaluate(MOVE, ["memory.hbm.bandwidth", 0.3 + 0.5 * ((i * 17) % MOVES) / MOVES]))
        screen.page.wait_for_timeout(1000)  # one move from rest: sweep, tables and address have followed the last
    times.sort()
    p50, p95 = statistics.median(times), times[int(0.95 * len(times))]
    record_property("slider_to_painted_ms", json.dumps({"p50": p50, "p95": p95}))
    assert p95 <= 200.0, f"p50 {p50:.0f} ms, p95 {p95:.0f} ms"
